"""What a start makes of the course file and what it leaves to people, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.catalog.courses.course_file import load_course
from grader.serve.first_start import set_up
from grader.settings.schema import Settings
from grader.store.courses import courses
from grader.store.courses.course_import import import_course
from grader.store.courses.courses import TaskTerms
from grader.store.courses.task_withdrawal import Withdrawal, withdraw_task
from grader.store.database import Store
from grader.store.files import FolderFiles


@pytest.fixture
def store(tmp_path: Path, data: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{tmp_path / 'grader.db'}")
    yield made
    made.close()


def opened(store: Store, folder: Path) -> tuple[dict[str, TaskTerms], tuple[str, ...]]:
    """The terms of the tasks that a start finds or sets, and what it leaves out."""
    result = set_up(store, Settings(state_dir=folder), demo=False)
    (course,) = (one for one in courses.courses(store) if one.title == result.course)
    there = {one.task: one.terms for one in courses.tasks_of(store, course.id) if not one.withdrawn}
    return {name: there[name] for name in result.tasks}, result.left_out


def test_a_task_that_was_taken_out_stays_out(store: Store, tmp_path: Path) -> None:
    before, _ = opened(store, tmp_path)
    (course,) = courses.courses(store)
    gone = courses.tasks_of(store, course.id)[0]
    assert withdraw_task(store, course.id, gone.id, actor_id=None) is Withdrawal.REMOVED
    after, left_out = opened(store, tmp_path)
    assert set(before) - set(after) == {gone.task}
    assert any(line.startswith(f"{gone.task}: was taken out") for line in left_out)
    # Whoever adds it again has it again, at a version that somebody kept.
    courses.set_task(store, course.id, gone.task, gone.profile, replace(gone.terms, version="0" * 64))
    again, _ = opened(store, tmp_path)
    assert again[gone.task].version == gone.terms.version


def test_a_course_without_a_first_day_has_the_file_s_terms_without_dates(
    store: Store, tmp_path: Path
) -> None:
    here, _ = opened(store, tmp_path)
    planned = replace(load_course(), name="held")
    held = import_course(
        store, FolderFiles(tmp_path / "files"), planned, begins_at=datetime(2030, 1, 1, tzinfo=UTC)
    )
    dated = {one.task: one.terms for one in courses.tasks_of(store, held)}
    assert any(terms.due_at for terms in dated.values())
    for name in set(dated) & set(here):
        undated = replace(dated[name], opens_at=None, due_at=None, hidden_until_due=False)
        assert here[name] == undated, name
