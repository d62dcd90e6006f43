"""Tells what each line of the script does to weights and gradients, during a few steps of a run that is only looked at.

Python's own line trace over the submission's files: once a line is done, the trained models are looked at, and what is
no longer as it was is told with the line and its callers. That is slow, so a run that is scored never has it. The rank
leaves when the steps that were asked for are over.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models
from grader.probe.models.fingerprints import choose, fingerprint, is_sharded
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_TENSORS = 32
_MAX_ELEMENTS = 1 << 22
_MAX_CALLERS = 8
_MAX_WRITTEN = 4096
_IDLE_LOOKS = 256
"""Looks after which a line that has never changed anything is passed over: one that runs for each sample, say."""

_WEIGHTS, _GRADIENTS = "weights", "gradients"


class _Watched:
    """A model whose weights and gradients are compared from line to line.

    Attributes:
        known: the model. names, params: of its tensors that require gradients, or of some that stand for them.
        last: fingerprints of weights and gradients at the last look; empty before the first.
        waiting: changes that are told once the model is known to be trained.
    """

    def __init__(self, known: TrackedModel, module: Any) -> None:
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if len(named) > _MAX_TENSORS or sum(p.numel() for _, p in named) > _MAX_ELEMENTS:
            named = [named[i] for i in choose([p for _, p in named])]
        self.known = known
        self.names = [name for name, _ in named]
        self.params = [p for _, p in named]
        self.last: dict[str, str] = {}
        self.waiting: list[dict[str, Any]] = []


_watched: dict[int, _Watched] = {}
_first = _final = 0
_num_written = 0
_idle: dict[tuple[str, int], int] = {}
_frame: FrameType | None = None
_line = 0


def install(first: int, final: int) -> None:
    """Begin at optimizer step `first`, leave after step `final`; both counted from 0."""
    global _first, _final
    _first, _final = first, final
    sys.settrace(_enter)


def _enter(frame: FrameType, _event: str, _argument: Any) -> Any:
    if code_locations.relative(frame.f_code.co_filename) is None:
        return None
    if counters.steps >= _first:
        _look()
    _stand_at(frame, frame.f_lineno)
    return _trace


def _trace(frame: FrameType, event: str, _argument: Any) -> Any:
    # Every line pays for this, also before the steps that are looked at.
    if counters.steps >= _first:
        _look()
    if event == "line":
        _stand_at(frame, frame.f_lineno)
    elif event == "return":
        caller = frame.f_back
        while caller is not None and code_locations.relative(caller.f_code.co_filename) is None:
            caller = caller.f_back
        if caller is not None:
            _stand_at(caller, caller.f_lineno)
    return _trace


def _stand_at(frame: FrameType, line: int) -> None:
    """Whatever changes from now on, this line does."""
    global _frame, _line
    _frame, _line = frame, line


@guarded("lines", values=True)
def _look() -> None:
    """Tell what the line that has just run changed."""
    frame = _frame
    if frame is None:
        return
    if counters.steps > _final + 1:
        _leave()
    place = frame.f_code.co_filename, _line
    looks = _idle.get(place, 0)
    if looks > _IDLE_LOOKS:
        return
    changed = False
    for known in tracked_models.tracked():
        changed |= _compare(known)
    # A line that does change things is looked at each time.
    _idle[place] = -(1 << 30) if changed else looks + 1


def _compare(known: TrackedModel) -> bool:
    module = known.model()
    if module is None:
        return False
    watched = _watched.get(id(known))
    if watched is None:
        watched = _watched[id(known)] = _Watched(known, module)
    if any(is_sharded(p) for p in watched.params):
        return False
    begun = not watched.last
    changed = False
    for what, tensors in ((_WEIGHTS, watched.params), (_GRADIENTS, [p.grad for p in watched.params])):
        sums = fingerprint(tensors)
        text = repr(sums)  # numbers that are none differ from themselves, their text does not
        if watched.last.get(what) != text:
            watched.last[what] = text
            changed = not begun
            watched.waiting.append(_change_event(what, begun, watched.names, sums))
    if known.trains:
        _send(watched)
    return changed


def _change_event(what: str, begun: bool, names: list[str], sums: list[float | None]) -> dict[str, Any]:
    """The change, or what was found to begin with: nobody's doing."""
    sites = [] if begun else _sites()
    return {
        "what": what,
        "step": counters.steps,
        "site": sites[0] if sites else None,
        "callers": sites[1:],
        "names": names,
        "sums": sums,
    }


def _sites() -> list[CodeLocation]:
    """The line that ran, and those that led there, innermost first."""
    found: list[CodeLocation] = []
    frame, line = _frame, _line
    while frame is not None and len(found) <= _MAX_CALLERS:
        path = code_locations.relative(frame.f_code.co_filename)
        if path is not None:
            found.append((path, line, frame.f_code.co_name))
        frame = frame.f_back
        line = frame.f_lineno if frame is not None else 0
    return found


def _send(watched: _Watched) -> None:
    global _num_written
    model = list(_watched.values()).index(watched)
    for told in watched.waiting:
        if _num_written < _MAX_WRITTEN:
            writer.write(events.LINE_CHANGE, model=model, **told)
            _num_written += 1
    watched.waiting.clear()


def _leave() -> None:
    """The steps that were asked for are over, and nothing else of this run counts."""
    sys.settrace(None)
    os._exit(0)
