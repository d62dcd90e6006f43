"""The wrapped model was asked for something that only the network inside has.

## What happened
`AttributeError: 'DistributedDataParallel' object has no attribute …`.

## Why
The wrapper passes on `forward`, `train`, `eval`, `parameters` and `state_dict`. Attributes and methods of the class
itself stay with the network, which the wrapper keeps as `module`.

## Mend it
`model.module.fc`, `model.module.predict(x)`; or keep a name for the network before wrapping it.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"'(?P<wrapper>DistributedDataParallel|DataParallel|FullyShardedDataParallel)' object has no attribute "
    r"'(?P<name>\w+)'"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of attributes read through a wrapper."""
    found = run.saying(_WORDS, "AttributeError")
    if found is None:
        return None
    name = found["name"]
    return run.crash(
        title=f"`{name}` belongs to the network inside the wrapper",
        what=f"asked the `{found['wrapper']}` wrapper for `{name}`, which it does not have,",
        why="The wrapper only passes on what every module has; the network itself, with its own names, is its `module`",
        hint=(
            f"Write `model.module.{name}`, or keep a name for the network before wrapping. A forward pass in training "
            "still has to go through the wrapper."
        ),
        details={"attribute": name},
    )
