"""What a learner is told of a course before handing in is what handing in then does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grader.model.grade import Verdict
from grader.store import events
from grader.store.attempts import attempt_endings
from grader.store.attempts.limits import Limit, Refusal
from grader.store.courses import course_life
from grader.store.courses.extensions import Extension, extend
from grader.store.database import Store
from grader.store.grading import certificates
from grader.store.grading.progress import OwnTask, progress
from grader.store.people import invitations, people
from grader.store.people.invitations import InvitationResult
from grader.store.tables.attempt import AttemptState
from grader.store.tables.course_task import LatePolicy
from grader.store.tables.person import Role
from tests.store.campus import Campus, verdict_of

HOUR = timedelta(hours=1)


def own(campus: Campus, person_id: int, task: int | None = None) -> OwnTask:
    wanted = campus.task if task is None else task
    return next(one for one in progress(campus.store, campus.course, person_id) if one.task.id == wanted)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("terms", "num_before"),
    [
        ({}, 3),
        ({"max_total": 2}, 2),
        ({"max_total": 3}, 2),
        ({"max_per_day": 2}, 2),
        ({"max_concurrent": 1}, 0),
        ({"due": -HOUR}, 0),
        ({"due": -HOUR, "late_policy": LatePolicy.ACCEPTED}, 0),
        ({"due": -25 * HOUR, "late_policy": LatePolicy.REDUCED, "late_days": 1}, 0),
        ({"opens": HOUR}, 0),
    ],
    ids=repr,
)
def test_what_is_foretold_is_what_handing_in_answers(
    campus: Campus, terms: dict[str, Any], num_before: int
) -> None:
    now = datetime.now(UTC)
    for _ in range(num_before):
        campus.judge(campus.anna)
    for name in ("due", "opens"):
        if name in terms:
            terms = {**terms, f"{name}_at": now + terms[name]}
            del terms[name]
    if "max_concurrent" in terms:
        campus.queue(campus.anna)
    campus.set_task(**terms)
    told = own(campus, campus.anna).refusal
    answer = campus.hand_in(campus.anna)
    assert told == (answer if isinstance(answer, Refusal) else None)


def test_instructors_may_always_and_outsiders_never(campus: Campus) -> None:
    campus.set_task(due_at=datetime.now(UTC) - HOUR)
    course_life.set_closed(campus.store, campus.course, True, actor_id=None)
    stranger = people.add_person(campus.store, "eve", "Eve")
    assert own(campus, campus.ines).refusal is None
    assert own(campus, campus.anna).refusal == Refusal(Limit.COURSE_CLOSED)
    assert own(campus, stranger).refusal == Refusal(Limit.NOT_ENROLLED)


def test_each_sees_their_own_date_and_standing(campus: Campus) -> None:
    due = datetime(2031, 5, 1, tzinfo=UTC)
    campus.set_task(due_at=due)
    extend(campus.store, campus.task, Extension(due + 24 * HOUR), person_ids=[campus.anna], actor_id=None)
    campus.judge(campus.anna, grade=verdict_of(Verdict.ACCEPTED, 90))
    waiting = campus.queue(campus.ben)
    anna, ben = own(campus, campus.anna), own(campus, campus.ben)
    assert (anna.due_at, anna.extended, anna.accepted) == (due + 24 * HOUR, True, True)
    assert anna.standing is not None
    assert anna.standing.result.points == 90
    assert (ben.due_at, ben.extended, ben.standing, ben.unfinished) == (due, False, None, (waiting,))


@pytest.mark.one_database
def test_what_is_hidden_until_due_is_hidden_here_too(campus: Campus) -> None:
    campus.set_task(due_at=datetime.now(UTC) + HOUR, hidden_until_due=True)
    campus.judge(campus.anna)
    hidden = own(campus, campus.anna)
    assert hidden.hidden_until is not None
    assert (hidden.standing, hidden.accepted, hidden.num_attempts) == (None, False, 1)
    campus.set_task(due_at=datetime.now(UTC) - HOUR, hidden_until_due=True)
    assert own(campus, campus.anna).accepted


@pytest.mark.one_database
def test_what_costs_nothing_is_not_counted(campus: Campus) -> None:
    text = "print('the same')\n"
    campus.judge(campus.anna, text)
    campus.hand_in(campus.ben, text)
    attempt_endings.cancel(campus.store, campus.queue(campus.ben), actor_id=campus.ben)
    ben = own(campus, campus.ben)
    assert (ben.num_attempts, ben.used, ben.used_today) == (2, 0, 0)
    assert own(campus, campus.anna).used == 1


def test_news_of_many_attempts_come_without_gaps(campus: Campus) -> None:
    attempts = [campus.queue(campus.anna) for _ in range(3)]
    claimed = campus.claim()
    told = [("log", {"rank": 0, "stream": "stdout", "text": str(number)}) for number in range(10)]
    events.add_live_events(campus.store, claimed.attempt_id, claimed.lease_token, told)
    seen: dict[int, list[int]] = {attempt: [] for attempt in attempts}
    for _ in range(10):
        after = {attempt: (numbers[-1] if numbers else 0) for attempt, numbers in seen.items()}
        for attempt, new in events.new_events(campus.store, after, limit=4).items():
            seen[attempt] += [event.seq for event in new.events]
    for attempt in attempts:
        assert seen[attempt] == list(range(1, len(events.events_of(campus.store, attempt)) + 1))
    assert events.new_events(campus.store, {attempts[0]: 0, 10**9: 0}).keys() == {attempts[0]}


@pytest.mark.one_database
def test_news_say_when_it_is_over(campus: Campus) -> None:
    attempt = campus.judge(campus.anna)
    new = events.new_events(campus.store, {attempt: 2})[attempt]
    assert new.state is AttemptState.JUDGED
    assert [event.seq for event in new.events] == list(range(3, new.last + 1))


def test_a_code_tells_what_it_opens_without_being_used(campus: Campus) -> None:
    store = campus.store
    code = invitations.invite(store, campus.course, role=Role.INSTRUCTOR, max_uses=1, actor_id=None)
    for spelt in (code, code.lower(), f"{code[:4]}-{code[4:]}"):
        opens = invitations.look_up(store, spelt)
        assert (opens.result, opens.course_id, opens.role) == (
            InvitationResult.ENTERED,
            campus.course,
            Role.INSTRUCTOR,
        )
    eve = people.add_person(store, "eve", "Eve")
    assert invitations.redeem(store, code, eve).result is InvitationResult.ENTERED
    assert invitations.look_up(store, code).result is InvitationResult.USED_UP
    assert invitations.look_up(store, "NOSUCH22").result is InvitationResult.UNKNOWN
    old = invitations.invite(store, campus.course, lifetime_s=-1, actor_id=None)
    assert invitations.look_up(store, old).result is InvitationResult.EXPIRED
    invitations.revoke_invitation(store, old, actor_id=None)
    assert invitations.look_up(store, old).result is InvitationResult.UNKNOWN


def test_sessions_end_and_the_password_stays(store: Store) -> None:
    person = people.add_person(store, "eve", "Eve", password="correct horse battery")
    before = people.account(store, person)
    people.end_sessions(store, person, actor_id=person)
    after = people.account(store, person)
    assert before is not None
    assert after is not None
    assert after.session_epoch > before.session_epoch
    assert people.check_password(store, "eve", "correct horse battery") == after


def test_a_certificate_is_found_again(campus: Campus) -> None:
    assert certificates.certificate_of(campus.store, campus.course, campus.anna) is None
    campus.judge(campus.anna)
    issued = certificates.issue(campus.store, campus.course, campus.anna)
    assert certificates.certificate_of(campus.store, campus.course, campus.anna) == issued
