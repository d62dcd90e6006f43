"""Messages through a descriptor, one after the other, between a reader and whoever asks it.

What `multiprocessing.connection` offers more, nobody needs here, and to import it takes a linter longer than to read a
script.
"""

from __future__ import annotations

import math
import os
import select
import struct

_LENGTH = struct.Struct("!Q")
_PIECE_BYTES = 1 << 20


class Channel:
    """One end of a pipe or of a pair of sockets, which belongs to it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def send_bytes(self, message: bytes) -> None:
        """Hand a message over, however long the other end takes; OSError where nobody listens any more."""
        rest = memoryview(_LENGTH.pack(len(message)) + message)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def poll(self, timeout_s: float = 0.0) -> bool:
        """Whether there is something to receive within so long: a message, or the end."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return bool(poller.poll(math.ceil(timeout_s * 1e3)))

    def recv_bytes(self, most_bytes: int | None = None) -> bytes:
        """The next message.

        Raises:
            EOFError: the other end is closed.
            OSError: the message is longer than that.
        """
        (length,) = _LENGTH.unpack(self._received(_LENGTH.size))
        if most_bytes is not None and length > most_bytes:
            raise OSError(f"a message of {length:,} bytes")
        return self._received(length)

    def close(self) -> None:
        """Once is enough, and twice does no harm."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        # A fork that forgets its parent's readers must not keep them waiting for it.
        self.close()

    def _received(self, length: int) -> bytes:
        pieces: list[bytes] = []
        while length:
            piece = os.read(self._descriptor, min(length, _PIECE_BYTES))
            if not piece:
                raise EOFError
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)
