"""What judging one of a task's own submissions gave, against what its folder and its comments promise.

Compares and says what differs; nothing is run, judged or printed here.
"""

from __future__ import annotations

import time
from dataclasses import replace

from grader.checks.rule import load_rules
from grader.checks.rule_failures import parted
from grader.evaluate.points.rubric import costs
from grader.evaluate.points.scale import FULL, ScaleConditions, scale
from grader.judging.attempt import Attempt
from grader.model.finding import EvidenceKind, Severity, family_of
from grader.model.grade import Grade, ItemState, Verdict
from grader.model.promise import PromisedSubmission
from grader.model.run import Ending
from grader.model.task import TIME, Profile, Task
from grader.model.verify_case import VerifyCase
from grader.report.audience import Audience
from grader.report.json_report import to_json

_POINTS_SLACK = 0.01
"""Points are rounded to hundredths."""


def case_of(task: Task, promised: PromisedSubmission, attempt: Attempt, began: float) -> VerifyCase:
    """What an attempt at one of the task's own submissions shows; `began`: when it began, on the monotonic clock."""
    if _only_late(task, promised, attempt):
        return not_run(task, promised, "All that is wrong with it is its time, which was left out.")
    grade, broken = attempt.grade, broken_promises(promised, attempt)
    return promise_case(
        task, promised, grade.verdict.value, found_codes(attempt), _short(grade), began, broken
    )


def not_run(task: Task, promised: PromisedSubmission, why: str) -> VerifyCase:
    """A case of which nothing can be said, and why."""
    return VerifyCase(
        task=task.name,
        submission=promised.path.relative_to(task.folder / "submissions").as_posix(),
        expected_verdict=promised.verdict,
        verdict="",
        expected_codes=tuple(sorted(promised.codes)),
        codes=(),
        seconds=0.0,
        message="",
        ok=True,
        skipped=why,
    )


def case_name(task: Task, promised: PromisedSubmission, runtime: str = "") -> str:
    """What its case will be called; `runtime`: where it is judged, if others are judged somewhere else."""
    return replace(not_run(task, promised, ""), runtime=runtime).name


def promise_case(
    task: Task,
    promised: PromisedSubmission,
    verdict: str,
    codes: tuple[str, ...],
    short: tuple[str, ...],
    began: float,
    broken: list[str],
) -> VerifyCase:
    """Promise and outcome; `short`: ids of items that earned less than they could, `broken`: what differs."""
    return VerifyCase(
        task=task.name,
        submission=promised.path.relative_to(task.folder / "submissions").as_posix(),
        expected_verdict=promised.verdict,
        verdict=verdict,
        expected_codes=tuple(sorted(promised.codes)),
        codes=codes,
        seconds=time.monotonic() - began,
        message="; ".join(broken),
        ok=not broken,
        short=short,
    )


def broken_promises(promised: PromisedSubmission, attempt: Attempt) -> list[str]:
    """What the outcome and the promise disagree about, as sentences; empty when it was kept.

    A promise holds for every number of ranks; on one rank alone, what only several can show may be missing.
    """
    grade = attempt.grade
    broken = []
    if grade.verdict.value != promised.verdict and not _untimed(attempt):
        why = " ".join(grade.review) or grade.verdict_reason
        broken.append(f"verdict {grade.verdict.value}, promised {promised.verdict} ({why})")
    known, failures = parted(grade.findings)
    broken += [failure.message for failure in failures]
    codes, expected = {finding.code for finding in known}, set(promised.codes)
    # A busy machine must not break a promise that says nothing about its clock.
    codes -= {rule.code for rule in load_rules() if rule.clocked} - expected
    if codes - expected:
        broken.append(f"found but not promised: {' '.join(sorted(codes - expected))}")
    if expected - codes and not one_rank_of_several(grade.world_size, attempt.task.profile(grade.profile)):
        broken.append(f"promised but not found: {' '.join(sorted(expected - codes))}")
    if grade.verdict is Verdict.ACCEPTED:
        errors = sorted({f.code for f in grade.findings if f.severity is Severity.ERROR})
        if errors:
            broken.append(f"accepted with findings of severity error: {' '.join(errors)}")
    broken += _wrong_points(promised, attempt)
    broken += _charged_nowhere(attempt)
    for marker in promised.markers:
        places = {
            (place.path, place.line) for f in grade.findings if f.code == marker.code for place in f.where
        }
        path, line = marker.where.path, marker.where.line
        if marker.code in codes and (path, line) not in places:
            seen = ", ".join(f"{p}:{n}" for p, n in sorted(places)) or "no line"
            broken.append(f"{marker.code} points at {seen}, the marker stands at {path}:{line}")
    return broken


def _untimed(attempt: Attempt) -> bool:
    """Whether an attempt is held for its time alone, which other work kept busy: no promise speaks of that."""
    grade, record = attempt.grade, attempt.record
    timed = {f"“{item.title}”" for item in attempt.task.rubric if item.metric == TIME}
    busy = record is not None and record.disturbed
    return busy and grade.verdict is Verdict.HELD and bool(timed) and set(grade.review_subjects) == timed


def _wrong_points(promised: PromisedSubmission, attempt: Attempt) -> list[str]:
    """Points that do not add up, are not of the scale that the page of the task tells, or were promised otherwise."""
    grade, broken = attempt.grade, []
    earned, worth = (
        round(sum(part), 2) for part in zip(*((r.earned, r.points) for r in grade.rubric), strict=True)
    )
    if (earned, worth) != (grade.points, grade.max_points) or not 0 <= earned <= worth == FULL:
        broken.append(
            f"{grade.points:g} of {grade.max_points:g} points, and its items sum to {earned:g} of {worth:g}"
        )
    told = _planned_points(attempt)
    if other := [r.id for r in grade.rubric if told and r.points != told[r.id]]:
        broken.append(f"worth other points than the task's page says: {', '.join(other)}")
    accepted = grade.verdict == promised.verdict == Verdict.ACCEPTED
    timed = {item.id for item in attempt.task.rubric if item.metric == TIME}
    # Nothing between ranks can show on one, where several are meant.
    alone = one_rank_of_several(grade.world_size, attempt.task.profile(grade.profile))
    # What is accepted earns 100, less what time costs; fewer only by a fault and by points that are promised.
    due = accepted and not alone and not (promised.points and promised.codes)
    if due and (short := [i for i in _short(grade) if i not in timed]):
        why = "; promise what it earns with `# points:`" if promised.codes else ", with no finding promised"
        broken.append(f"accepted, and short of points in: {', '.join(short)}{why}")
    if promised.points is not None and _points_hold(attempt):
        low, high = promised.points
        late = sum(r.points - r.earned for r in grade.rubric if r.id in timed) if accepted else 0.0
        if not low - _POINTS_SLACK <= grade.points + late <= high + _POINTS_SLACK:
            wanted = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            broken.append(f"{grade.points:g} points, promised {wanted}")
    return broken


def _planned_points(attempt: Attempt) -> dict[str, float]:
    """Item's id → points as told before anybody hands in; empty where the run was not one as the profile plans it."""
    task, facts = attempt.task, attempt.evidence.facts
    profile = task.profile(facts.profile)
    if profile is None or facts.on_cpu or not (facts.timed or task.target("time") is None):
        return {}
    planned = ScaleConditions.planned(task, profile)
    if (facts.world_size, facts.dataset) != (planned.num_ranks, planned.dataset):
        return {}
    return {scaled.item.id: scaled.points for scaled in scale(task, planned)}


def _charged_nowhere(attempt: Attempt) -> list[str]:
    """Findings that an item is about and is not charged with: a check and the item it belongs to would disagree.

    An error of a run that came to its end is charged somewhere in any case; a warning about what no item of the task
    asks for is told as advice.
    """
    grade, record = attempt.grade, attempt.record
    completed = record is not None and record.ending is Ending.COMPLETED
    charged = {code for item in grade.rubric for code in item.codes}
    shown = {item.id for item in grade.rubric if item.state is not ItemState.NOT_SHOWN}
    families = {family_of(c) for item in attempt.task.rubric if item.id in shown for c in item.requires}
    apart = set()
    for finding in filter(costs, grade.findings):
        error, about = finding.severity is Severity.ERROR, family_of(finding.code) in families
        due = (error and (completed or about)) or (about and finding.evidence is not EvidenceKind.SOURCE)
        if due and charged.isdisjoint((finding.code, *finding.details.get("explains", ()))):
            apart.add(finding.code)
    return [f"found, and no item is charged with it: {' '.join(sorted(apart))}"] if apart else []


def _short(grade: Grade) -> tuple[str, ...]:
    """Ids of the items that earned less than they could."""
    return tuple(item.id for item in grade.rubric if item.earned < item.points - _POINTS_SLACK)


def found_codes(attempt: Attempt) -> tuple[str, ...]:
    """Codes of all findings, those for staff included, sorted, each once."""
    return tuple(sorted({finding.code for finding in attempt.grade.findings}))


def _points_hold(attempt: Attempt) -> bool:
    """Whether all points can be earned here: not where the clock is left out, nor on one rank alone."""
    whole = attempt.evidence.facts.timed or attempt.task.target("time") is None
    return whole and not one_rank_of_several(
        attempt.grade.world_size, attempt.task.profile(attempt.grade.profile)
    )


def _only_late(task: Task, promised: PromisedSubmission, attempt: Attempt) -> bool:
    """Whether nothing but its time was to reject a submission, and the clock was left out."""
    clock = any(item.must and item.metric == "time" for item in task.rubric)
    left_out = not attempt.evidence.facts.timed
    promises_no_other = promised.verdict == Verdict.REJECTED and not promised.codes
    return clock and left_out and promises_no_other and attempt.grade.verdict is Verdict.ACCEPTED


def one_rank_of_several(world_size: int, profile: Profile | None) -> bool:
    """Whether one rank is started where the task means several to be."""
    return world_size == 1 and profile is not None and profile.nproc_per_node > 1


def effects_of(before: Grade, now: Grade) -> tuple[str, ...]:
    """What a change to what judges did to the outcome of a run, as short sentences; empty where it did nothing."""
    found = []
    if before.verdict is not now.verdict:
        found.append(f"verdict {before.verdict} → {now.verdict}")
    if (before.points, before.max_points) != (now.points, now.max_points):
        found.append(
            f"points {before.points:g} of {before.max_points:g} → {now.points:g} of {now.max_points:g}"
        )
    was, is_now = ({(f.code, f.severity): f for f in grade.findings} for grade in (before, now))
    found += [f"no longer {severity} {code}" for code, severity in was.keys() - is_now.keys()]
    found += [f"now {severity} {code}" for code, severity in is_now.keys() - was.keys()]
    both = was.keys() & is_now.keys()
    found += [f"other words or lines in {code}" for code, sev in both if was[code, sev] != is_now[code, sev]]
    if not found and to_json(before, audience=Audience.STAFF) != to_json(now, audience=Audience.STAFF):
        found.append("other words or figures in the report")
    return tuple(sorted(found))
