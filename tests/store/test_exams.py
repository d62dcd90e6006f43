"""Exams: begun once, ended by each one's own time or the window, frozen while they are on, told when released."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from grader.store.attempts.limits import UNRELEASED, ExamTime, Limit, Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.clock import now
from grader.store.courses import courses, exams, task_updates, task_withdrawal
from grader.store.courses.courses import TaskTerms
from grader.store.courses.exam_freeze import ExamRunsError
from grader.store.courses.extensions import Extension, extend
from grader.store.courses.task_terms import change_terms
from grader.store.courses.task_updates import TaskUpdate
from grader.store.grading.gradebook import feedback_opens_at, gradebook
from grader.store.grading.progress import progress
from grader.store.tables import ExamSittingRow
from tests.store.campus import VERSION, Campus

MINUTE = timedelta(minutes=1)


def limit(answer: object) -> Limit:
    assert isinstance(answer, Refusal), answer
    return answer.limit


def begun(campus: Campus, person_id: int, minutes_ago: float) -> None:
    """Let somebody have begun so long ago."""
    with campus.store.write() as connection:
        connection.execute(
            update(ExamSittingRow)
            .where(ExamSittingRow.person_id == person_id)
            .values(begun_at=now(connection) - minutes_ago * MINUTE)
        )


@pytest.fixture
def at(campus: Campus) -> datetime:
    """Now; the course's task is an exam of 60 minutes that opened an hour ago and closes in two."""
    with campus.store.read() as connection:
        at = now(connection)
    campus.set_task(opens_at=at - 60 * MINUTE, due_at=at + 120 * MINUTE, exam_minutes=60)
    return at


def test_ones_own_time_begins_once_and_ends(campus: Campus, at: datetime) -> None:
    store, task, anna = campus.store, campus.task, campus.anna
    assert limit(campus.hand_in(anna)) is Limit.EXAM_NOT_BEGUN
    first = exams.begin(store, task, anna)
    assert isinstance(first, ExamTime)
    assert exams.begin(store, task, anna) == first, "once more changes nothing"
    assert first.begun_at is not None
    assert first.ends_at == first.begun_at + 60 * MINUTE
    campus.queue(anna)
    own = progress(store, campus.course, anna)[0]
    assert (own.exam, own.refusal, own.hidden_until) == (first, None, UNRELEASED)
    begun(campus, anna, 60.2)
    assert isinstance(campus.hand_in(anna), Receipt), "what was on its way is taken"
    begun(campus, anna, 61)
    assert limit(campus.hand_in(anna)) is Limit.EXAM_OVER
    assert progress(store, campus.course, anna)[0].refusal == Refusal(Limit.EXAM_OVER)
    extend(store, task, Extension(extra_minutes=15), person_ids=[anna], actor_id=campus.ines)
    assert isinstance(campus.hand_in(anna), Receipt)
    overview = exams.exam_overview(store, task)
    assert [(one.login, one.time.begun_at is not None, one.num_attempts) for one in overview.sittings] == [
        ("anna", True, 3),
        ("ben", False, 0),
    ]
    assert (overview.num_begun, overview.num_at_work) == (1, 1)
    assert limit(exams.begin(store, task, campus.person("zoe") + 1000)) is Limit.NOT_ENROLLED


def test_the_window_ends_it_for_all_but_those_with_more_minutes(campus: Campus, at: datetime) -> None:
    store, task = campus.store, campus.task
    for person in (campus.anna, campus.ben):
        exams.begin(store, task, person)
        begun(campus, person, 30)
    extend(store, task, Extension(extra_minutes=20), person_ids=[campus.ben], actor_id=campus.ines)
    terms = TaskTerms("Exam", VERSION, due_at=at - 5 * MINUTE, exam_minutes=60)
    there = courses.course_task(store, task)
    assert there is not None
    change_terms(store, there, terms, during_exam=True, actor_id=campus.ines)
    assert limit(campus.hand_in(campus.anna)) is Limit.EXAM_OVER
    attempt = campus.judge(campus.ben)
    (ben,) = [one for one in gradebook(store, campus.course).rows if one.person_id == campus.ben]
    result = ben.cells[task].result
    assert result is not None
    assert (result.late_days, result.points) == (0, 100.0), f"attempt {attempt} is not late"
    assert limit(exams.begin(store, task, campus.person("zoe"))) is Limit.PAST_DUE


def test_it_is_frozen_while_it_is_on(campus: Campus, at: datetime) -> None:
    store, task = campus.store, campus.task
    exams.begin(store, task, campus.anna)
    other = TaskUpdate(task, VERSION, "b" * 64, "cpu")
    for change in (
        lambda: campus.set_task(weight=2.0),
        lambda: task_updates.apply_update(store, other, actor_id=campus.ines),
        lambda: task_withdrawal.withdraw_task(store, campus.course, task, actor_id=campus.ines),
    ):
        with pytest.raises(ExamRunsError, match="1 has begun"):
            change()
    terms = TaskTerms("Exam", VERSION, due_at=at - 5 * MINUTE, exam_minutes=60)
    there = courses.course_task(store, task)
    assert there is not None
    change_terms(store, there, terms, during_exam=True, actor_id=campus.ines)
    assert task_updates.apply_update(store, other, actor_id=campus.ines), "it is over"


def test_how_it_went_is_told_when_it_is_released(campus: Campus, at: datetime) -> None:
    store, task = campus.store, campus.task
    exams.begin(store, task, campus.anna)
    campus.judge(campus.anna)
    assert feedback_opens_at(store, task, campus.anna) == UNRELEASED
    assert exams.release_feedback(store, campus.course, task, True, actor_id=campus.ines)
    assert not exams.release_feedback(store, campus.course, task, True, actor_id=campus.ines)
    assert feedback_opens_at(store, task, campus.anna) is None
    own = progress(store, campus.course, campus.anna)[0]
    assert (own.hidden_until, own.accepted) == (None, True)


def test_more_attempts_for_one_and_nobody_loses_by_more_for_all(campus: Campus) -> None:
    campus.set_task(max_total=1)
    campus.queue(campus.anna)
    campus.queue(campus.ben)
    assert limit(campus.hand_in(campus.anna)) is Limit.TOTAL
    one = [campus.anna]
    extend(campus.store, campus.task, Extension(extra_total=2), person_ids=one, actor_id=None)
    assert extend(campus.store, campus.task, Extension(extra_total=1), actor_id=None) == 1, "ben alone"
    for person, more in ((campus.anna, 2), (campus.ben, 1)):
        for _ in range(more):
            campus.queue(person)
        assert limit(campus.hand_in(person)) is Limit.TOTAL
    extend(campus.store, campus.task, Extension(extra_total=0), person_ids=one, actor_id=None)
    assert progress(campus.store, campus.course, campus.anna)[0].caps.total == 1
