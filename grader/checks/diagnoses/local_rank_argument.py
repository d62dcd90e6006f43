"""The script expects `--local-rank`, which torchrun does not pass.

## What happened
`argparse` stopped the script because `--local-rank` (or `--local_rank`) was required or unknown, or the script went on
with the argument's default, `None`.

## Why
The old launcher `python -m torch.distributed.launch` passed the local rank as an argument. torchrun puts it into the
environment.

## Mend it
`local_rank = int(os.environ["LOCAL_RANK"])`, and no such argument.
"""

from __future__ import annotations

import ast
import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.script import Script
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 10
_REQUIRED = re.compile(r"error: the following arguments are required:[^\n]*--local[-_]rank")
_UNKNOWN = re.compile(r"error: unrecognized arguments:[^\n]*--local[-_]rank")
_NONE = re.compile(r"NoneType|cuda:None|cuda:-1|Invalid device string|Device index must not be negative")
_NAMES = ("--local-rank", "--local_rank")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of the argument, whether argparse said so or its default led astray."""
    if run.logged(_REQUIRED):
        what = "was stopped by `argparse`, because `--local-rank` was not given"
    elif run.logged(_UNKNOWN):
        what = "was stopped by `argparse`, because it does not know `--local-rank`"
    elif run.saying(_NONE) and run.cause is not None and _reads_argument(run):
        what = f"used `--local-rank`, which nobody passed (“{run.words}”),"
    else:
        return None
    added = _added(run.evidence.script)
    return run.crash(
        title="`--local-rank` was expected as an argument",
        what=what,
        why=(
            "Only the old `torch.distributed.launch` passed the local rank as an argument; torchrun sets the variable "
            "`LOCAL_RANK` instead"
        ),
        hint='Drop the argument and read the environment: `local_rank = int(os.environ["LOCAL_RANK"])`.',
        where=added,
    )


def _added(script: Script) -> tuple[Location, ...]:
    """Where the argument is declared."""
    found = []
    for call in script.all_calls():
        adds = isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        if adds and any(isinstance(a, ast.Constant) and a.value in _NAMES for a in call.args):
            found.append(script.location(call))
    return tuple(found)


def _reads_argument(run: FailedRun) -> bool:
    frame = run.cause.site if run.cause is not None else None
    return frame is not None and "local_rank" in run.evidence.script.line(frame.path, frame.line)
