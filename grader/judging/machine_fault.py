"""A run that a GPU's or a driver's failure ended is made again elsewhere instead of judged, while that can be had."""

from __future__ import annotations

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.machine_faults import machine_fault
from grader.errors import InfraError


def refuse_machine_fault(
    evidence: Evidence | SourceEvidence, *, last_try: bool = False
) -> Evidence | SourceEvidence:
    """The evidence of any other run as it is, and of every run where nobody will make it again (`last_try`).

    Raises:
        InfraError: what CUDA, NCCL or the driver reported ended the run; says which GPU and with which words.
    """
    fault = machine_fault(FailedRun(evidence)) if isinstance(evidence, Evidence) and not last_try else None
    if fault is not None:
        raise InfraError(
            f"The run ended because {fault.device} reported “{fault.words}”. Unless the script says so itself, that is "
            "the machine's fault: look at it with `grader devices` and judge the submission again."
        )
    return evidence
