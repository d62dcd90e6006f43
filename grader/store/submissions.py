"""Handing in: submission, attempt, event and message in one transaction, within the limits that hold for the learner.

What stands in the way is an answer, not an exception. Reads no file and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from grader.model.submission import SourceFile, Submission
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.eligibility import AnyRow, LearnerTask, due_date, earlier_requests, refusals_of, terms_of
from grader.store.events import ADD_EVENT, add_event
from grader.store.grades import copy_grade, judged_before
from grader.store.limits import Limit, Refusal, days_late
from grader.store.standings import recompute_standings
from grader.store.tables import AttemptRow, DeletedContentRow, OutboxRow, SourceRow, SubmissionRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.base import storable
from grader.store.upsert import upsert_statement


@dataclass(frozen=True, slots=True)
class Receipt:
    """A submission that was taken.

    Attributes:
        state: `queued`, or `judged` where the same files were judged before.
        late_days: days begun after the due date.
        repeated: this request came before; nothing new was made.
    """

    submission_id: int
    attempt_id: int
    state: AttemptState
    late_days: int = 0
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """A submission on its way in.

    Attributes:
        person_id, course_task_id: who hands in, for which task of which course.
        submission: the files.
        idempotency_key: the client's name of this request; the same key again gives the same answer.
        forced: judge even where the same files were judged before.
    """

    person_id: int
    course_task_id: int
    submission: Submission
    idempotency_key: str | None = None
    forced: bool = False


def submit(
    store: Store,
    person_id: int,
    course_task_id: int,
    submission: Submission,
    *,
    idempotency_key: str | None = None,
    forced: bool = False,
) -> Receipt | Refusal:
    """Hand a submission in and queue an attempt, or say which limit stands in the way; see `NewSubmission`.

    Instructors of the course try things out at any time, as often as they like.
    """
    handed = NewSubmission(person_id, course_task_id, submission, idempotency_key, forced)
    (answer,) = submit_all(store, [handed])
    return answer


def submit_all(store: Store, handed: Sequence[NewSubmission]) -> list[Receipt | Refusal]:
    """Hand in what several people bring at the same moment, in one transaction; the answers in their order.

    A transaction costs as much as all that is done in it, and a disk tells ten receipts as soon as one.

    Raises:
        ValueError: somebody is among them twice: the second would have to be held against the first.
    """
    if len({one.person_id for one in handed}) < len(handed):
        raise ValueError("of one person only one submission is taken at a time")
    # Worked out before others have to wait for us.
    ready = [_Ready(one, one.submission.digest, _key(one)) for one in handed]
    try:
        return _submit_all(store, ready)
    except IntegrityError:
        # What we read was taken away before we wrote: a task removed, a person erased. Now they are not found.
        return _submit_all(store, ready)


def _submit_all(store: Store, ready: Sequence[_Ready]) -> list[Receipt | Refusal]:
    with store.write() as connection:
        terms = terms_of(connection, (one.pair for one in ready))
        earlier = earlier_requests(
            connection, ((one.pair[0], one.key) for one in ready if one.key is not None and one.pair in terms)
        )
        new = {one.pair: terms[one.pair] for one in ready if one.pair in terms and one.pair[0] not in earlier}
        refusals = refusals_of(connection, new)
        taken = _take(
            connection,
            [(one, new[one.pair]) for one in ready if one.pair in new and one.pair not in refusals],
        )
        answers: list[Receipt | Refusal] = []
        for one in ready:
            if one.pair not in terms:
                answers.append(Refusal(Limit.NOT_ENROLLED))
            elif one.pair not in new:
                answers.append(_again(one, earlier[one.pair[0]], terms[one.pair]))
            else:
                answers.append(refusals.get(one.pair) or taken[one.pair])
        return answers


def source_of(store: Store, attempt_id: int) -> Submission | None:
    """The files that an attempt judges, or None where there is no such attempt, or a rule deleted them."""
    with store.read() as connection:
        row = connection.execute(
            select(SubmissionRow.name, SourceRow.files)
            .join(AttemptRow, AttemptRow.submission_id == SubmissionRow.id)
            .join(SourceRow, SourceRow.digest == SubmissionRow.digest)
            .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
            .where(AttemptRow.id == attempt_id, DeletedContentRow.scripts_at.is_(None))
        ).one_or_none()
    if row is None:
        return None
    return Submission(row.name, tuple(SourceFile(path, text) for path, text in row.files))


def enqueue(
    connection: Connection, attempts: Sequence[dict[str, Any]], actors: Sequence[int | None]
) -> list[int]:
    """Queue attempts, each with its first event, whose actor is given, and its message, in the caller's transaction."""
    made = list(connection.execute(_QUEUE, attempts).scalars())
    connection.execute(
        ADD_EVENT,
        [
            {
                "attempt_id": attempt_id,
                "seq": 1,
                "kind": "queued",
                "actor_id": actor_id,
                "data": {"lane": values["lane"]},
            }
            for attempt_id, values, actor_id in zip(made, attempts, actors, strict=True)
        ],
    )
    connection.execute(_SEND, [{"attempt_id": attempt_id} for attempt_id in made])
    return made


@dataclass(frozen=True, slots=True)
class _Ready:
    handed: NewSubmission
    digest: str
    key: str | None

    @property
    def pair(self) -> LearnerTask:
        return self.handed.person_id, self.handed.course_task_id


def _key(one: NewSubmission) -> str | None:
    return None if one.idempotency_key is None else storable(one.idempotency_key)[:80]


def _again(one: _Ready, earlier: AnyRow, terms: AnyRow) -> Receipt | Refusal:
    if (earlier.digest, earlier.course_task_id) != (one.digest, one.handed.course_task_id):
        return Refusal(Limit.KEY_REUSED)
    late = days_late(earlier.submitted_at, due_date(terms))
    return Receipt(earlier.submission_id, earlier.id, earlier.state, late, repeated=True)


def _take(connection: Connection, taken: Sequence[tuple[_Ready, AnyRow]]) -> dict[LearnerTask, Receipt]:
    """Take what nothing stands in the way of, from one person one submission."""
    if not taken:
        return {}
    _keep(connection, [one for one, _ in taken])
    made = connection.execute(
        _SUBMIT,
        [
            {
                "person_id": one.handed.person_id,
                "course_task_id": terms.id,
                "digest": one.digest,
                "name": one.handed.submission.name,
                "submitted_at": terms.now,
                "idempotency_key": one.key,
            }
            for one, terms in taken
        ],
    ).scalars()
    values = {
        one.pair: _attempt(one, terms, made_id) for (one, terms), made_id in zip(taken, made, strict=True)
    }
    known = judged_before(
        connection,
        {(one.digest, terms.version, terms.profile) for one, terms in taken if not one.handed.forced},
    )
    answers: dict[LearnerTask, Receipt] = {}
    queued, judged = [], []
    for one, terms in taken:
        origin = None if one.handed.forced else known.get((one.digest, terms.version, terms.profile))
        if origin is None:
            queued.append((one, terms))
        else:
            judged.append((one, terms, origin))
    if queued:
        pairs = [one.pair for one, _ in queued]
        ids = enqueue(connection, [values[pair] for pair in pairs], [person for person, _ in pairs])
        for (one, terms), attempt_id in zip(queued, ids, strict=True):
            submission_id = values[one.pair]["submission_id"]
            late = days_late(terms.now, due_date(terms))
            answers[one.pair] = Receipt(submission_id, attempt_id, AttemptState.QUEUED, late)
    # Each locks its task's row: by number, so that two processes never wait for each other in a ring.
    for one, terms, origin in sorted(judged, key=lambda item: item[1].id):
        answers[one.pair] = _answer(connection, one, terms, values[one.pair], origin)
    return answers


def _keep(connection: Connection, taken: Sequence[_Ready]) -> None:
    """Keep the files, those of several people that are the same once."""
    sources = {one.digest: one.handed.submission.files for one in taken}
    # An update rather than nothing: it locks the row, so that no erasure takes these files from under us.
    connection.execute(
        upsert_statement(connection.dialect.name, SourceRow, ("digest",), ("files", "size")),
        [
            {
                "digest": digest,
                "files": [[file.path, file.text] for file in files],
                "size": sum(len(file.text) for file in files),
            }
            for digest, files in sorted(sources.items())
        ],
    )


def _attempt(one: _Ready, terms: AnyRow, submission_id: int) -> dict[str, Any]:
    return {
        "submission_id": submission_id,
        "person_id": one.handed.person_id,
        "course_task_id": terms.id,
        "digest": one.digest,
        "task": terms.task,
        "task_version": terms.version,
        "profile": terms.profile,
        "need": terms.need,
        "lane": Lane.INTERACTIVE,
        "forced": one.handed.forced,
    }


def _answer(
    connection: Connection, one: _Ready, terms: AnyRow, values: dict[str, Any], origin: int
) -> Receipt:
    """Answer at once, from the attempt that judged the same files."""
    attempt_id = connection.execute(
        insert(AttemptRow)
        .values(
            state=AttemptState.JUDGED,
            queued_at=database_now(),
            available_at=database_now(),
            finished_at=database_now(),
            cached_from=origin,
            event_seq=1,
            **values,
        )
        .returning(AttemptRow.id)
    ).scalar_one()
    person_id, name = one.handed.person_id, one.handed.submission.name
    grade = copy_grade(connection, origin, attempt_id, person_id, terms.id, name)
    add_event(
        connection, attempt_id, 1, "judged", actor_id=person_id, verdict=grade.verdict, cached_from=origin
    )
    recompute_standings(connection, terms.id, [person_id])
    late = days_late(terms.now, due_date(terms))
    return Receipt(values["submission_id"], attempt_id, AttemptState.JUDGED, late)


# Statements of the busiest operation are made once: making them takes longer than running them.
_SUBMIT = insert(SubmissionRow).returning(SubmissionRow.id, sort_by_parameter_order=True)
_QUEUE = (
    insert(AttemptRow)
    .values(state=AttemptState.QUEUED, queued_at=database_now(), available_at=database_now(), event_seq=1)
    .returning(AttemptRow.id, sort_by_parameter_order=True)
)
_SEND = insert(OutboxRow).values(topic="attempt", created_at=database_now())
