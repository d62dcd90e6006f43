"""From the bytes of one rank's trace to events that are at least JSON objects with a kind and a time.

Everything here was written by the learner's own process: any truncation, interleaving or garbage becomes a counted
problem, never an exception, and nothing is read without a limit.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_LINE_BYTES = 1 << 20
MAX_LINES = 1_000_000
MAX_TRACE_BYTES = 256 << 20
MAX_PROBLEMS = 20

_MAX_KIND = 40
_STAMP = re.compile(rb"\d{1,9}(?:\.\d{1,9})?")


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One event as received.

    Attributes:
        received: when the supervisor had it, seconds; t: when the rank says that it happened.
        kind: its kind; fields: the decoded object; num_bytes: length as received.
    """

    received: float
    t: float
    kind: str
    fields: dict[str, Any]
    num_bytes: int


NOTHING = "The rank left no trace at all."


class Problems:
    """Counts what is wrong, and says each kind of fault once with its number."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, sentence: str) -> None:
        """Note one fault; equal sentences are counted."""
        if sentence in self._counts or len(self._counts) < MAX_PROBLEMS:
            self._counts[sentence] += 1
        else:
            self._counts["Further lines were faulty in other ways."] += 1

    def sentences(self) -> tuple[str, ...]:
        """All faults in order of first appearance."""
        return tuple(text if n == 1 else f"{text} ({n} times)" for text, n in self._counts.items())

    def __bool__(self) -> bool:
        return bool(self._counts)


def read_lines(path: Path, problems: Problems) -> Iterator[TraceLine]:
    """Events of one file, in order of receipt; what is no event is noted in `problems` and left out."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                problems.add(NOTHING)
            yield from _decode(file, problems)
    except FileNotFoundError:
        problems.add(NOTHING)
    except OSError as error:
        problems.add(f"The trace could not be read: {error.strerror}.")


def _decode(file: Any, problems: Problems) -> Iterator[TraceLine]:
    total = 0
    for _ in range(MAX_LINES):
        raw = file.readline(MAX_LINE_BYTES + 1)
        total += len(raw)
        if not raw:
            return
        if total > MAX_TRACE_BYTES:
            problems.add(f"The trace goes on after {MAX_TRACE_BYTES >> 20} MiB; the rest was not read.")
            return
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            problems.add(f"A line is longer than {MAX_LINE_BYTES >> 20} MiB and was left out.")
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE_BYTES)
                total += len(raw)
                if total > MAX_TRACE_BYTES:
                    return
            continue
        line = _decode_line(raw, problems)
        if line is not None:
            yield line
    if file.read(1):
        problems.add(f"The trace goes on after {MAX_LINES:,} lines; the rest was not read.")


def _decode_line(raw: bytes, problems: Problems) -> TraceLine | None:
    stamp, tab, text = raw.partition(b"\t")
    if not tab or not _STAMP.fullmatch(stamp):
        problems.add(
            "A line has no time of receipt."
            if raw.endswith(b"\n")
            else "The trace ends in the middle of a line."
        )
        return None
    try:
        fields = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):  # also UnicodeDecodeError and integers of thousands of digits
        problems.add(
            "A line is no JSON." if raw.endswith(b"\n") else "The trace ends in the middle of a line.",
        )
        return None
    if not isinstance(fields, dict):
        problems.add("A line is JSON, but no event.")
        return None
    kind, t = fields.get("e"), fields.get("t")
    if not isinstance(kind, str) or not 0 < len(kind) <= _MAX_KIND:
        problems.add("An event has no kind.")
        return None
    if isinstance(t, bool) or not isinstance(t, (int, float)) or not math.isfinite(t) or abs(t) > 1e9:
        problems.add(f"An event of kind {kind!a} has no time.")
        return None
    return TraceLine(float(stamp), float(t), kind, fields, len(raw))
