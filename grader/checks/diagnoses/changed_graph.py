"""The model took another way than in its first step, which DDP was told to count on.

## What happened
DistributedDataParallel was made with `static_graph=True`, and a later forward pass used other parameters than the
first one.

## Why
With `static_graph=True` DDP learns in the first step which parameters take part, and counts on it ever after. A branch,
a dropped layer or a head that joins later changes that.

## Mend it
Leave `static_graph=True` out, and say `find_unused_parameters=True` where some steps really leave parameters out; or
let every step use the same ones.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import branches_of_models, lines, static_graphs
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"training graph has changed in this iteration")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    script = run.evidence.script
    return run.crash(
        title="The model went another way than in its first step",
        what="used other parameters of the wrapped model than in the first step",
        why="With `static_graph=True` DDP counts on the same ones in every step",
        hint="Leave `static_graph=True` out, and say `find_unused_parameters=True` where some steps really leave "
        "parameters out; or let every step use the same ones.",
        where=lines(script, [*static_graphs(script), *branches_of_models(script)]),
    )
