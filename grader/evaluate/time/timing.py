"""A run's time against its target: which clock counts, where the target lies, when a second look is fair.

Pure. Miss is miss: a run that did not complete has no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median

from grader.checks.evidence import Evidence, SourceEvidence
from grader.model.calibration import Calibration
from grader.model.run import Ending, RunRecord
from grader.model.task import Profile, Task

_MAX_SPREAD = 0.5
COLD = "torchrun"
"""The launcher that starts an interpreter for every rank; its imports count in the run's time."""
TOO_FAST = 0.25
"""Share of the fastest calibrated run below which a person looks: no honest run of ours comes near it."""
_NEIGHBOURS = 3.0
"""Times the target up to which a busy machine may be to blame: neighbours on its cores were seen to double a time."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A run's time and what it is held against.

    Attributes:
        seconds: what counts, repeats considered; None where the run did not complete.
        target_s: the target; None without calibration or where the task sets none.
        spread: relative spread of the calibrated runs.
        clock: what was measured, in words.
        num_repeats: repeated runs considered.
        num_disturbed: runs, of all, that others left too little of the machine.
    """

    seconds: float | None
    target_s: float | None
    spread: float
    clock: str
    num_repeats: int
    num_disturbed: int = 0

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.seconds is not None and self.target_s is not None and self.seconds <= self.target_s

    @property
    def counted(self) -> str:
        """The runs whose median decides, in words."""
        num_runs = self.num_repeats + 1
        quiet = num_runs - self.num_disturbed
        if 0 < quiet < num_runs:
            return f"the {quiet} of {num_runs} runs that nothing else disturbed"
        return f"{num_runs} runs"

    @property
    def unsettled(self) -> bool:
        """Whether the target is missed by no more than those who kept the machine busy in every run may have cost."""
        if self.seconds is None or self.target_s is None or self.met:
            return False
        return self.num_disturbed > self.num_repeats and self.seconds <= _NEIGHBOURS * self.target_s


def measured_s(record: RunRecord, profile: Profile) -> float | None:
    """Seconds that count: CPU time of the slowest rank under gloo, wall time on GPUs; None unless completed.

    Two ranks on shared cores wait for each other and for the neighbours, so that wall time there says more about the
    machine than about the script.
    """
    if record.ending is not Ending.COMPLETED:
        return None
    return record.slowest_cpu_s if profile.backend == "gloo" else record.wall_s


def timing(evidence: Evidence | SourceEvidence, task: Task) -> Timing:
    """Hold a run against the calibration.

    With repeated runs the median decides, of those that nobody disturbed where there are any, and it can only help: a
    run that met the target stays a run that met it.
    """
    run = evidence if isinstance(evidence, Evidence) else None
    profile = task.profile(evidence.facts.profile)
    assert profile is not None, "who judges has looked"
    calibration = run.calibration if run is not None else None
    seconds = measured_s(run.record, profile) if run is not None else None
    records = (run.record, *run.repeats) if run is not None else ()
    if seconds is not None and len(records) > 1:
        quiet = [record for record in records if not record.disturbed]
        seconds = min(seconds, median(_repeat_s(record, profile) for record in quiet or records))
    target, slowest = task.target("time"), calibration.slowest if calibration is not None else None
    target_s = None
    if target is not None and target.factor is not None and slowest is not None:
        target_s = target.factor * slowest.median_s
    clock = "CPU time of the slowest rank" if profile.backend == "gloo" else "wall time"
    if evidence.facts.launcher == COLD:
        clock += " from a cold start"
    spread = min(calibration.spread, _MAX_SPREAD) if calibration is not None else 0.0
    num_disturbed = sum(record.disturbed for record in records)
    return Timing(seconds, target_s, spread, clock, max(0, len(records) - 1), num_disturbed)


def _repeat_s(record: RunRecord, profile: Profile) -> float:
    """Seconds of a repeated run."""
    # One that failed counts as one that took for ever; not counted, it would be asked for again and again.
    time = measured_s(record, profile)
    return time if time is not None else float("inf")


def needs_repeat(evidence: Evidence | SourceEvidence, task: Task) -> bool:
    """Whether the run should be repeated: it misses the target narrowly, or while others kept the machine busy.

    Narrowly is by no more than calibrated runs differ. Asked again after each repeat; three runs in all decide.
    """
    if isinstance(evidence, SourceEvidence) or len(evidence.repeats) >= 2:
        return False
    first = timing(replace(evidence, repeats=()), task)
    if first.seconds is None or first.target_s is None or first.met:
        return False
    found = timing(evidence, task)
    if found.unsettled or (found.met and evidence.record.disturbed):
        return not found.met
    assert found.seconds is not None, "a repeat takes no time away"
    return found.seconds <= first.target_s * (1 + first.spread)


def too_fast(found: Timing, calibration: Calibration | None) -> bool:
    """Whether the time lies beyond anything calibrated; never with a provisional calibration, which knows no band."""
    if calibration is None or calibration.provisional or found.seconds is None:
        return False
    fastest = min((s for style in calibration.styles for s in style.seconds), default=0.0)
    return found.seconds < TOO_FAST * fastest


def reference_notes(evidence: Evidence, task: Task) -> tuple[str, ...]:
    """How the reference was measured, where that is not as usual."""
    calibration = evidence.calibration
    if calibration is None or not evidence.facts.timed or task.target("time") is None:
        return ()
    notes = []
    if evidence.facts.launcher == COLD:
        notes.append(
            "This run was launched with the torchrun command, and so was the reference that its time is held against: "
            "starting Python and importing count in both."
        )
    if calibration.provisional and calibration.busy:
        notes.append(
            "The machine was busy each time the reference was measured. The quickest of its runs stands in, and it is "
            "measured again once the machine is quiet."
        )
    return tuple(notes)
