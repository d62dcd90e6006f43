"""From findings and measures to a verdict and points. Pure: the same evidence gives the same outcome, to the byte.

Decides; looks at nothing itself. A verdict stands on what was seen from outside and by the scorer, the data-parallel
items on checks; what could not be seen is neither passed nor failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.phrases import listed
from grader.checks.rule import in_words
from grader.evaluate.points.outcome import Outcome
from grader.evaluate.points.reviews import held_for, review_reasons, subjects_of
from grader.evaluate.points.rubric import charges, costs, judge_item
from grader.evaluate.points.scale import ScaleConditions, scale
from grader.evaluate.time.throughput import num_epochs, num_steps, samples_per_s
from grader.evaluate.time.timing import COLD, Timing, timing
from grader.model.finding import Finding, Severity
from grader.model.grade import CheckResult, ItemState, RubricResult, Verdict
from grader.model.metric import target_of, validation_of
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
MAX_UNTRAINED = 10.0
"""Points that an attempt earns at most before anything is trained: all that is asked for serves a training."""
_MOST_NAMED = 2
"""Things that a run did not come to, by name in a verdict's sentence."""
_MISSED = (ItemState.LOST, ItemState.PARTLY, ItemState.NOT_REACHED)


@dataclass(frozen=True, slots=True)
class Score:
    """What a grade says; meanings as in `model.grade.Grade`."""

    verdict: Verdict
    reason: str
    rubric: tuple[RubricResult, ...]
    points: float
    max_points: float
    metrics: dict[str, float | None]
    notes: tuple[str, ...]
    review: tuple[str, ...] = ()
    review_subjects: tuple[str, ...] = ()
    gating: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missed:
    """Something that gates acceptance: in words, and the codes of what was found there.

    `reached`: the run came to it, so that something is to be said of it.
    """

    sentence: str
    codes: tuple[str, ...]
    reached: bool = True


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
    outcome = Outcome(evidence, task, findings, checks, time)
    items = scale(task, ScaleConditions.of(evidence))
    charged = charges(items, findings, completed=outcome.completed)
    rubric = tuple(judge_item(item, charged.get(item.item.id, ()), outcome) for item in items)
    if not outcome.trained:
        rubric = _capped(rubric, outcome)
    points, max_points = round(sum(r.earned for r in rubric), 2), round(sum(r.points for r in rubric), 2)
    reasons = review_reasons(findings, rubric, outcome)
    subjects = subjects_of(reasons)
    gates = missed(task, findings, rubric, charged)
    verdict, reason = _verdict(findings, _in_one_sentence(gates, outcome.trained), run, subjects)
    if run is not None and (without := _without_gpus(task, run)):
        verdict, reason = Verdict.JUDGE_ERROR, without
    return Score(
        verdict=verdict,
        reason=reason,
        rubric=rubric,
        points=points,
        max_points=max_points,
        metrics=_metrics(task, evidence.facts.dataset, run, time),
        notes=_notes(task, run, time),
        review=tuple(reason.text for reason in reasons) if verdict is Verdict.HELD else (),
        review_subjects=subjects if verdict is Verdict.HELD else (),
        gating=gating_codes(gates),
    )


def gating_codes(missed: list[Missed]) -> tuple[str, ...]:
    """Codes of what was found there, each once."""
    return tuple(sorted({code for one in missed for code in one.codes}))


def _verdict(
    findings: tuple[Finding, ...],
    missed: str,
    run: Evidence | None,
    review_subjects: tuple[str, ...],
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
    if any(f.holds for f in findings):
        return Verdict.HELD, held_for(review_subjects)
    if record.ending in _ENDINGS:
        return _ENDINGS[record.ending], record.ending_reason
    if missed:
        return Verdict.REJECTED, f"What must be right is not yet: {missed}."
    # Only what would otherwise be accepted needs a person: a learner who misses a target is told so at once.
    if review_subjects:
        return Verdict.HELD, held_for(review_subjects)
    return Verdict.ACCEPTED, "Everything that must be right was seen to be right."


def _without_gpus(task: Task, run: Evidence) -> str:
    """Why nothing can be said of a run: its profile promises each rank a GPU, and nobody saw these; "" where it can."""
    profile = task.profile(run.facts.profile)
    if profile is None or profile.backend != "nccl" or run.facts.on_cpu:
        return ""
    num_ranks, num_gpus = run.record.world_size, len(run.record.devices)
    if num_gpus >= num_ranks:
        return ""
    return (
        f"The {profile.name} profile gives each of {num_ranks} ranks a GPU, and {num_gpus or 'none'} of them stood in "
        "the record of the run. Judge it again where there are as many."
    )


def _capped(rubric: tuple[RubricResult, ...], outcome: Outcome) -> tuple[RubricResult, ...]:
    """The items of a run that trained nothing: together they earn no more than MAX_UNTRAINED, the first ones first."""
    capped, left = [], MAX_UNTRAINED
    for item in rubric:
        earned = min(item.earned, round(left, 2))
        left -= earned
        if earned == item.earned:
            capped.append(item)
            continue
        # Why it would have earned more, or a part of it, is beside the point.
        why = outcome.not_reached(
            f"Nothing was trained: without that, the attempt earns at most {MAX_UNTRAINED:g} points in all."
        ).reason
        state = ItemState.PARTLY if earned else ItemState.NOT_REACHED
        capped.append(replace(item, earned=earned, state=state, reason=why))
    return tuple(capped)


def missed(
    task: Task,
    findings: tuple[Finding, ...],
    rubric: tuple[RubricResult, ...],
    charged: Mapping[str, tuple[str, ...]],
) -> list[Missed]:
    """What gates acceptance and was found wrong, in the order of the rubric, then single codes.

    A warning that was only charged to an item costs its points and gates nothing.
    """
    gates: list[Missed] = []
    named, told = set[str](), {f.code for f in findings}
    only_charged = {code for codes in charged.values() for code in codes}
    gating = {f.code for f in findings if costs(f) and (f.severity is Severity.ERROR or f.code in task.must)}
    for item in rubric:
        minor = item.state is ItemState.PARTLY and item.codes and set(item.codes) <= only_charged - gating
        if item.must and item.state in _MISSED and not minor:
            sentence = f"“{item.title}”{_missed_by(item, told)}"
            reached = bool(item.codes) or item.state is not ItemState.NOT_REACHED
            gates.append(Missed(sentence, item.codes, reached))
            named |= set(item.codes)
    if rest := sorted(gating - named):
        gates.append(Missed(f"what {listed(rest)} found", tuple(rest)))
    return gates


def _in_one_sentence(missed: list[Missed], trained: bool) -> str:
    """Each by name; of a script that trained nothing only what it came to, and how many more there are."""
    later = [one for one in missed if not one.reached]
    if trained or len(later) <= _MOST_NAMED or len(later) == len(missed):
        return "; ".join(one.sentence for one in missed)
    named = "; ".join(one.sentence for one in missed if one.reached)
    return f"{named}; and {len(later)} more that were not reached"


def _missed_by(item: RubricResult, told: set[str]) -> str:
    if item.codes:
        # What was folded into its cause has no finding to look up: it is said in words.
        found = [code for code in item.codes if code in told]
        return f" ({', '.join(found) or ' and '.join(map(in_words, item.codes))})"
    return " (not reached)" if item.state is ItemState.NOT_REACHED else f": {item.reason.rstrip('.')}"


def _metrics(task: Task, dataset: str, run: Evidence | None, time: Timing) -> dict[str, float | None]:
    record, trace = (run.record, run.trace) if run is not None else (None, None)
    evaluation, calibration = (run.evaluation, run.calibration) if run is not None else (None, None)
    hidden = evaluation.hidden if evaluation is not None else {}
    validation = evaluation.validation if evaluation is not None else {}
    speed = samples_per_s(trace, in_rows=task.counted_in_rows)
    alone = calibration.one_rank_samples_per_s if calibration is not None else None
    # A run that stopped early shows its start, which is no measure of its speed.
    whole = record is not None and record.ending is Ending.COMPLETED
    speedup = speed / alone if whole and speed and alone else None
    if speedup is not None and record is not None and speedup > record.world_size * MAX_EFFICIENCY:
        # Ranks together are not that much faster than alone: the one rank was measured while the machine was busy.
        speedup, alone = None, None
    levels, measured = task.levels(dataset), dict[str, float | None]()
    # What evaluate() says beside the task's metrics, such as a loss, comes after them.
    for name in dict.fromkeys((*(metric.name for metric in task.metrics), *hidden)):
        measured[name] = hidden.get(name)
        if name in levels:
            measured[target_of(name)] = levels[name]
        measured[validation_of(name)] = validation.get(name)
    return measured | {
        "cpu_s": record.slowest_cpu_s if record is not None else None,
        "wall_s": record.wall_s if record is not None else None,
        "time_s": time.seconds,
        "time_target_s": time.target_s,
        "samples_per_s": speed,
        "samples_per_s_one_rank": alone,
        "speedup": speedup,
        "efficiency": speedup / record.world_size if speedup is not None and record is not None else None,
        "num_epochs": num_epochs(trace),
        "num_steps": num_steps(trace),
    }


def _notes(task: Task, run: Evidence | None, time: Timing) -> tuple[str, ...]:
    if run is None:
        return ()
    notes = []
    profile, calibration = task.profile(run.facts.profile), run.calibration
    if run.record.world_size == 1 and profile is not None and profile.nproc_per_node * profile.nnodes > 1:
        notes.append(
            "Run on one rank: whether samples and gradients are shared rightly shows only with two or more, so the "
            "other items share the points of those."
        )
    if task.target("time") is None or not run.facts.timed:
        return tuple(notes)
    calibrate = (
        f"grader calibrate {task.name}{' --cold' if run.facts.launcher == COLD != task.launcher else ''}"
    )
    if calibration is None:
        notes.append(f"There is no reference time for this machine; `{calibrate}` measures one.")
    elif calibration.provisional:
        notes.append(
            "Time is held against a provisional measure of the reference on this machine, and speed-up against one run "
            f"on one rank; `{calibrate}` measures them properly."
        )
    if time.num_repeats:
        why = f"within the measured spread ({time.spread:.0%})"
        if run.record.disturbed:
            why = "while other work kept the machine busy"
        notes.append(
            f"The first run missed the time target {why}, so it was repeated: the median of {time.counted} decides, "
            "and only in your favour."
        )
    return tuple(notes)
