"""A variable that a launcher would set was missing.

## What happened
The script asked the environment for a variable of a launcher (`RANK`, `WORLD_SIZE`, `SLURM_PROCID`, …) and it was not
there.

## Why
Every rank is started with torchrun's variables, and with those only: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`,
`LOCAL_WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`. Variables of Slurm or MPI do not exist here, and one that the script
removed itself is gone.

## Mend it
Read `int(os.environ["RANK"])`, `int(os.environ["LOCAL_RANK"])` and `int(os.environ["WORLD_SIZE"])`, or ask
`dist.get_rank()` after `dist.init_process_group(backend)`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_TOLD = re.compile(r"environment variable (?P<name>\w+) expected, but not set")
_KEY = re.compile(
    r"^'(?P<name>(GROUP_|LOCAL_|NODE_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)|NPROCS|NNODES|NGPUS"
    r"|(SLURM|OMPI|PMI|MPI|MV2|TORCHELASTIC)_\w+)'$"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of a missing key that is a launcher's."""
    found = run.saying(_TOLD) or run.saying(_KEY, "KeyError")
    if found is None:
        return None
    return run.crash(
        title="A launcher's variable was missing",
        what=f"looked for the environment variable `{found['name']}`, which was not set",
        why=(
            "torchrun gives each process `RANK`, `LOCAL_RANK`, `WORLD_SIZE`, `MASTER_ADDR` and `MASTER_PORT`; other "
            "launchers' variables are not there, nor is one that the script removed"
        ),
        hint=(
            'Read `int(os.environ["RANK"])`, `int(os.environ["LOCAL_RANK"])` and `int(os.environ["WORLD_SIZE"])`, or '
            "ask `dist.get_rank()` once the process group exists."
        ),
        details={"variable": found["name"]},
    )
