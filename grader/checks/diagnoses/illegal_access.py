"""A kernel reached for memory that is not its own.

## What happened
A GPU's kernel read or wrote outside the memory that it was given, and the device stopped.

## Why
It comes of an index out of range in a kernel without a check, of memory that was freed while another stream still used
it, or of a kernel of one's own. Kernels run behind the script: the line in the traceback is where it was noticed.

## Mend it
`CUDA_LAUNCH_BLOCKING=1` before `torchrun` makes each kernel wait, so that the traceback ends at the right line;
`compute-sanitizer` names the kernel. Look at indices, at tensors used in several streams (`record_stream`), and at
kernels of your own.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"an illegal memory access was encountered"
    r"|misaligned address"
    r"|an illegal instruction was encountered"
    r"|unspecified launch failure"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(
        title="A kernel reached for memory that is not its own",
        what=f"had a kernel that failed on the GPU (“{run.words}”), noticed",
        why=(
            "An index is out of range, or memory was given back while a kernel still used it; kernels run behind the "
            "script, so the line that noticed it may be innocent"
        ),
        hint=(
            "Run once with `CUDA_LAUNCH_BLOCKING=1` before `torchrun`, and the traceback ends at the right line. Then "
            "look at its indices and at tensors that several streams use (`record_stream`)."
        ),
    )
