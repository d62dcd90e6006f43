"""What a supervisor tells people while a run goes on: steps, epoch, loss, the ends of what the ranks print.

Bounded in size, safe to show, and worth nothing as evidence: a script may print and forge what it likes.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from grader.launch.ranks.rank_process import RankProcess

_SAID_BYTES = 8192
"""Of all ranks together, at most, per sign."""
_BATCH = re.compile(rb'"e":"batch","t":[^,]*,"loader":(\d{1,6}),"pass":(\d{1,9})')
_STEP, _LOSS = b'"e":"step"', re.compile(rb'"loss":\[?(-?\d[\d.e+-]{0,30})[],}]')


def progress_event(ranks: list[RankProcess], elapsed_s: float) -> dict[str, Any]:
    """A `progress` event of these ranks, of which the first tells epoch, loss and last line."""
    first = ranks[0]
    most = max(256, _SAID_BYTES // (2 * len(ranks)))
    printed = [
        [rank.rank, stream, text]
        for rank in ranks
        for stream, source in (("stdout", rank.out), ("stderr", rank.err))
        if (text := source.fresh_text(most))
    ]
    return {
        "event": "progress",
        "elapsed_s": round(elapsed_s, 3),
        "steps": [rank.trace.num_steps for rank in ranks],
        "line": first.out.last_line(),
        "epoch": _epoch(bytes(first.trace.recent)),
        "loss": _loss(bytes(first.trace.recent)),
        "said": printed,
    }


def _epoch(recent: bytes) -> int | None:
    # Scripts make the loader that they train from first, more often than not.
    passes = [(int(loader), int(number)) for loader, number in _BATCH.findall(recent)]
    if not passes:
        return None
    first = min(loader for loader, _number in passes)
    return 1 + max(number for loader, number in passes if loader == first)


def _loss(recent: bytes) -> float | None:
    for line in reversed(recent.split(b"\n")):
        _, step, told = line.partition(_STEP)
        if step and (loss := _LOSS.search(told)) is not None:
            with suppress(ValueError):
                return float(json.loads(loss[1]))
            return None
    return None
