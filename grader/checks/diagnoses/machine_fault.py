"""A GPU or its driver failed, or the script said so.

## What happened
CUDA, NCCL or the driver reported what only a machine can be to blame for: a memory error that can't be corrected, a
device that is lost or busy, a driver that does not fit. The run was made again elsewhere, as often as that is done, and
each time ended so.

## Why
Such a fault is no submission's. A script that raises or prints these words looks the same, and no machine is believed
for ever.

## Mend it
Look whether the script raises these words itself. Else ask your instructors to look at the GPUs and to judge the
submission again.
"""

from __future__ import annotations

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.machine_faults import machine_fault
from grader.model.diagnosis import Diagnosis

ORDER = 4


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first failure is the machine's."""
    fault = machine_fault(run)
    if fault is None:
        return None
    return run.crash(
        title="A GPU or its driver failed, or the script said so",
        what=f"was told by {fault.device}: “{fault.words}”,",
        why=(
            "That is the machine's fault and no submission's, unless the script says so itself; the run was made "
            "again as often as that is done for a machine's faults"
        ),
        hint=(
            "Look whether the script raises these words itself. Else ask your instructors to look at the GPUs "
            "(`grader devices`) and to judge the submission again."
        ),
    )
