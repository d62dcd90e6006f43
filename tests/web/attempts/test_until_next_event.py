"""What is worked out once for all who look is never older than what happened."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, func, select

from grader.model.grade import Verdict
from grader.store import events
from grader.store.courses import enrolments, task_terms, task_withdrawal
from grader.store.courses.courses import tasks_of
from grader.store.courses.extensions import Extension, extend
from grader.store.database import Store
from grader.store.grading import comment_points, reviews
from grader.store.grading.gradebook import gradebook
from grader.store.tables import EventRow
from grader.web.lookups.until_next_event import UntilNextEvent
from tests.store.campus import Campus, verdict_of


@pytest.fixture
def campus(tmp_path: Path, empty_database: Path) -> Campus:
    return Campus(Store(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'grader.db')}"))


def terms(campus: Campus, **changes: Any) -> None:
    (task,) = tasks_of(campus.store, campus.course)
    task_terms.change_terms(campus.store, task, replace(task.terms, **changes), actor_id=campus.ines)


def attempt_of(campus: Campus) -> int:
    (cell,) = (row.cells[campus.task] for row in gradebook(campus.store, campus.course).rows if row.cells)
    assert cell.attempt_id is not None
    return cell.attempt_id


def late(campus: Campus) -> None:
    terms(campus, due_at=datetime.now(UTC) - timedelta(days=3))


def given_time(campus: Campus) -> None:
    late(campus)
    later = Extension(due_at=datetime.now(UTC) + timedelta(days=1))
    extend(campus.store, campus.task, later, person_ids=[campus.anna], actor_id=campus.ines)


CHANGES: dict[str, Callable[[Campus], object]] = {
    "handed in": lambda campus: campus.queue(campus.ben),
    "judged": lambda campus: campus.judge(campus.anna, grade=verdict_of(points=100)),
    "decided": lambda campus: reviews.override(
        campus.store, attempt_of(campus), Verdict.ACCEPTED, 90, "seen", actor_id=campus.ines
    ),
    "remarked": lambda campus: reviews.comment(
        campus.store,
        attempt_of(campus),
        "two points less",
        author_id=campus.ines,
        change=comment_points.CommentChange(points=comment_points.CommentPoints(-2.0)),
    ),
    "a date": late,
    "an extension": given_time,
    "a weight": lambda campus: terms(campus, weight=3.0),
    "a task more": lambda campus: campus.set_task("ddp-fashion"),
    "withdrawn": lambda campus: task_withdrawal.withdraw_task(
        campus.store, campus.course, campus.task, actor_id=campus.ines
    ),
    "somebody comes": lambda campus: campus.person("carl"),
    "somebody goes": lambda campus: enrolments.leave(
        campus.store, campus.course, campus.ben, actor_id=campus.ines
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_says_what_happened(campus: Campus, change: str) -> None:
    campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, points=40))
    kept = UntilNextEvent(campus.store)
    before = kept.of(gradebook, campus.course)
    assert kept.of(gradebook, campus.course) is before, "it is worked out once"
    CHANGES[change](campus)
    now, found = kept.of(gradebook, campus.course), gradebook(campus.store, campus.course)
    assert (now.tasks, now.rows) == (found.tasks, found.rows)
    assert (now.tasks, now.rows) != (before.tasks, before.rows), (
        "a change that changes nothing proves nothing"
    )


def test_what_a_run_tells_while_it_goes_on_changes_nothing(campus: Campus) -> None:
    campus.queue(campus.anna)
    claimed = campus.claim()
    kept = UntilNextEvent(campus.store)
    before = kept.of(gradebook, campus.course)
    told: list[tuple[str, dict[str, Any]]] = [
        ("phase", {"phase": "run"}),
        ("epoch", {"epoch": 1}),
        ("log", {"text": "hello"}),
    ]
    assert events.add_live_events(campus.store, claimed.attempt_id, claimed.lease_token, told)
    assert kept.of(gradebook, campus.course) is before
    campus.person("carl")
    assert len(kept.of(gradebook, campus.course).rows) == len(before.rows) + 1


def test_numbers_of_events_that_went_are_given_again(campus: Campus) -> None:
    kept = UntilNextEvent(campus.store)
    before = kept.of(gradebook, campus.course)
    with campus.store.write() as connection:
        last = connection.execute(select(func.max(EventRow.id))).scalar_one()
        connection.execute(delete(EventRow).where(EventRow.id > last - 3))
    assert kept.of(gradebook, campus.course) is not before, "as something happened"
    campus.person("carl")
    assert len(kept.of(gradebook, campus.course).rows) == len(before.rows) + 1


def test_of_many_who_ask_one_works_it_out(campus: Campus) -> None:
    campus.judge(campus.anna)
    kept, asked, entered = UntilNextEvent(campus.store), [], threading.Barrier(8)

    def ask(store: Store, course: int) -> int:
        asked.append(course)
        return len(gradebook(store, course).rows)

    def read() -> None:
        entered.wait(30)
        answers.append(kept.of(ask, campus.course))

    answers: list[int] = []
    readers = [threading.Thread(target=read) for _ in range(8)]
    for one in readers:
        one.start()
    for one in readers:
        one.join(30)
    assert answers == [2] * 8
    assert asked == [campus.course]


def test_what_went_wrong_is_tried_again_and_keeps_nobody_waiting(campus: Campus) -> None:
    kept, told = UntilNextEvent(campus.store), iter((ZeroDivisionError(), 7))

    def ask(store: Store) -> int:
        found = next(told)
        if isinstance(found, Exception):
            raise found
        return found

    with pytest.raises(ZeroDivisionError):
        kept.of(ask)
    assert kept.of(ask) == 7
