"""Handing in: everything or nothing, once per request, within the limits, which say when they are lifted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from sqlalchemy import event, func, insert, select, text, update

from grader.model.grade import Verdict
from grader.model.submission import SourceFile, Submission
from grader.store import events
from grader.store.attempts import attempt_endings, attempts, submissions
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.clock import now
from grader.store.courses import course_life, courses, enrolments
from grader.store.courses.extensions import Extension, extend
from grader.store.database import Store
from grader.store.grading import grades
from grader.store.grading.gradebook import gradebook
from grader.store.queue import claims, outbox
from grader.store.tables import AttemptRow, OutboxRow, SourceRow, SubmissionRow
from grader.store.tables.attempt import AttemptState
from grader.store.tables.course_task import LatePolicy
from tests.store.campus import Campus, script, verdict_of

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def clock(store: Store) -> datetime:
    with store.read() as connection:
        return now(connection)


def count(store: Store, table: type) -> int:
    with store.read() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def age(store: Store, attempt_id: int, by: timedelta) -> None:
    """Make an attempt as old as if it had been handed in so long ago."""
    with store.write() as connection:
        row = connection.execute(select(AttemptRow).where(AttemptRow.id == attempt_id)).one()
        connection.execute(
            update(AttemptRow).where(AttemptRow.id == attempt_id).values(queued_at=row.queued_at - by)
        )
        connection.execute(
            update(SubmissionRow)
            .where(SubmissionRow.id == row.submission_id)
            .values(submitted_at=row.queued_at - by)
        )


def refused(answer: Receipt | Refusal) -> Refusal:
    assert isinstance(answer, Refusal), answer
    return answer


def test_a_submission_is_queued_with_its_event_and_its_message(campus: Campus) -> None:
    answer = campus.hand_in(campus.anna, "import torch\n")
    assert isinstance(answer, Receipt)
    assert answer.state is AttemptState.QUEUED
    assert submissions.source_of(campus.store, answer.attempt_id) == script("import torch\n")
    assert [one.kind for one in events.events_of(campus.store, answer.attempt_id)] == ["queued"]
    (message,) = outbox.take(campus.store)
    assert (message.topic, message.attempt_id, message.need) == ("attempt", answer.attempt_id, "cpu")


def test_nothing_is_left_of_a_submission_that_breaks_off(campus: Campus) -> None:
    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "INSERT INTO outbox" in statement:
            raise RuntimeError("power cut")

    event.listen(campus.store.engine, "before_cursor_execute", fail)
    with pytest.raises(RuntimeError, match="power cut"):
        campus.hand_in(campus.anna)
    event.remove(campus.store.engine, "before_cursor_execute", fail)
    assert [count(campus.store, table) for table in (SourceRow, SubmissionRow, AttemptRow, OutboxRow)] == [
        0
    ] * 4


def test_the_same_request_again_is_the_same_submission(campus: Campus) -> None:
    first = campus.hand_in(campus.anna, "a = 1\n", idempotency_key="k1")
    again = campus.hand_in(campus.anna, "a = 1\n", idempotency_key="k1")
    assert isinstance(first, Receipt)
    assert isinstance(again, Receipt)
    assert again.attempt_id == first.attempt_id
    assert again.repeated
    assert not first.repeated
    assert refused(campus.hand_in(campus.anna, "a = 2\n", idempotency_key="k1")).limit is Limit.KEY_REUSED
    other = campus.hand_in(campus.ben, "a = 1\n", idempotency_key="k1")
    assert isinstance(other, Receipt)
    assert not other.repeated, "keys of two people have nothing to do with each other"


def test_the_same_request_from_many_threads_makes_one_attempt(campus: Campus) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda _: campus.hand_in(campus.anna, "a = 1\n", idempotency_key="once"), range(16))
        )
    assert len({answer.attempt_id for answer in answers if isinstance(answer, Receipt)}) == 1
    assert sum(not answer.repeated for answer in answers if isinstance(answer, Receipt)) == 1
    assert count(campus.store, AttemptRow) == 1


def test_limits_hold_against_many_threads(campus: Campus) -> None:
    campus.set_task(max_concurrent=3)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda number: campus.hand_in(campus.anna, f"a = {number}\n"), range(16)))
    assert sum(isinstance(answer, Receipt) for answer in answers) == 3
    assert count(campus.store, AttemptRow) == 3


@pytest.mark.one_database
def test_concurrent_limit_says_what_and_how_many(campus: Campus) -> None:
    campus.set_task(max_concurrent=1)
    attempt_id = campus.queue(campus.anna)
    refusal = refused(campus.hand_in(campus.anna))
    assert (refusal.limit, refusal.allowed, refusal.used) == (Limit.CONCURRENT, 1, 1)
    campus.queue(campus.ben)
    attempt_endings.cancel(campus.store, attempt_id, actor_id=campus.anna)
    campus.queue(campus.anna)


@pytest.mark.one_database
def test_daily_limit_says_when_it_is_lifted(campus: Campus) -> None:
    campus.set_task(max_per_day=2)
    first = campus.judge(campus.anna)
    age(campus.store, first, 5 * HOUR)
    campus.judge(campus.anna)
    refusal = refused(campus.hand_in(campus.anna))
    assert (refusal.limit, refusal.allowed, refusal.used) == (Limit.PER_DAY, 2, 2)
    assert refusal.lifted_at is not None
    assert timedelta() <= refusal.lifted_at - (clock(campus.store) + 19 * HOUR) + timedelta(minutes=5) < HOUR
    age(campus.store, first, 20 * HOUR)
    campus.queue(campus.anna)


@pytest.mark.one_database
def test_total_limit_is_never_lifted(campus: Campus) -> None:
    campus.set_task(max_total=2)
    for _ in range(2):
        age(campus.store, campus.judge(campus.anna), 3 * DAY)
    refusal = refused(campus.hand_in(campus.anna))
    assert (refusal.limit, refusal.used, refusal.lifted_at) == (Limit.TOTAL, 2, None)


@pytest.mark.one_database
def test_what_does_not_count(campus: Campus) -> None:
    """Our own failures, answers from before, and what was cancelled before it ran."""
    campus.set_task(max_total=2)
    campus.judge(campus.anna, "a = 1\n")
    failed = campus.queue(campus.anna)
    for _ in range(attempt_endings.MAX_TRIES):
        claimed = campus.claim()
        attempt_endings.fail(campus.store, failed, claimed.lease_token, "disk full", backoff_s=0)
    cached = campus.hand_in(campus.anna, "a = 1\n")
    assert isinstance(cached, Receipt)
    assert cached.state is AttemptState.JUDGED
    waiting = campus.queue(campus.anna)
    attempt_endings.cancel(campus.store, waiting, actor_id=campus.anna)
    running = campus.queue(campus.anna)
    claimed = campus.claim()
    attempt_endings.cancel(campus.store, running, actor_id=campus.anna)
    assert (
        attempt_endings.give_up(campus.store, running, claimed.lease_token)
        is attempt_endings.AttemptEnding.CANCELLED
    )
    assert refused(campus.hand_in(campus.anna)).limit is Limit.TOTAL, "cancelled while it ran does count"


def test_who_is_not_in_the_course_hands_nothing_in(campus: Campus) -> None:
    from grader.store.people.people import add_person

    stranger = add_person(campus.store, "carl", "Carl")
    assert refused(campus.hand_in(stranger)).limit is Limit.NOT_ENROLLED
    assert refused(campus.hand_in(campus.anna, task=4711)).limit is Limit.NOT_ENROLLED
    assert enrolments.leave(campus.store, campus.course, campus.ben, actor_id=campus.ines)
    assert refused(campus.hand_in(campus.ben)).limit is Limit.NOT_ENROLLED


@pytest.mark.one_database
def test_dates_hold_for_learners_and_not_for_instructors(campus: Campus) -> None:
    at = clock(campus.store)
    campus.set_task(opens_at=at + HOUR)
    refusal = refused(campus.hand_in(campus.anna))
    assert (refusal.limit, refusal.lifted_at) == (Limit.NOT_OPEN, at + HOUR)
    campus.set_task(due_at=at - HOUR)
    assert refused(campus.hand_in(campus.anna)).limit is Limit.PAST_DUE
    campus.queue(campus.ines)
    campus.set_task(due_at=at + HOUR)
    campus.queue(campus.anna)
    course_life.set_closed(campus.store, campus.course, True, actor_id=campus.ines)
    assert refused(campus.hand_in(campus.anna)).limit is Limit.COURSE_CLOSED


def test_an_extension_opens_what_is_past_due(campus: Campus) -> None:
    at = clock(campus.store)
    campus.set_task(due_at=at - HOUR)
    extend(
        campus.store,
        campus.task,
        Extension(at + DAY, reason="ill"),
        person_ids=[campus.anna],
        actor_id=campus.ines,
    )
    campus.queue(campus.anna)
    assert refused(campus.hand_in(campus.ben)).limit is Limit.PAST_DUE
    assert extend(campus.store, campus.task, Extension(at + HOUR), actor_id=campus.ines) == 1
    campus.queue(campus.ben)
    assert [one.kind for one in events.audit_of(campus.store, f"course:{campus.course}", limit=2)] == [
        "due_date_moved"
    ] * 2


def test_lateness_costs_until_an_extension_heals_it(campus: Campus) -> None:
    at = clock(campus.store)
    campus.set_task(
        due_at=at - DAY - HOUR, late_policy=LatePolicy.REDUCED, late_loss=0.2, late_days=3, max_total=5
    )
    answer = campus.hand_in(campus.anna)
    assert isinstance(answer, Receipt)
    assert answer.late_days == 2
    claimed = campus.claim()
    attempt_endings.finish(
        campus.store, answer.attempt_id, claimed.lease_token, verdict_of(Verdict.REJECTED, 50.0)
    )
    (cell,) = [row.cells[campus.task] for row in gradebook(campus.store, campus.course).rows if row.cells]
    assert cell.points == pytest.approx(30.0)
    assert cell.result is not None
    assert (cell.result.late_days, cell.result.late_loss) == (2, 0.4)
    extend(campus.store, campus.task, Extension(at + HOUR), actor_id=campus.ines)
    (cell,) = [row.cells[campus.task] for row in gradebook(campus.store, campus.course).rows if row.cells]
    assert cell.points == pytest.approx(50.0)
    assert cell.result is not None
    assert cell.result.late_days == 0
    campus.set_task(due_at=at - 5 * DAY, late_policy=LatePolicy.REDUCED, late_loss=0.2, late_days=3)
    campus.queue(campus.ben)  # the extension of all holds for ben, too


def test_the_same_files_are_answered_at_once_under_their_own_name(campus: Campus) -> None:
    campus.queue(campus.anna, "a = 1\n")
    claimed = campus.claim()
    blob = attempt_endings.StoredFile("evidence.tar", "d" * 64, 10)
    grade = verdict_of(Verdict.REJECTED, 40.0, ("DATA002",), name="annas_secret_name")
    attempt_endings.finish(campus.store, claimed.attempt_id, claimed.lease_token, grade, [blob])
    answer = submissions.submit(
        campus.store, campus.ben, campus.task, Submission("bens", (SourceFile("train.py", "a = 1\n"),))
    )
    assert isinstance(answer, Receipt)
    assert answer.state is AttemptState.JUDGED
    stored = grades.grade_of(campus.store, answer.attempt_id)
    assert stored is not None
    assert (stored.verdict, stored.points) == (Verdict.REJECTED, 40.0)
    assert "annas_secret_name" not in stored.document
    assert '"submission": "bens"' in stored.document
    assert attempts.files_of(campus.store, answer.attempt_id) == (blob,)
    facts = attempts.attempt(campus.store, answer.attempt_id)
    assert facts is not None
    assert facts.cached_from == claimed.attempt_id
    assert claims.claim(campus.store, "w", ["cpu"]) is claims.Idle.EMPTY


@pytest.mark.one_database
@pytest.mark.parametrize("change", ["forced", "version", "profile", "held", "regraded"])
def test_what_is_not_answered_from_before(campus: Campus, change: str) -> None:
    held = verdict_of(Verdict.HELD, 0.0) if change == "held" else None
    campus.judge(campus.anna, "a = 1\n", held)
    task = campus.task
    if change == "version":
        campus.set_task(version="b" * 64)
    if change == "profile":
        from grader.store.courses.courses import TaskTerms

        task = courses.set_task(
            campus.store, campus.course, "ddp-toy", "gpu", TaskTerms("GPU", "a" * 64, need="gpu2")
        )
    if change == "regraded":
        with campus.store.write() as connection:
            connection.execute(text("UPDATE attempts SET state = 'failed'"))
    answer = campus.hand_in(campus.ben, "a = 1\n", task=task, forced=change == "forced")
    assert isinstance(answer, Receipt)
    assert answer.state is AttemptState.QUEUED


def test_hostile_texts_come_back_or_are_made_visible(campus: Campus) -> None:
    """NUL and lone surrogates, which PostgreSQL's UTF-8 cannot hold."""
    nasty = "a\0b\ud800c\U0001f600\x1b[31m\u202e"
    # A digest cannot be taken of what is no UTF-8, so the catalog refuses surrogates; NUL it may let through.
    submission = Submission(nasty, (SourceFile("train.py", "pass\n"), SourceFile("b\0.py", "x = '\0'\n")))
    answer = submissions.submit(campus.store, campus.anna, campus.task, submission, idempotency_key=nasty)
    assert isinstance(answer, Receipt)
    back = submissions.source_of(campus.store, answer.attempt_id)
    assert back is not None
    assert back.files == submission.files, "files come back to the byte"
    assert back.name == "a␀b\ufffdc\U0001f600\x1b[31m\u202e"
    again = submissions.submit(campus.store, campus.anna, campus.task, submission, idempotency_key=nasty)
    assert isinstance(again, Receipt)
    assert again.repeated
    claimed = campus.claim(worker=nasty)
    assert events.add_live_events(
        campus.store, claimed.attempt_id, claimed.lease_token, [("log", {"line": nasty, nasty: 1})]
    )
    assert (
        attempt_endings.fail(campus.store, claimed.attempt_id, claimed.lease_token, nasty)
        is attempt_endings.AttemptEnding.REQUEUED
    )
    told = events.events_of(campus.store, claimed.attempt_id)
    assert told[2].data == {"line": nasty, nasty: 1}, "events come back as they were"
    facts = attempts.attempt(campus.store, claimed.attempt_id)
    assert facts is not None
    assert facts.failure == "a␀b\ufffdc\U0001f600\x1b[31m\u202e"


def test_a_hint_for_everybody_survives_a_row_of_another_database(campus: Campus) -> None:
    """The database refuses a state, a role or a verdict that we don't know."""
    from sqlalchemy.exc import IntegrityError

    attempt_id = campus.queue(campus.anna)
    with pytest.raises(IntegrityError), campus.store.write() as connection:
        connection.execute(text(f"UPDATE attempts SET state = 'lost' WHERE id = {attempt_id}"))
    with pytest.raises(IntegrityError), campus.store.write() as connection:
        connection.execute(
            insert(OutboxRow).values(topic="attempt", attempt_id=4711, created_at=now(connection))
        )
