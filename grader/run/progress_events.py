"""A supervisor's sign of life as the grader reads it: from beside the learner's code, so checked and never trusted."""

from __future__ import annotations

import math
from typing import Any

from grader.run.runtime import PrintedText, Progress

_LONGEST = 8192
_STREAMS = ("stdout", "stderr")


def read_progress(event: dict[str, Any]) -> Progress:
    """The progress that a `progress` event tells of; what is not as it should be is left out."""
    epoch, loss = event.get("epoch"), event.get("loss")
    return Progress(
        "run",
        float(event["elapsed_s"]),
        tuple(int(count) for count in event["steps"]),
        str(event["line"]),
        epoch if isinstance(epoch, int) and 0 < epoch < 1 << 31 else None,
        float(loss) if isinstance(loss, int | float) and math.isfinite(loss) else None,
        read_printed(event),
    )


def read_printed(event: dict[str, Any]) -> tuple[PrintedText, ...]:
    """What ranks printed, as a `progress` event tells of it."""
    found = []
    for entry in event.get("said") or ():
        match entry:
            case [int(rank), str(stream), str(text)] if stream in _STREAMS:
                found.append(PrintedText(rank, stream, text[:_LONGEST]))
    return tuple(found)
