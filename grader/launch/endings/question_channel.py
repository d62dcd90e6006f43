"""The supervisor's end of what it asks a rank: which collectives it has begun and not ended (see `flight_records`).

A rank may not answer at all: it has no process group yet, its main thread holds the interpreter, or it has closed its
end. So nobody waits for it longer than for its stack, and an answer that comes too late is told by its number.
"""

from __future__ import annotations

import contextlib
import os
import socket

from grader.launch.endings.flight_records import FlightRecord, read_answer
from grader.probe.communication.flight_recorder import MOST_BYTES

_MOST_LATE = 16


class QuestionChannel:
    """A pair of sockets that keep messages apart; `theirs` is for the rank, to be closed once it has it."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.setblocking(False)
        self.theirs = theirs.detach()
        self._asked = 0

    def ask(self) -> None:
        """Ask once more; a question that nobody takes in is no loss."""
        self._asked = (self._asked + 1) % 256
        with contextlib.suppress(OSError):
            self._ours.send(bytes([self._asked]))

    def answer(self) -> FlightRecord | None:
        """The answer to the last question, None while there is none."""
        for _ in range(_MOST_LATE):
            try:
                raw = self._ours.recv(MOST_BYTES)
            except OSError:
                return None
            if not raw:
                return None
            if (record := read_answer(raw, self._asked)) is not None:
                return record
        return None

    def close(self) -> None:
        """Ask no more."""
        self._ours.close()

    def hand_over(self) -> None:
        """Close our copy of the rank's end."""
        os.close(self.theirs)
