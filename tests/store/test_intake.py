"""Several people hand in within one transaction: each is answered as if they had come alone."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, func, select

from grader.store.attempts import attempts, submissions
from grader.store.attempts.attempts import AttemptFilter
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import NewSubmission, Receipt, submit_all
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.people import people, tokens
from grader.store.queue import outbox
from grader.store.tables import AttemptRow, OutboxRow, SourceRow, SubmissionRow
from grader.store.tables.api_token import Scope
from grader.store.tables.attempt import AttemptState
from tests.store.campus import VERSION, Campus, script


def taken(answer: Receipt | Refusal) -> Receipt:
    assert isinstance(answer, Receipt), answer
    return answer


def refused(answer: Receipt | Refusal) -> Limit:
    assert isinstance(answer, Refusal), answer
    return answer.limit


def test_each_gets_the_answer_that_they_would_have_got_alone(campus: Campus) -> None:
    campus.set_task(max_concurrent=1)
    judged = campus.judge(campus.anna, "known = 1\n")
    names = ("busy", "again", "liar", "known", "new", "newer", "twin")
    busy, again, liar, known, new, newer, twin = (campus.person(name) for name in names)
    stranger = people.add_person(campus.store, "stranger", "Stranger")
    campus.queue(busy)
    first = taken(campus.hand_in(again, "same = 1\n", idempotency_key="k"))
    taken(campus.hand_in(liar, "one = 1\n", idempotency_key="k"))
    campus.queue(campus.ines)
    task = campus.task
    answers = submit_all(
        campus.store,
        [
            NewSubmission(newer, task, script("new = 2\n"), "k"),
            NewSubmission(stranger, task, script("new = 3\n")),
            NewSubmission(busy, task, script("new = 4\n")),
            NewSubmission(again, task, script("same = 1\n"), "k"),
            NewSubmission(liar, task, script("another = 1\n"), "k"),
            NewSubmission(known, task, script("known = 1\n", "mine")),
            NewSubmission(campus.ines, task, script("new = 5\n")),
            NewSubmission(new, task, script("twins = 1\n", "first")),
            NewSubmission(twin, task, script("twins = 1\n", "second")),
            NewSubmission(campus.ben, 4711, script("new = 6\n")),
        ],
    )
    assert refused(answers[1]) is Limit.NOT_ENROLLED
    assert refused(answers[2]) is Limit.CONCURRENT
    assert answers[3] == Receipt(first.submission_id, first.attempt_id, AttemptState.QUEUED, repeated=True)
    assert refused(answers[4]) is Limit.KEY_REUSED
    assert taken(answers[5]).state is AttemptState.JUDGED
    assert refused(answers[9]) is Limit.NOT_ENROLLED
    queued = [taken(answers[number]) for number in (0, 6, 7, 8)]
    assert [one.state for one in queued] == [AttemptState.QUEUED] * 4
    assert [one.attempt_id for one in queued] == sorted(one.attempt_id for one in queued), (
        "in order of coming"
    )
    for answer, person, name in zip(
        queued, (newer, campus.ines, new, twin), ("train", "train", "first", "second"), strict=True
    ):
        facts = attempts.attempt(campus.store, answer.attempt_id)
        assert facts is not None
        assert (facts.person_id, facts.submission_id) == (person, answer.submission_id)
        files = submissions.source_of(campus.store, answer.attempt_id)
        assert files is not None
        assert files.name == name
    told = {message.attempt_id for message in outbox.take(campus.store, limit=100)}
    assert {one.attempt_id for one in queued} <= told
    facts = attempts.attempt(campus.store, taken(answers[5]).attempt_id)
    assert facts is not None
    assert (facts.person_id, facts.cached_from) == (known, judged)


def test_limits_are_those_of_each_ones_own_task(campus: Campus) -> None:
    """Both tasks are read for both learners at once; what one has had of the other task is nobody's business."""
    other = courses.add_course(campus.store, "other", "Another course")
    terms = TaskTerms("toy", VERSION, max_total=1)
    closed = courses.set_task(campus.store, other, "ddp-toy", "cpu", terms)
    enrolments.enrol(campus.store, other, campus.anna)
    campus.set_task(max_total=1)
    campus.queue(campus.anna, task=closed)
    campus.queue(campus.ben)
    mine = NewSubmission(campus.anna, campus.task, script("a = 1\n"))
    answers = submit_all(campus.store, [mine, NewSubmission(campus.ben, closed, script("b = 1\n"))])
    taken(answers[0])
    assert refused(answers[1]) is Limit.NOT_ENROLLED
    assert (
        refused(submit_all(campus.store, [NewSubmission(campus.anna, closed, script("c = 1\n"))])[0])
        is Limit.TOTAL
    )
    assert refused(submit_all(campus.store, [mine])[0]) is Limit.TOTAL


@pytest.mark.one_database
def test_of_one_person_one_submission_at_a_time(campus: Campus) -> None:
    both = [NewSubmission(campus.anna, campus.task, script(text)) for text in ("a = 1\n", "a = 2\n")]
    with pytest.raises(ValueError, match="one person"):
        submit_all(campus.store, both)
    assert attempts.attempts(campus.store, AttemptFilter()) == ()


def test_nothing_is_left_of_anybodys_where_it_breaks_off(campus: Campus) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INSERT INTO outbox" in statement:
            raise RuntimeError("power cut")

    event.listen(campus.store.engine, "before_cursor_execute", fail)
    handed = [
        NewSubmission(person, campus.task, script(f"p = {person}\n")) for person in (campus.anna, campus.ben)
    ]
    with pytest.raises(RuntimeError, match="power cut"):
        submit_all(campus.store, handed)
    event.remove(campus.store.engine, "before_cursor_execute", fail)
    with campus.store.read() as connection:
        for table in (SourceRow, SubmissionRow, AttemptRow, OutboxRow):
            assert connection.execute(select(func.count()).select_from(table)).scalar_one() == 0
    assert all(isinstance(answer, Receipt) for answer in submit_all(campus.store, handed))


def test_the_same_people_in_any_order_from_several_threads(campus: Campus) -> None:
    """As several processes take them: nobody waits in a ring, limits hold, the same files are kept once."""
    campus.set_task(max_concurrent=3)
    learners = [campus.person(f"p{number}") for number in range(12)]

    def hand_in(seed: int) -> list[Receipt | Refusal]:
        order = random.Random(seed).sample(learners, len(learners))
        return submit_all(
            campus.store,
            [
                NewSubmission(one, campus.task, script(f"x = {seed * number % 5}\n"))
                for number, one in enumerate(order)
            ],
        )

    with ThreadPoolExecutor(4) as pool:
        rounds = list(pool.map(hand_in, range(10)))
    answers = [answer for one in rounds for answer in one]
    assert {refused(one) for one in answers if isinstance(one, Refusal)} == {Limit.CONCURRENT}
    held = [one.person_id for one in attempts.attempts(campus.store, AttemptFilter(), limit=1000)]
    assert sorted(held) == sorted(learners * 3)


def test_several_tokens_are_told_apart(campus: Campus) -> None:
    store = campus.store
    annas, bens, gone = (
        tokens.issue_token(store, person, "t", scope, lifetime_s=None, actor_id=None)
        for person, scope in ((campus.anna, Scope.READ), (campus.ben, Scope.SUBMIT), (campus.ben, Scope.READ))
    )
    (revoked, _) = tokens.tokens_of(store, campus.ben)
    assert tokens.revoke_token(store, campus.ben, revoked.id, actor_id=None)
    uses = tokens.check_tokens(store, [bens, "grd_unknown", annas, gone, bens])
    seen = [None if use is None else (use.account.id, use.scope) for use in uses]
    ben = (campus.ben, Scope.SUBMIT)
    assert seen == [ben, None, (campus.anna, Scope.READ), None, ben]
    assert [course.name for use in uses if use is not None for course in use.courses] == ["ddp"] * 3
    (facts,) = tokens.tokens_of(store, campus.anna)
    assert facts.used_at is not None
