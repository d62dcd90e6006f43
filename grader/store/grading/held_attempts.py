"""Attempts that wait for an instructor: judged as held, and nobody has decided yet. Who they are, and since when.

They count as nothing meanwhile, and are nobody's fault. Deciding is an override (`reviews`); nothing here writes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, func, select
from sqlalchemy.orm import aliased

from grader.model.grade import Verdict
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.grading.credits import counts_for
from grader.store.grading.pseudonyms import key_column, pseudonym
from grader.store.grading.questions import LastWord, last_words, unanswered
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    GradeRow,
    OverrideRow,
    PersonRow,
)
from grader.store.tables.attempt import AttemptState


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """An attempt in the review queue.

    Attributes:
        since: when it was judged as held; points, max_points, document: as it was judged.
        person_id: None where the task is graded anonymously; `name` is a pseudonym then.
        last_word: what its learner was last asked, or answered; None: nobody asked.
    """

    attempt_id: int
    person_id: int | None
    name: str
    course_task_id: int
    task_title: str
    since: datetime
    points: float
    max_points: float
    document: str
    last_word: LastWord | None

    @property
    def waits_for_learner(self) -> bool:
        """Whether its learner was asked something and has not answered yet."""
        return self.last_word is not None and not self.last_word.answered


@dataclass(frozen=True, slots=True)
class HeldTask:
    """Of a learner's task: since when the first of its attempts waits for an instructor to decide.

    `asked`: the attempt of which its learner was asked something and has not answered; None: there is none.
    """

    since: datetime
    asked: int | None


def held_attempts(store: Store, course_id: int, learners: Learners = ALL_LEARNERS) -> tuple[HeldAttempt, ...]:
    """The review queue of a course: its learners' attempts that nobody has decided, the oldest first."""
    statement = (
        select(
            AttemptRow.id,
            PersonRow.id,
            PersonRow.name,
            CourseTaskRow.id,
            CourseTaskRow.title,
            GradeRow.created_at,
            GradeRow.points,
            GradeRow.max_points,
            GradeRow.document,
            key_column(CourseTaskRow.id),
        )
        .select_from(GradeRow)
        .join(AttemptRow, AttemptRow.id == GradeRow.attempt_id)
        .join(PersonRow, PersonRow.id == AttemptRow.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(CourseTaskRow.course_id == course_id, learners.among(course_id), *_UNDECIDED)
        .order_by(GradeRow.created_at, AttemptRow.id)
    )
    with store.read() as connection:
        rows: Sequence[Sequence[Any]] = connection.execute(statement).all()
        words = last_words(connection, [row[0] for row in rows])
        return tuple(_held(row, words.get(row[0])) for row in rows)


def _held(row: Sequence[Any], last_word: LastWord | None) -> HeldAttempt:
    found, key = HeldAttempt(*(*row[:-1], last_word)), row[-1]
    if key is None or found.person_id is None:
        return found
    shown = pseudonym(key, found.person_id)
    if last_word is not None and last_word.answered:
        last_word = replace(last_word, author=shown)
    return replace(found, person_id=None, name=shown, last_word=last_word)


def num_held(store: Store, course_id: int, learners: Learners = ALL_LEARNERS) -> int:
    """How long the review queue of a course is."""
    with store.read() as connection:
        return connection.execute(_num_held(course_id, learners)).scalar_one()


# Kept, as every page of a course says the number, and making the statement takes longer than running it.
@lru_cache(maxsize=128)
def _num_held(course_id: int, learners: Learners) -> Select[int]:
    return (
        select(func.count())
        .select_from(GradeRow)
        .join(AttemptRow, AttemptRow.id == GradeRow.attempt_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(CourseTaskRow.course_id == course_id, learners.among(course_id), *_UNDECIDED)
    )


def held_since(store: Store, attempt_ids: Collection[int]) -> dict[int, datetime]:
    """Since when each of these attempts waits for an instructor; those that do not are not in it."""
    statement = (
        select(AttemptRow.id, GradeRow.created_at)
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .where(AttemptRow.id.in_(attempt_ids), *_UNDECIDED)
    )
    with store.read() as connection:
        return {row.id: row.created_at for row in connection.execute(statement)}


def open_questions(store: Store, attempt_ids: Collection[int]) -> dict[int, LastWord]:
    """What the learners of these attempts were asked and have not answered, while they are held."""
    held = held_since(store, attempt_ids) if attempt_ids else {}
    if not held:
        return {}
    with store.read() as connection:
        return unanswered(connection, held)


def held_tasks(
    connection: Connection, course_task_ids: Collection[int], person_id: int
) -> dict[int, HeldTask]:
    """A learner's tasks of which an attempt waits for an instructor, by their number.

    Within a transaction of the caller's.
    """
    statement = (
        select(AttemptRow.course_task_id, AttemptRow.id, GradeRow.created_at)
        .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
        .where(counts_for([person_id]), AttemptRow.course_task_id.in_(course_task_ids), *_UNDECIDED)
        .order_by(GradeRow.created_at, AttemptRow.id)
    )
    since, asked = dict[int, datetime](), dict[int, int]()
    rows = connection.execute(statement).all()
    questions = unanswered(connection, [row.id for row in rows])
    for row in rows:
        since.setdefault(row.course_task_id, row.created_at)
        if row.id in questions:
            asked.setdefault(row.course_task_id, row.id)
    return {task: HeldTask(at, asked.get(task)) for task, at in since.items()}


def _undecided() -> tuple[Any, ...]:
    root = func.coalesce(AttemptRow.regrade_of, AttemptRow.id)
    later, judged = aliased(AttemptRow), aliased(AttemptRow)
    superseded = select(later.id).where(
        later.regrade_of == root, later.id > AttemptRow.id, later.counts, later.state == AttemptState.JUDGED
    )
    decision = (
        select(OverrideRow.verdict)
        .join(judged, judged.id == OverrideRow.attempt_id)
        .where(OverrideRow.withdrawn_at.is_(None), func.coalesce(judged.regrade_of, judged.id) == root)
        .order_by(OverrideRow.id.desc())
        .limit(1)
        .correlate(AttemptRow)
        .scalar_subquery()
    )
    return (
        GradeRow.verdict == Verdict.HELD,
        AttemptRow.state == AttemptState.JUDGED,
        AttemptRow.counts,
        ~superseded.correlate(AttemptRow).exists(),
        func.coalesce(decision, Verdict.HELD.value) == Verdict.HELD.value,
    )


_UNDECIDED = _undecided()
