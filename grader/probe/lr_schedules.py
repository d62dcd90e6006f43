"""Learning rate schedules as they are built: their kind and how many steps they are made for.

What they make of the rate is told by the optimizer's steps.
"""

from __future__ import annotations

from typing import Any

from grader.probe import code_locations, events
from grader.probe.patches import outermost, replace
from grader.probe.writer import writer

_LENGTHS = ("total_steps", "T_max", "total_iters")


def _scheduled(_result: None, _started_s: float, scheduler: Any, *_args: Any, **_kwargs: Any) -> None:
    lengths = [getattr(scheduler, name, None) for name in _LENGTHS]
    length = next((n for n in lengths if isinstance(n, int) and not isinstance(n, bool)), None)
    writer.write(
        events.LR_SCHEDULER, kind=type(scheduler).__name__, length=length, site=code_locations.here()
    )


def install() -> None:
    """Hook the constructors of torch's schedules."""
    from torch.optim import lr_scheduler

    scheduled = outermost("lr scheduler", _scheduled)
    for name in ("LRScheduler", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"):
        kind = getattr(lr_scheduler, name, None)
        if kind is not None and "__init__" in vars(kind):
            replace([kind], "__init__", scheduled)
