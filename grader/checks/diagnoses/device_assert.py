"""A check inside a GPU's kernel failed.

## What happened
A kernel found a value that it can't work with, most often a label or an index outside its range, and the GPU stopped.

## Why
Kernels run behind the script: the error shows at whatever line next waits for the GPU, so the line in the traceback may
be innocent. On a CPU the same mistake raises at its own line, with the value.

## Mend it
Look at labels and indices: classes count from 0 to `num_classes - 1`. `CUDA_LAUNCH_BLOCKING=1` before `torchrun` makes
each kernel wait, so that the traceback ends at the right line; a run on the CPU says even more.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_failure import shown
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(r"device-side assert triggered")
# As the kernel's own assertion is printed: `….cu:245: kernel: block: […], thread: […] Assertion `t >= 0` failed.`
_ASSERTION = re.compile(r"Assertion `(?P<said>[^`'\n]{1,200})[`'] failed")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    assertion = run.logged(_ASSERTION)
    said = f" (“Assertion '{shown(assertion['said'])}' failed”)" if assertion is not None else ""
    return run.crash(
        title="A check inside a GPU's kernel failed",
        what=f"ran into a failed check of a kernel{said}, noticed",
        why=(
            "A label or an index is outside the range that the kernel allows; kernels run behind the script, so the "
            "line that noticed it may be innocent"
        ),
        hint=(
            "Look at labels and indices (classes count from 0 to `num_classes - 1`). Run once with "
            "`CUDA_LAUNCH_BLOCKING=1` before `torchrun`, and the traceback ends at the right line; on the CPU the same "
            "mistake raises with the value."
        ),
    )
