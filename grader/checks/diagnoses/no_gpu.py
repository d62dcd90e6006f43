"""The script wants a GPU, and there is none.

## What happened
`.cuda()`, `.to("cuda")` or a checkpoint with CUDA tensors was used on a machine without CUDA devices.

## Why
A task may be judged on a machine without GPUs, and a device that is written into the script leaves no choice
there.

## Mend it
Ask once and use the answer everywhere: `device = torch.device("cuda", local_rank) if
torch.cuda.is_available() else torch.device("cpu")`, and `torch.load(path, map_location=device)`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"Torch not compiled with CUDA enabled"
    r"|Found no NVIDIA driver"
    r"|No CUDA GPUs are available"
    r"|module 'torch\._C' has no attribute '_cuda_\w+'"
    r"|torch.cuda.is_available\(\) is False"
    r"|CUDA driver version is insufficient"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="The script wants a GPU, and there is none",
        what="asked for a CUDA device where there is none",
        why=(
            "A task may be judged on a machine without GPUs, and a device that is written into "
            "the script leaves no choice there"
        ),
        hint=(
            'Ask once and use the answer everywhere: `device = torch.device("cuda", local_rank)'
            ' if torch.cuda.is_available() else torch.device("cpu")`, and `torch.load(path, '
            "map_location=device)`."
        ),
    )
