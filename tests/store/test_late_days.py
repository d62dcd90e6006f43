"""Late days: used by themselves, for what counts, in the order of hand-ins; the same again whatever is recomputed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.limits import LateBank, Limit, Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.clock import now
from grader.store.courses import late_days, task_withdrawal
from grader.store.courses.extensions import Extension, extend, retract_extension
from grader.store.grading.gradebook import gradebook
from grader.store.grading.progress import OwnTask, progress
from grader.store.tables.course_task import LatePolicy
from tests.store.campus import Campus, verdict_of

DAY = timedelta(days=1)
REDUCED = {"late_policy": LatePolicy.REDUCED, "late_loss": 0.1}


def give(campus: Campus, total: int = 3, per_task: int | None = 2) -> None:
    late_days.set_late_bank(campus.store, campus.course, LateBank(total, per_task), actor_id=campus.ines)


def due(campus: Campus, name: str, days_ago: float, **terms: object) -> int:
    """A task that was due so many days ago."""
    with campus.store.read() as connection:
        at = now(connection)
    return campus.set_task(name, due_at=at - days_ago * DAY, **terms)


def judged(campus: Campus, task: int, points: float = 80.0) -> int:
    return campus.judge(campus.anna, grade=verdict_of(Verdict.ACCEPTED, points), task=task)


def counts(campus: Campus, task: int) -> tuple[float, int]:
    """Points that count for anna, and the late days that they took."""
    (row,) = [one for one in gradebook(campus.store, campus.course).rows if one.person_id == campus.anna]
    result = row.cells[task].result
    assert result is not None
    return result.points, result.free_days


def own(campus: Campus, task: int) -> OwnTask:
    return next(one for one in progress(campus.store, campus.course, campus.anna) if one.task.id == task)


def test_they_are_used_before_points_are_lost_and_no_more_than_there_are(campus: Campus) -> None:
    first = due(campus, "first", 0.5, **REDUCED)
    second = due(campus, "second", 2.5, **REDUCED)
    give(campus)
    assert own(campus, first).free_days == 1
    judged(campus, first)
    assert counts(campus, first) == (80.0, 1)
    # Three days late, of which one task may take two; two are left.
    assert own(campus, second).free_days == 2
    attempt = judged(campus, second)
    assert counts(campus, second) == (72.0, 2)
    assert own(campus, second).used_free_days == 2
    third = due(campus, "third", 0.5, **REDUCED)
    assert own(campus, third).free_days == 0, "all are used"
    judged(campus, third)
    assert counts(campus, third) == (72.0, 0)
    result = results_of(campus.store, [attempt])[attempt]
    assert (result.late_days, result.free_days) == (3, 2)
    assert result.late_loss == pytest.approx(0.1)


def test_a_closed_task_takes_what_late_days_cover(campus: Campus) -> None:
    task = due(campus, "closed", 1.5)
    refused = campus.hand_in(campus.anna, task=task)
    assert isinstance(refused, Refusal)
    assert refused.limit is Limit.PAST_DUE
    give(campus)
    assert isinstance(campus.hand_in(campus.anna, task=task), Receipt)
    # What is not judged yet holds its days: they are not promised twice.
    other = due(campus, "other", 1.5)
    refused = campus.hand_in(campus.anna, task=other)
    assert isinstance(refused, Refusal)
    assert own(campus, other).refusal == refused
    due(campus, "other", 0.5)
    assert isinstance(campus.hand_in(campus.anna, task=other), Receipt), "one day was left"


def test_only_what_counts_uses_them(campus: Campus) -> None:
    first = due(campus, "first", 0.5, **REDUCED)
    give(campus, total=1, per_task=None)
    judged(campus, first, 90.0)
    judged(campus, first, 50.0)
    second = due(campus, "second", 0.5, **REDUCED)
    judged(campus, second, 70.0)
    assert counts(campus, first) == (90.0, 1)
    assert counts(campus, second) == (63.0, 0)


def test_they_follow_dates_regrades_and_what_the_course_does_without(campus: Campus) -> None:
    first, second = due(campus, "first", 0.5, **REDUCED), due(campus, "second", 0.5, **REDUCED)
    give(campus, total=1)
    judged(campus, first)
    judged(campus, second)
    assert (counts(campus, first), counts(campus, second)) == ((80.0, 1), (72.0, 0))
    with campus.store.read() as connection:
        later = now(connection) + DAY
    # More time for the first gives its day back, and the second, handed in later, takes it.
    extend(campus.store, first, Extension(later), person_ids=[campus.anna], actor_id=campus.ines)
    assert (counts(campus, first), counts(campus, second)) == ((80.0, 0), (80.0, 1))
    retract_extension(campus.store, first, campus.anna, actor_id=campus.ines)
    assert (counts(campus, first), counts(campus, second)) == ((80.0, 1), (72.0, 0))
    task_withdrawal.withdraw_task(campus.store, campus.course, first, actor_id=campus.ines)
    assert counts(campus, second) == (80.0, 1)
    task_withdrawal.set_task_again(campus.store, campus.course, first, actor_id=campus.ines)
    assert counts(campus, second) == (72.0, 0)
    late_days.set_late_bank(campus.store, campus.course, None, actor_id=campus.ines)
    assert (counts(campus, first), counts(campus, second)) == ((72.0, 0), (72.0, 0))


def test_minutes_of_grace_are_not_late(campus: Campus) -> None:
    task = due(campus, "first", 1 / 24, grace_minutes=90)
    attempt = judged(campus, task)
    assert results_of(campus.store, [attempt])[attempt].late_days == 0
    due(campus, "first", 1 / 24, grace_minutes=30, **REDUCED)
    assert results_of(campus.store, [attempt])[attempt].late_days == 1, "counted from the due date"
