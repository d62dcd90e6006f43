"""A seal on every line of the trace: this run's probe wrote it, in this place of the order, and nobody else did.

The run's key goes through hashlib's own object and is in no memory of this process afterwards (see `keyed_hash`). A
story that was written down before, or made up beside the probe, bears no right seal, and what was taken out of the
trace leaves a gap in the numbers. A script that finds the probe's own writer could still have lines sealed: the writer
tells who called it, and the rules watch for what leads there.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable

from grader.probe.trace.keyed_hash import keyed_hash

_DIGEST_BYTES = 8
_MOST_STRANGE = 10_000
"""Lines without a seal that are looked at; no honest run tears so many, and a flood must not keep the judge busy."""
_WRITER = os.path.join(os.path.dirname(__file__), "writer.py")
_caller = sys._getframe
_SEALED = re.compile(rb'\{"s":"(\d{1,12}):([0-9a-f]{16})",')


class Sealer:
    """Seals the lines of one rank, one after the other."""

    __slots__ = ("_keyed", "_next")

    def __init__(self, key: bytes | bytearray, rank: int) -> None:
        self._keyed = keyed_hash(key, f"rank {rank}", _DIGEST_BYTES)
        self._next = 0

    def sealed(self, line: bytes) -> bytes:
        """An event as one line of JSON without its newline, with number and seal as its first field."""
        if _caller(1).f_code.co_filename != _WRITER:
            return line  # whoever asks beside the writer gets nothing that would be taken for the probe's
        number = self._next
        self._next = number + 1
        keyed = self._keyed.copy()
        keyed.update(b"%d:%b" % (number, line))
        return b'{"s":"%d:%b",%b' % (number, keyed.hexdigest().encode(), line[1:])

    def take(self, line: bytes) -> int | None:
        """The number of a line that bears a right seal, None for any other line."""
        found = _SEALED.match(line)
        if found is None:
            return None
        number = int(found[1])
        keyed = self._keyed.copy()
        keyed.update(b"%d:{%b" % (number, line[found.end() :]))
        return number if keyed.hexdigest().encode() == found[2] else None


def look_through(lines: Iterable[bytes], key: bytes | bytearray, rank: int) -> tuple[int, int]:
    """Hold a rank's lines against its seals.

    Args:
        lines: as received, without stamps and newlines.
        key: of the run; rank: whose lines these are.

    Returns:
        Number of lines that read as events and that the probe did not write in this place, and number of lines that it
        wrote and that are gone. What is no event, such as a line that a killed rank left unfinished, counts as neither,
        unless it comes in thousands.
    """
    sealer = Sealer(key, rank)
    foreign = gone = due = strange = 0
    for line in lines:
        number = sealer.take(line)
        if number is None or number < due:
            foreign += _is_event(line)
            strange += 1
            if strange >= _MOST_STRANGE:
                return max(foreign, strange), gone
            continue
        gone += number - due
        due = number + 1
    return foreign, gone


def _is_event(line: bytes) -> bool:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(event, dict) and "e" in event
