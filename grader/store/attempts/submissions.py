"""Handing in: submission, attempt, event and message in one transaction, within the limits that hold for the learner.

What stands in the way is an answer, not an exception. Reads no file and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from grader.model.submission import SourceFile, Submission
from grader.store.attempts.eligibility import (
    AnyRow,
    LearnerTask,
    due_date,
    earlier_requests,
    late_on,
    refusals_of,
    terms_of,
)
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.new_attempts import enqueue
from grader.store.attempts.sources import keep_sources
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.notices import notify_judged
from grader.store.events import add_event
from grader.store.grading.credits import share
from grader.store.grading.grades import copy_grade, judged_before
from grader.store.grading.standings import recompute_standings
from grader.store.tables import AttemptRow, DeletedContentRow, SourceRow, SubmissionRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.base import storable


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
        terms, groups = terms_of(connection, (one.pair for one in ready))
        answers: dict[LearnerTask, Receipt | Refusal] = {}
        waiting = list(ready)
        while waiting:
            # Of a group one after the other: the second counts what the first brought.
            seen: set[LearnerTask] = set()
            now, later = list[_Ready](), list[_Ready]()
            for one in waiting:
                (now if seen.isdisjoint(group := groups[one.pair]) else later).append(one)
                seen.update(group)
            answers |= _submit_apart(connection, now, terms, groups)
            waiting = later
        return [answers[one.pair] for one in ready]


def _submit_apart(
    connection: Connection,
    ready: Sequence[_Ready],
    terms: dict[LearnerTask, AnyRow],
    groups: dict[LearnerTask, tuple[LearnerTask, ...]],
) -> dict[LearnerTask, Receipt | Refusal]:
    """The same, of whom no two hand in together; `terms`: of them and of all in their groups."""
    earlier = earlier_requests(
        connection, ((one.pair[0], one.key) for one in ready if one.key is not None and one.pair in terms)
    )
    new = {one.pair: groups[one.pair] for one in ready if one.pair in terms and one.pair[0] not in earlier}
    refusals = refusals_of(connection, terms, new)
    taken = _take(
        connection,
        [
            _Taken(one, terms[one.pair], due_date(terms, group), [person for person, _ in group[1:]])
            for one in ready
            if (group := new.get(one.pair)) is not None and one.pair not in refusals
        ],
    )
    answers: dict[LearnerTask, Receipt | Refusal] = {}
    for one in ready:
        if one.pair not in terms:
            answers[one.pair] = Refusal(Limit.NOT_ENROLLED)
        elif one.pair not in new:
            due_at = due_date(terms, groups[one.pair])
            answers[one.pair] = _again(one, earlier[one.pair[0]], terms[one.pair], due_at)
        else:
            answers[one.pair] = refusals.get(one.pair) or taken[one.pair]
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


@dataclass(frozen=True, slots=True)
class _Taken:
    """What nothing stands in the way of; `others`: for whom it counts beside its sender."""

    ready: _Ready
    terms: AnyRow
    due_at: datetime | None
    others: list[int]

    def receipt(self, submission_id: int, attempt_id: int, state: AttemptState) -> Receipt:
        return Receipt(submission_id, attempt_id, state, late_on(self.terms, self.due_at, self.terms.now))


def _again(one: _Ready, earlier: AnyRow, terms: AnyRow, due_at: datetime | None) -> Receipt | Refusal:
    if (earlier.digest, earlier.course_task_id) != (one.digest, one.handed.course_task_id):
        return Refusal(Limit.KEY_REUSED)
    late = late_on(terms, due_at, earlier.submitted_at)
    return Receipt(earlier.submission_id, earlier.id, earlier.state, late, repeated=True)


def _take(connection: Connection, taken: Sequence[_Taken]) -> dict[LearnerTask, Receipt]:
    """Take it, from one person one submission."""
    if not taken:
        return {}
    keep_sources(connection, {one.ready.digest: one.ready.handed.submission.files for one in taken})
    made = connection.execute(
        _SUBMIT,
        [
            {
                "person_id": one.ready.handed.person_id,
                "course_task_id": one.terms.id,
                "digest": one.ready.digest,
                "name": one.ready.handed.submission.name,
                "submitted_at": one.terms.now,
                "idempotency_key": one.ready.key,
            }
            for one in taken
        ],
    ).scalars()
    submissions = {one.ready.pair: made_id for one, made_id in zip(taken, made, strict=True)}
    share(connection, ((submissions[one.ready.pair], one.others) for one in taken))
    known = judged_before(connection, {key for one in taken if (key := _same(one)) is not None})
    answers: dict[LearnerTask, Receipt] = {}
    queued, judged = [], []
    for one in taken:
        key = _same(one)
        origin = None if key is None else known.get(key)
        if origin is None:
            queued.append(one)
        else:
            judged.append((one, origin))
    if queued:
        values = [_attempt(one, submissions[one.ready.pair]) for one in queued]
        ids = enqueue(connection, values, [one.ready.handed.person_id for one in queued])
        for one, attempt_id in zip(queued, ids, strict=True):
            pair = one.ready.pair
            answers[pair] = one.receipt(submissions[pair], attempt_id, AttemptState.QUEUED)
    # Each locks its course's row: by number, so that two processes never wait for each other in a ring.
    for one, origin in sorted(judged, key=lambda item: (item[0].terms.course_id, item[0].terms.id)):
        answers[one.ready.pair] = _answer(connection, one, submissions[one.ready.pair], origin)
    return answers


def _same(one: _Taken) -> tuple[str, str, str] | None:
    """By what an earlier attempt at the same files is found; None: it is judged anew whatever there is."""
    return None if one.ready.handed.forced else (one.ready.digest, one.terms.version, one.terms.profile)


def _attempt(one: _Taken, submission_id: int) -> dict[str, Any]:
    return {
        "submission_id": submission_id,
        "person_id": one.ready.handed.person_id,
        "course_task_id": one.terms.id,
        "digest": one.ready.digest,
        "task": one.terms.task,
        "task_version": one.terms.version,
        "profile": one.terms.profile,
        "need": one.terms.need,
        "lane": Lane.INTERACTIVE,
        "forced": one.ready.handed.forced,
    }


def _answer(connection: Connection, one: _Taken, submission_id: int, origin: int) -> Receipt:
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
            **_attempt(one, submission_id),
        )
        .returning(AttemptRow.id)
    ).scalar_one()
    sender, name = one.ready.handed.person_id, one.ready.handed.submission.name
    grade = copy_grade(connection, origin, attempt_id, sender, one.terms.id, name)
    add_event(connection, attempt_id, 1, "judged", actor_id=sender, verdict=grade.verdict, cached_from=origin)
    recompute_standings(connection, one.terms.id, [sender])
    notify_judged(connection, [attempt_id])
    return one.receipt(submission_id, attempt_id, AttemptState.JUDGED)


# Statements of the busiest operation are made once: making them takes longer than running them.
_SUBMIT = insert(SubmissionRow).returning(SubmissionRow.id, sort_by_parameter_order=True)
