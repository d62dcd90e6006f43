"""Comparisons of classes as they are kept: what is to be compared anew, and the pairs that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, func, insert, or_, select
from sqlalchemy.orm import aliased

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.grading.pseudonyms import key_column, shown_name
from grader.store.tables import (
    AttemptRow,
    ComparisonRow,
    CourseRow,
    CourseTaskRow,
    DeletedContentRow,
    EnrolmentRow,
    PersonRow,
    SimilarPairRow,
)
from grader.store.tables.attempt import Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class NewPair:
    """A pair that was found; `passages`: of either side, as `SimilarPairRow` keeps them."""

    attempt_a: int
    attempt_b: int
    num_lines: int
    share_a: float
    share_b: float
    passages: Sequence[Sequence[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class NewComparison:
    """What comparing gave; see `ComparisonRow`."""

    newest_attempt: int
    num_compared: int
    num_too_large: int
    num_earlier: int
    skeleton: bool
    pairs: tuple[NewPair, ...]


@dataclass(frozen=True, slots=True)
class KeptComparison:
    """When a class was compared, and with what; `num_newer`: attempts that came afterwards."""

    compared_at: datetime
    num_compared: int
    num_too_large: int
    num_earlier: int
    skeleton: bool
    num_newer: int


@dataclass(frozen=True, slots=True)
class ComparedWork:
    """One side of a pair: whose it is, and of which course."""

    attempt_id: int
    name: str
    course_id: int
    course_title: str


@dataclass(frozen=True, slots=True)
class KeptPair:
    """A pair as it is listed: those with the most lines in common come first."""

    a: ComparedWork
    b: ComparedWork
    num_lines: int
    share_a: float
    share_b: float


def stale_tasks(store: Store, *, least_s: float) -> tuple[tuple[int, int], ...]:
    """Tasks of courses with attempts that no comparison has seen, each with the newest of them.

    One that was compared less than `least_s` seconds ago waits: a class that hands in all the time is not compared all
    the time.
    """
    newest = (
        select(AttemptRow.course_task_id, func.max(AttemptRow.id).label("id"))
        .where(AttemptRow.lane == Lane.INTERACTIVE)
        .group_by(AttemptRow.course_task_id)
        .having(func.min(AttemptRow.person_id) != func.max(AttemptRow.person_id))
        .subquery()
    )
    statement = (
        select(newest.c.course_task_id, newest.c.id)
        .outerjoin(ComparisonRow, ComparisonRow.course_task_id == newest.c.course_task_id)
        .where(
            or_(
                ComparisonRow.course_task_id.is_(None),
                and_(
                    ComparisonRow.newest_attempt < newest.c.id,
                    ComparisonRow.compared_at < database_now(-least_s),
                ),
            )
        )
        .order_by(newest.c.course_task_id)
    )
    with store.read() as connection:
        return tuple((row.course_task_id, row.id) for row in connection.execute(statement))


def newest_attempt(store: Store, course_task_id: int) -> int:
    """Number of a task's newest attempt; 0: there is none."""
    with store.read() as connection:
        return (
            connection.execute(
                select(func.max(AttemptRow.id)).where(
                    AttemptRow.course_task_id == course_task_id, AttemptRow.lane == Lane.INTERACTIVE
                )
            ).scalar_one()
            or 0
        )


def same_task_elsewhere(store: Store, course_task_id: int) -> tuple[int, ...]:
    """The tasks of the same name in other courses, the latest course first."""
    here, there = aliased(CourseTaskRow), aliased(CourseTaskRow)
    statement = (
        select(there.id)
        .join(here, here.task == there.task)
        .where(here.id == course_task_id, there.course_id != here.course_id)
        .order_by(there.id.desc())
    )
    with store.read() as connection:
        return tuple(connection.execute(statement).scalars())


def keep_comparison(store: Store, course_task_id: int, found: NewComparison) -> None:
    """Keep this comparison in the place of the one before, without pairs of attempts that were erased meanwhile."""
    with store.write() as connection:
        task = (
            select(CourseTaskRow.id).where(CourseTaskRow.id == course_task_id).with_for_update(key_share=True)
        )
        # Whoever else compared the same class waits here.
        if connection.execute(task).one_or_none() is None:
            return
        connection.execute(delete(SimilarPairRow).where(SimilarPairRow.course_task_id == course_task_id))
        connection.execute(delete(ComparisonRow).where(ComparisonRow.course_task_id == course_task_id))
        connection.execute(
            insert(ComparisonRow).values(
                course_task_id=course_task_id,
                newest_attempt=found.newest_attempt,
                num_compared=found.num_compared,
                num_too_large=found.num_too_large,
                num_earlier=found.num_earlier,
                skeleton=found.skeleton,
                compared_at=database_now(),
            )
        )
        ids = {one for pair in found.pairs for one in (pair.attempt_a, pair.attempt_b)}
        there = set(
            connection.execute(
                select(AttemptRow.id)
                .where(AttemptRow.id.in_(ids))
                .order_by(AttemptRow.id)
                .with_for_update(key_share=True, read=True)
            ).scalars()
        )
        rows = [
            {
                "course_task_id": course_task_id,
                "attempt_a": one.attempt_a,
                "attempt_b": one.attempt_b,
                "num_lines": one.num_lines,
                "share_a": one.share_a,
                "share_b": one.share_b,
                "passages": one.passages,
            }
            for one in found.pairs
            if {one.attempt_a, one.attempt_b} <= there
        ]
        if rows:
            connection.execute(insert(SimilarPairRow), rows)


def comparison_of(store: Store, course_task_id: int) -> KeptComparison | None:
    """The last comparison of a task, or None: there was none yet."""
    newer = (
        select(func.count())
        .where(
            AttemptRow.course_task_id == ComparisonRow.course_task_id,
            AttemptRow.lane == Lane.INTERACTIVE,
            AttemptRow.id > ComparisonRow.newest_attempt,
        )
        .scalar_subquery()
    )
    columns = (
        ComparisonRow.compared_at,
        ComparisonRow.num_compared,
        ComparisonRow.num_too_large,
        ComparisonRow.num_earlier,
        ComparisonRow.skeleton,
        newer,
    )
    with store.read() as connection:
        row = connection.execute(
            select(*columns).where(ComparisonRow.course_task_id == course_task_id)
        ).one_or_none()
    return None if row is None else KeptComparison(*row)


def pairs_of(store: Store, course_task_id: int) -> tuple[KeptPair, ...]:
    """The pairs of a task's last comparison, of those who learn in the two courses now and whose scripts are kept."""
    with store.read() as connection:
        rows = connection.execute(_pairs(), {"task": course_task_id})
        return tuple(KeptPair(_work(*row[:6]), _work(*row[6:12]), *row[12:]) for row in rows)


# Made once: that takes several times as long as running it.
@cache
def _pairs() -> Select[Any]:
    a, b = _side(), _side()
    return (
        select(
            *a.columns, *b.columns, SimilarPairRow.num_lines, SimilarPairRow.share_a, SimilarPairRow.share_b
        )
        .join(a.works, a.works.c.id == SimilarPairRow.attempt_a)
        .join(b.works, b.works.c.id == SimilarPairRow.attempt_b)
        .where(SimilarPairRow.course_task_id == bindparam("task"))
        .order_by(
            SimilarPairRow.num_lines.desc(),
            SimilarPairRow.share_a.desc(),
            SimilarPairRow.attempt_a,
            SimilarPairRow.attempt_b,
        )
    )


def _work(
    key: str | None, person_id: int, name: str, attempt_id: int, course_id: int, course_title: str
) -> ComparedWork:
    return ComparedWork(attempt_id, shown_name(key, person_id, name) or name, course_id, course_title)


def passages_of(store: Store, course_task_id: int, attempt_a: int, attempt_b: int) -> list[Any] | None:
    """Where a kept pair is alike, side by side in that order, or None: that pair is not kept."""
    with store.read() as connection:
        row = connection.execute(
            select(SimilarPairRow.attempt_a, SimilarPairRow.passages).where(
                SimilarPairRow.course_task_id == course_task_id,
                SimilarPairRow.attempt_a.in_([attempt_a, attempt_b]),
                SimilarPairRow.attempt_b.in_([attempt_a, attempt_b]),
            )
        ).one_or_none()
    if row is None:
        return None
    return list(row.passages) if row.attempt_a == attempt_a else list(reversed(row.passages))


_LEARNS = and_(
    EnrolmentRow.course_id == CourseTaskRow.course_id,
    EnrolmentRow.person_id == AttemptRow.person_id,
    EnrolmentRow.role == Role.LEARNER,
)


@dataclass(frozen=True, slots=True)
class _Side:
    works: Any
    columns: tuple[Any, ...]


def _side() -> _Side:
    works = (
        select(
            key_column(AttemptRow.course_task_id).label("key"),
            AttemptRow.person_id,
            PersonRow.name,
            AttemptRow.id,
            CourseTaskRow.course_id,
            CourseRow.title,
        )
        .select_from(AttemptRow)
        .join(PersonRow, PersonRow.id == AttemptRow.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .join(CourseRow, CourseRow.id == CourseTaskRow.course_id)
        .join(EnrolmentRow, _LEARNS)
        .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
        .where(DeletedContentRow.scripts_at.is_(None))
        .subquery()
    )
    c = works.c
    return _Side(works, (c.key, c.person_id, c.name, c.id, c.course_id, c.title))
