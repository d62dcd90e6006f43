"""What a learning platform is told of grades: noted with the standing, the latest alone, under times that rise."""

from __future__ import annotations

import pytest

from grader.model.grade import Verdict
from grader.store.courses.grading_rules import (
    GradingRules,
    TaskGrading,
    set_grading_rules,
    set_task_grading,
)
from grader.store.database import Store
from grader.store.delivery import deliveries
from grader.store.grading import reviews
from grader.store.lti import lti_contexts, lti_platforms, lti_rosters
from grader.store.lti.lti_contexts import PlatformContext
from grader.store.lti.lti_rosters import RosterMember
from grader.store.lti.lti_scores import CHANNEL, score_sent, score_to_send, send_all
from grader.store.tables.person import Role
from tests.store.campus import Campus, verdict_of
from tests.store.platforms import TERMS, connected


@pytest.fixture
def context(campus: Campus) -> PlatformContext:
    """A platform's course, connected to the campus's; nobody came by it yet."""
    return connected(campus.store, campus.course, campus.ines)


def listed(subject: str, role: Role | None = Role.LEARNER) -> RosterMember:
    return RosterMember(subject, f"Person {subject}", None, role, f"id-{subject}")


def num_queued(store: Store, course_id: int) -> int:
    return len(deliveries.deliveries_of(store, course_id, CHANNEL))


def test_the_latest_grade_is_told_once_and_times_rise(campus: Campus, context: PlatformContext) -> None:
    with campus.store.write() as connection:
        lti_contexts.note_member(connection, context, campus.anna, "u1")
    assert num_queued(campus.store, campus.course) == 0, "there is nothing to tell yet"
    attempt = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0))
    reviews.override(campus.store, attempt, Verdict.ACCEPTED, 90.0, "read it", actor_id=campus.ines)
    assert num_queued(campus.store, campus.course) == 2
    key = (context.id, campus.anna, campus.task)
    first = score_to_send(campus.store, *key, 1)
    assert first is not None
    assert (first.points, first.verdict, first.revision) == (90.0, Verdict.ACCEPTED, 2)
    again = score_to_send(campus.store, *key, 1)
    assert again is not None
    assert again.at > first.at
    score_sent(campus.store, again)
    assert score_to_send(campus.store, *key, 2) is None, "what was told is told again"
    assert send_all(campus.store, campus.course) == 1
    assert score_to_send(campus.store, *key, 3) is not None


def test_a_roster_is_taken_over_once_and_who_left_is_marked(campus: Campus, context: PlatformContext) -> None:
    everybody = [*(listed(f"u{number}") for number in range(30)), listed("m1", None)]
    assert lti_rosters.take_roster(campus.store, context, TERMS, everybody) == 30
    assert lti_rosters.take_roster(campus.store, context, TERMS, everybody) == 0
    (read,) = lti_contexts.contexts_of(campus.store, campus.course)
    assert read.num_left_out == 1
    assert lti_contexts.num_members(campus.store, [context.id]) == {context.id: 30}
    lti_rosters.take_roster(campus.store, context, TERMS, everybody[1:])
    (former,) = lti_contexts.former_members(campus.store, campus.course)
    assert former.login == "person-u0"
    lti_rosters.take_roster(campus.store, context, TERMS, everybody)
    assert not lti_contexts.former_members(campus.store, campus.course)


def test_a_registration_link_holds_once_and_again_where_nothing_came_of_it(store: Store) -> None:
    token = lti_platforms.offer_registration(store, actor_id=None)
    assert lti_platforms.take_registration(store, token)
    assert not lti_platforms.take_registration(store, token)
    lti_platforms.give_back_registration(store, token)
    assert lti_platforms.take_registration(store, token)
    lti_platforms.register(store, token, TERMS)
    lti_platforms.give_back_registration(store, token)
    assert not lti_platforms.registration_open(store, token)


def test_grades_of_an_anonymous_task_are_told_once_names_are_shown(
    campus: Campus, context: PlatformContext
) -> None:
    store, by = campus.store, campus.ines
    with store.write() as connection:
        lti_contexts.note_member(connection, context, campus.anna, "u1")
    campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0))
    set_grading_rules(store, campus.course, GradingRules(anonymous=True), actor_id=by)
    key = (context.id, campus.anna, campus.task)
    assert score_to_send(store, *key, 1) is None, "it was on its way"
    campus.judge(campus.anna, grade=verdict_of(points=80.0))
    send_all(store, campus.course)
    assert num_queued(store, campus.course) == 1
    set_task_grading(store, campus.course, campus.task, TaskGrading(anonymous=False), actor_id=by)
    assert num_queued(store, campus.course) == 2
    told = score_to_send(store, *key, 2)
    assert told is not None
    assert told.points == 80.0
    score_sent(store, told)
    set_task_grading(store, campus.course, campus.task, TaskGrading(), actor_id=by)
    set_grading_rules(store, campus.course, GradingRules(), actor_id=by)
    assert num_queued(store, campus.course) == 3
