"""The script asked for arguments that it was not given.

## What happened
`argparse` (or a library like it) stopped the script before training began.

## Why
The script is started without arguments, as `torchrun --nproc_per_node=N train.py`.

## Mend it
Give every argument a default that trains the network: `parser.add_argument("--epochs", type=int, default=6)`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_failure import shown
from grader.model.diagnosis import Diagnosis

ORDER = 30
_WORDS = re.compile(
    r"^\S+: error: (?P<text>[^\n]+)|^(?P<click>Error: Missing (argument|option)[^\n]*)", re.MULTILINE
)
_USAGE = 2


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where a rank ended with the exit code of a usage error and said so."""
    if run.cause is None or run.cause.exit_code != _USAGE:
        return None
    found = run.logged(_WORDS)
    if found is None:
        return None
    return run.crash(
        title="The script wanted arguments",
        what=f"was stopped while reading its arguments (“{shown(found['text'] or found['click'])}”)",
        why="The script is started without arguments, so everything it needs must have a default",
        hint='Give each argument a default: `parser.add_argument("--epochs", type=int, default=6)`.',
    )
