"""From findings and measures to a verdict and points. Pure: the same evidence gives the same outcome, to the byte.

Decides; looks at nothing itself. A verdict stands on what was seen from outside and by the scorer, the data-parallel
items on checks; what could not be seen is neither passed nor failed.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.evidence import Evidence, SourceEvidence
from grader.evaluate.rubric import Facts, accuracy_target, costs, judge_item
from grader.evaluate.throughput import images_per_s, num_epochs, num_steps
from grader.evaluate.timing import Timing, timing, too_fast
from grader.model.finding import Finding, Severity
from grader.model.grade import CheckResult, RubricResult, State, Verdict
from grader.model.run import Ending
from grader.model.task import Task

_ENDINGS = {
    Ending.TIMED_OUT: Verdict.TIMED_OUT,
    Ending.DEADLOCKED: Verdict.DEADLOCKED,
    Ending.OUT_OF_MEMORY: Verdict.OUT_OF_MEMORY,
    Ending.CRASHED: Verdict.CRASHED,
}
MAX_EFFICIENCY = 1.5
"""Speed-up per rank beyond which the measure of one rank is not believed; caches alone give some tenths."""
_HELD = "Held for review: a person looks at this attempt before it is graded. No attempt is lost."


@dataclass(frozen=True, slots=True)
class Score:
    """What a grade says; meanings as in `model.grade.Grade`. `review` has the reasons for holding, for staff."""

    verdict: Verdict
    reason: str
    rubric: tuple[RubricResult, ...]
    points: float
    max_points: float
    metrics: dict[str, float | None]
    notes: tuple[str, ...]
    review: tuple[str, ...] = ()


def score(
    evidence: Evidence | SourceEvidence,
    task: Task,
    findings: tuple[Finding, ...],
    checks: tuple[CheckResult, ...],
) -> Score:
    """Points and verdict of one attempt.

    Args:
        evidence: the run, or the text alone of a submission that does not parse.
        task: what it is judged by.
        findings, checks: results of the checks.
    """
    run = evidence if isinstance(evidence, Evidence) else None
    time = timing(evidence, task)
    facts = Facts(evidence, findings, checks, time)
    rubric = tuple(judge_item(item, task, facts) for item in task.rubric)
    points, max_points = round(sum(r.earned for r in rubric), 2), round(sum(r.points for r in rubric), 2)
    review = _review(task, findings, rubric, time, run)
    verdict, reason = _verdict(task, findings, rubric, run, review, f"{points:g} of {max_points:g} points")
    return Score(
        verdict=verdict,
        reason=reason,
        rubric=rubric,
        points=points,
        max_points=max_points,
        metrics=_metrics(task, evidence.facts.dataset, run, time),
        notes=_notes(task, run, time),
        review=review if verdict is Verdict.HELD else (),
    )


def _verdict(
    task: Task,
    findings: tuple[Finding, ...],
    rubric: tuple[RubricResult, ...],
    run: Evidence | None,
    review: tuple[str, ...],
    points: str,
) -> tuple[Verdict, str]:
    if run is None:
        first = next((f for f in findings if f.severity is Severity.ERROR), None)
        return (
            Verdict.REJECTED,
            f"Nothing was run. {first.message if first else 'The submission cannot be started.'}",
        )
    record = run.record
    if record.ending is Ending.INTERRUPTED:
        return Verdict.JUDGE_ERROR, f"The judging was stopped from our side: {record.ending_reason}"
    if any(_holds(f) for f in findings):
        return Verdict.HELD, _HELD
    if record.ending in _ENDINGS:
        return _ENDINGS[record.ending], record.ending_reason
    if missed := _missed(task, findings, rubric):
        return Verdict.REJECTED, "What must be right is not yet: " + "; ".join(missed) + "."
    # Only what would otherwise be accepted needs a person: a learner who misses a target is told so at once.
    if review:
        return Verdict.HELD, _HELD
    return Verdict.ACCEPTED, f"Everything that must be right was seen to be right: {points}."


def _holds(finding: Finding) -> bool:
    """Review findings hold an attempt unless they say that they only inform."""
    return finding.severity is Severity.REVIEW and finding.details.get("holds", True) is not False


def _missed(task: Task, findings: tuple[Finding, ...], rubric: tuple[RubricResult, ...]) -> list[str]:
    """What gates acceptance and was found wrong, in the order of the rubric, then single codes."""
    missed, named = [], set[str]()
    for item in rubric:
        if item.must and item.state is State.CONTRADICTED:
            codes = f" ({', '.join(item.codes)})" if item.codes else ""
            missed.append(f"“{item.title}”{codes or ': ' + item.reason.rstrip('.')}")
            named |= set(item.codes)
    gating = {f.code for f in findings if costs(f) and (f.severity is Severity.ERROR or f.code in task.must)}
    if rest := sorted(gating - named):
        missed.append(", ".join(rest))
    return missed


def _review(
    task: Task,
    findings: tuple[Finding, ...],
    rubric: tuple[RubricResult, ...],
    time: Timing,
    run: Evidence | None,
) -> tuple[str, ...]:
    # One rank has nobody to share with: what only several can show is missing by the asker's choice.
    unseen_counts = run is not None and run.record.ending is Ending.COMPLETED and run.record.world_size > 1
    calibration = run.calibration if run is not None else None
    reasons = [f"{f.code}: {f.message}" for f in findings if _holds(f)]
    for item in rubric if unseen_counts else ():
        unseen = item.full_points - item.points
        if unseen > task.max_points / 10:
            reasons.append(
                f"{unseen:g} of {item.full_points:g} points of “{item.title}” could not be observed: {item.reason}"
            )
    if calibration is not None and too_fast(time, calibration):
        reasons.append(f"{time.seconds:.1f} s is far below every calibrated run.")
    return tuple(reasons)


def _metrics(task: Task, dataset: str, run: Evidence | None, time: Timing) -> dict[str, float | None]:
    record, trace = (run.record, run.trace) if run is not None else (None, None)
    evaluation, calibration = (run.evaluation, run.calibration) if run is not None else (None, None)
    hidden = evaluation.hidden if evaluation is not None else {}
    validation = evaluation.validation if evaluation is not None else {}
    speed, alone = images_per_s(trace), calibration.one_rank_images_per_s if calibration is not None else None
    # A run that stopped early shows its start, which is no measure of its speed.
    whole = record is not None and record.ending is Ending.COMPLETED
    speedup = speed / alone if whole and speed and alone else None
    if speedup is not None and record is not None and speedup > record.world_size * MAX_EFFICIENCY:
        # Ranks together are not that much faster than alone: the one rank was measured while the machine was busy.
        speedup, alone = None, None
    return {
        "accuracy": hidden.get("accuracy"),
        "accuracy_target": accuracy_target(task, dataset),
        "loss": hidden.get("loss"),
        "validation_accuracy": validation.get("accuracy"),
        "validation_loss": validation.get("loss"),
        "cpu_s": record.slowest_cpu_s if record is not None else None,
        "wall_s": record.wall_s if record is not None else None,
        "time_s": time.seconds,
        "time_target_s": time.target_s,
        "images_per_s": speed,
        "images_per_s_one_rank": alone,
        "speedup": speedup,
        "efficiency": speedup / record.world_size if speedup is not None and record is not None else None,
        "num_epochs": num_epochs(trace),
        "num_steps": num_steps(trace),
    }


def _notes(task: Task, run: Evidence | None, time: Timing) -> tuple[str, ...]:
    if run is None:
        return ()
    notes = []
    profile, calibration = task.profile(run.profile), run.calibration
    if run.record.world_size == 1 and profile is not None and profile.nproc_per_node * profile.nnodes > 1:
        notes.append(
            "Run on one rank: whether samples and gradients are shared rightly shows only with two or more, so those "
            "items left the total."
        )
    if task.target("time") is None:
        return tuple(notes)
    if calibration is None:
        notes.append(
            f"There is no reference time for this machine; `grader calibrate {task.name}` measures one."
        )
    elif calibration.provisional:
        notes.append(
            "Time is held against one provisional run of the reference on this machine, and speed-up against one run "
            f"on one rank; `grader calibrate {task.name}` measures them properly."
        )
    if time.num_repeats:
        notes.append(
            f"The first run missed the time target within the measured spread ({time.spread:.0%}), so it was repeated: "
            f"the median of {time.num_repeats + 1} runs decides, and only in your favour."
        )
    return tuple(notes)
