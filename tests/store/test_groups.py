"""Groups that hand in together: one attempt counts for all who were in the group then, for their limits, too."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.store.attempts import submissions
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import NewSubmission, Receipt
from grader.store.clock import now
from grader.store.courses import enrolments, extensions, learner_groups
from grader.store.courses.extensions import Extension
from grader.store.courses.grading_rules import GradingRules, TaskGrading, set_grading_rules, set_task_grading
from grader.store.database import Store
from grader.store.files import open_files
from grader.store.grading import gradebook, progress
from grader.store.grading.credits import people_of
from grader.store.people import erasure
from grader.store.tables.course_task import LatePolicy
from tests.store.campus import Campus, script, verdict_of


def together(campus: Campus, *people: int) -> int:
    group = learner_groups.make_group(campus.store, campus.course, "Blue", actor_id=campus.ines)
    for one in people:
        learner_groups.put_into_group(campus.store, campus.course, group, one, actor_id=campus.ines)
    return group


def judge(campus: Campus, person_id: int, points: float = 100.0) -> int:
    return campus.judge(person_id, grade=verdict_of(points=points))


def points_of(campus: Campus, person_id: int) -> float | None:
    book = gradebook.gradebook(campus.store, campus.course)
    cell = next(row for row in book.rows if row.person_id == person_id).cells.get(campus.task)
    return None if cell is None or cell.result is None else cell.result.points


def test_an_attempt_counts_for_the_whole_group_and_stays_when_the_group_changes(campus: Campus) -> None:
    cleo = campus.person("cleo")
    group = together(campus, campus.anna, campus.ben)
    attempt_id = judge(campus, campus.anna, 80)
    assert people_of(campus.store, attempt_id) == {campus.anna, campus.ben}
    assert [points_of(campus, one) for one in (campus.anna, campus.ben, cleo)] == [80, 80, None]
    assert [one.id for one in attempts(campus.store, AttemptFilter(person_id=campus.ben))] == [attempt_id]
    (own,) = progress.progress(campus.store, campus.course, campus.ben)
    assert own.standing is not None
    assert (own.standing.attempt_id, own.num_attempts) == (attempt_id, 1)

    # Whoever comes later has nothing of it; whoever leaves keeps it; what follows counts for those who are there.
    learner_groups.take_out_of_group(campus.store, campus.course, campus.ben, actor_id=campus.ines)
    learner_groups.put_into_group(campus.store, campus.course, group, cleo, actor_id=campus.ines)
    assert [points_of(campus, one) for one in (campus.anna, campus.ben, cleo)] == [80, 80, None]
    judge(campus, cleo, 90)
    assert [points_of(campus, one) for one in (campus.anna, campus.ben, cleo)] == [90, 80, 90]
    learner_groups.dissolve_group(campus.store, campus.course, group, actor_id=campus.ines)
    assert [points_of(campus, one) for one in (campus.anna, campus.ben, cleo)] == [90, 80, 90]


def test_an_attempt_of_a_group_is_one_of_each_member(campus: Campus) -> None:
    campus.set_task(max_total=2)
    together(campus, campus.anna, campus.ben)
    campus.queue(campus.anna)
    campus.queue(campus.ben)
    for one in (campus.anna, campus.ben):
        assert campus.hand_in(one) == Refusal(Limit.TOTAL, 2, 2)
        (own,) = progress.progress(campus.store, campus.course, one)
        assert (own.used, own.refusal) == (2, Refusal(Limit.TOTAL, 2, 2))


def test_nobody_brings_a_group_attempts_that_another_member_has_had(campus: Campus) -> None:
    campus.set_task(max_total=1)
    campus.queue(campus.ben)
    together(campus, campus.anna, campus.ben)
    assert campus.hand_in(campus.anna) == Refusal(Limit.TOTAL, 1, 1)
    (own,) = progress.progress(campus.store, campus.course, campus.anna)
    assert own.refusal == Refusal(Limit.TOTAL, 1, 1)


def test_of_two_members_at_the_same_moment_the_second_counts_the_first(campus: Campus) -> None:
    campus.set_task(max_total=1)
    together(campus, campus.anna, campus.ben)
    first, second = submissions.submit_all(
        campus.store,
        [NewSubmission(one, campus.task, script(f"print({one})\n")) for one in (campus.anna, campus.ben)],
    )
    assert isinstance(first, Receipt)
    assert second == Refusal(Limit.TOTAL, 1, 1)


def test_a_group_is_as_late_as_its_last_date(campus: Campus) -> None:
    with campus.store.read() as connection:
        at = now(connection)
    campus.set_task(due_at=at - timedelta(hours=1), late_policy=LatePolicy.REDUCED, late_loss=0.5)
    together(campus, campus.anna, campus.ben)
    attempt_id = judge(campus, campus.anna, 100)
    assert results_of(campus.store, [attempt_id])[attempt_id].points == 50
    extensions.extend(
        campus.store,
        campus.task,
        Extension(at + timedelta(days=1)),
        person_ids=[campus.ben],
        actor_id=campus.ines,
    )
    assert results_of(campus.store, [attempt_id])[attempt_id].points == 100
    assert [points_of(campus, one) for one in (campus.anna, campus.ben)] == [100, 100]
    assert isinstance(receipt := campus.hand_in(campus.anna), Receipt)
    assert receipt.late_days == 0


def test_a_closed_task_takes_what_a_member_with_more_time_could_bring(campus: Campus) -> None:
    with campus.store.read() as connection:
        at = now(connection)
    campus.set_task(due_at=at - timedelta(hours=1))
    together(campus, campus.anna, campus.ben)
    assert campus.hand_in(campus.anna) == Refusal(Limit.PAST_DUE)
    extensions.extend(
        campus.store,
        campus.task,
        Extension(at + timedelta(days=1)),
        person_ids=[campus.ben],
        actor_id=campus.ines,
    )
    assert isinstance(campus.hand_in(campus.anna), Receipt)


def test_where_everybody_hands_in_alone_a_group_does_not_matter(campus: Campus) -> None:
    together(campus, campus.anna, campus.ben)
    set_task_grading(campus.store, campus.course, campus.task, TaskGrading(alone=True), actor_id=campus.ines)
    attempt_id = judge(campus, campus.anna)
    assert people_of(campus.store, attempt_id) == {campus.anna}
    assert points_of(campus, campus.ben) is None


def test_what_a_member_handed_in_outlives_their_erasure(campus: Campus, tmp_path: Path) -> None:
    together(campus, campus.anna, campus.ben)
    attempt_id = judge(campus, campus.anna, 70)
    files = open_files(campus.store, "", tmp_path)
    erasure.erase(campus.store, files, campus.anna, actor_id=campus.ines)
    assert people_of(campus.store, attempt_id) == {campus.ben}
    assert points_of(campus, campus.ben) == 70


def test_learners_form_groups_where_they_may_and_none_grows_too_large(campus: Campus) -> None:
    store, course = campus.store, campus.course
    with pytest.raises(UsageError, match="made by its instructors"):
        learner_groups.form_group(store, course, "Red", person_id=campus.anna)
    set_grading_rules(store, course, GradingRules(forms_groups=True, group_size=2), actor_id=campus.ines)
    learner_groups.form_group(store, course, "Red", person_id=campus.anna)
    group = learner_groups.group_of(store, course, campus.anna)
    assert group is not None
    with pytest.raises(UsageError, match="no group"):
        learner_groups.join_group(store, course, "NONE", person_id=campus.ben)
    assert learner_groups.join_group(store, course, group.join_code.lower(), person_id=campus.ben) == "Red"
    with pytest.raises(UsageError, match="already"):
        learner_groups.join_group(store, course, group.join_code, person_id=campus.ben)
    cleo = campus.person("cleo")
    with pytest.raises(UsageError, match="full"):
        learner_groups.join_group(store, course, group.join_code, person_id=cleo)
    dora = campus.person("dora")
    with pytest.raises(UsageError, match="full"):
        learner_groups.join_group(store, course, group.join_code, person_id=dora)
    learner_groups.leave_group(store, course, person_id=campus.ben)
    learner_groups.join_group(store, course, group.join_code, person_id=cleo)
    assert [one.login for one in learner_groups.groups_of(store, course)[0].members] == ["anna", "cleo"]
    enrolments.leave(store, course, cleo, actor_id=campus.ines)
    assert [one.login for one in learner_groups.groups_of(store, course)[0].members] == ["anna"]
    learner_groups.join_group(store, course, group.join_code, person_id=dora)


def test_a_list_is_taken_over_whole_or_not_at_all(campus: Campus) -> None:
    store: Store = campus.store
    with pytest.raises(UsageError, match="nobody"):
        learner_groups.put_into_groups(
            store, campus.course, {"anna": "A", "nobody": "A"}, actor_id=campus.ines
        )
    assert learner_groups.groups_of(store, campus.course) == ()
    made = learner_groups.put_into_groups(
        store, campus.course, {"anna": "A", "ben": "B"}, actor_id=campus.ines
    )
    assert (made, len(learner_groups.groups_of(store, campus.course))) == (2, 2)
