"""The secret of one run: random bytes in memory of their own, which every rank wipes before the script begins.

Drawn by the supervisor itself, so that no text that led to the run ever held it, neither on the way nor in memory that
ranks inherit. What the probe makes of it (`seals`, `sampling`) does not hold it any more either.
"""

from __future__ import annotations

import array
import socket
from collections.abc import Sequence

KEY_BYTES = 32


class SealKey:
    """A key that can be forgotten. `raw`: its bytes; all zeros once it is, none where the run has no key."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytearray) -> None:
        self.raw = raw

    @classmethod
    def draw(cls) -> SealKey:
        """A new one, from the system's generator straight into its place."""
        raw = bytearray(KEY_BYTES)
        with open("/dev/urandom", "rb", buffering=0) as generator:
            if generator.readinto(raw) != KEY_BYTES:
                raise OSError("the system's random generator gave too few bytes")
        return cls(raw)

    @classmethod
    def none(cls) -> SealKey:
        """That of a run without one."""
        return cls(bytearray())

    def wipe(self) -> None:
        """Forget it in this process."""
        self.raw[:] = bytes(len(self.raw))

    def send(self, call: socket.socket, descriptors: Sequence[int]) -> None:
        """Give it to a process that is about to become a rank, with the descriptors of that rank."""
        rights = array.array("i", descriptors)
        call.sendmsg([self.raw or bytes(KEY_BYTES)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    @classmethod
    def receive(cls, call: socket.socket, num_descriptors: int) -> tuple[SealKey, list[int]]:
        """The other end of `send`; raises EOFError where nobody sends."""
        raw, ends = bytearray(KEY_BYTES), array.array("i")
        space = socket.CMSG_SPACE(num_descriptors * ends.itemsize)
        num, rights, _flags, _address = call.recvmsg_into([raw], space, socket.MSG_WAITALL)
        if num < KEY_BYTES:
            raise EOFError("nobody is there to say which rank to become")
        for _level, _kind, data in rights:
            ends.frombytes(data)
        return cls(raw) if any(raw) else cls.none(), list(ends)
