"""Learning rate schedules: their kind and length as they are built, and those that move an optimizer which never steps.

Of `ReduceLROnPlateau` also what it is given, and what it does then. What the others make of the rate is told by the
optimizer's steps.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded, outermost, replace
from grader.probe.steps.step_events import stepped
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_PLATEAU = "ReduceLROnPlateau"
_LENGTHS = ("total_steps", "T_max", "total_iters")
_MAX_TOLD = 64
_MAX_FED = 256


class _Waiting:
    """A schedule whose optimizer has not been seen to step: where it was made, and how often it was stepped."""

    def __init__(self, kind: str, optimizer: Any, site: code_locations.CodeLocation | None) -> None:
        self.kind, self.optimizer, self.site = kind, id(optimizer), site
        self.calls = 0


_waiting: dict[int, _Waiting] = {}
_plateaus: dict[int, code_locations.CodeLocation | None] = {}
"""Where those were made that have not gone."""
_told = _fed = 0


def _scheduled(_result: None, _started_s: float, scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
    lengths = [getattr(scheduler, name, None) for name in _LENGTHS]
    length = next((n for n in lengths if isinstance(n, int) and not isinstance(n, bool)), None)
    kind, site = type(scheduler).__name__, code_locations.here()
    writer.write(events.LR_SCHEDULER, kind=kind, length=length, site=site)
    optimizer = getattr(scheduler, "optimizer", None)
    if optimizer is not None:
        _waiting[id(scheduler)] = _Waiting(kind, optimizer, site)
        weakref.finalize(scheduler, _waiting.pop, id(scheduler), None).atexit = False
    if kind == _PLATEAU:
        _plateaus[id(scheduler)] = site
        weakref.finalize(scheduler, _plateaus.pop, id(scheduler), None).atexit = False


@guarded("schedule")
def _stepped(scheduler: Any) -> None:
    global _told
    known = _waiting.get(id(scheduler))
    if known is None:
        return
    if known.optimizer in stepped:
        del _waiting[id(scheduler)]
        return
    known.calls += 1
    if counters.steps and known.calls & (known.calls - 1) == 0 and _told < _MAX_TOLD:
        _told += 1
        writer.write(
            events.IDLE_SCHEDULE, kind=known.kind, site=known.site, calls=known.calls, n=counters.steps
        )


def _largest_rate(scheduler: Any) -> float:
    return max(float(group["lr"]) for group in scheduler.optimizer.param_groups)


@guarded("plateau")
def _was_fed(scheduler: Any, before: float, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    global _fed
    given = args[0] if args else kwargs.get("metrics")
    if given is None or id(scheduler) not in _plateaus or _fed >= _MAX_FED:
        return
    _fed += 1
    writer.write(
        events.PLATEAU,
        mode=scheduler.mode,
        value=float(given),
        before=before,
        after=_largest_rate(scheduler),
        n=counters.steps,
        made=_plateaus[id(scheduler)],
        site=code_locations.here(),
    )


def _wrap_plateau(original: Any) -> Any:
    plain = _wrap_step(original)

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = _largest_rate(self) if id(self) in _plateaus else 0.0
        result = plain(self, *args, **kwargs)
        _was_fed(self, before, args, kwargs)
        return result

    return step


def _wrap_step(original: Any) -> Any:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if _waiting:
            _stepped(self)
        return result

    return step


def install() -> None:
    """Hook the constructors of torch's schedules, and their steps."""
    from torch.optim import lr_scheduler

    scheduled = outermost("lr scheduler", _scheduled)
    for name in ("LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"):
        kind = getattr(lr_scheduler, name, None)
        if kind is not None and "__init__" in vars(kind):
            replace([kind], "__init__", scheduled)
        if kind is not None and "step" in vars(kind):
            replace([kind], "step", _wrap_plateau if name == _PLATEAU else _wrap_step)
