"""Which course is meant: the one that one stands in, as with git, unless a variable names another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import skeleton_folder, task_folder
from grader.errors import UsageError
from grader.settings import BUILT_IN, course_given, settings, tasks_dir


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody has said which course is meant, and nothing is remembered."""
    for name in ("GRADER_TASKS_DIR", "GRADER_SKELETONS_DIR", "GRADER_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def course(tmp_path: Path) -> Path:
    (tmp_path / "week" / "deep").mkdir(parents=True)
    (tmp_path / "course.toml").write_text("")
    return tmp_path


def test_a_course_is_found_from_below_with_its_state_beside_it(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course / "week" / "deep")
    assert course_given()
    assert tasks_dir() == settings().tasks_dir == course
    assert settings().state_dir == course / ".grader"


def test_the_nearest_course_is_meant(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (course / "week" / "course.toml").write_text("")
    monkeypatch.chdir(course / "week" / "deep")
    assert tasks_dir() == course / "week"


def test_tasks_may_lie_in_a_folder_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tasks/one", "skeletons/one", "docs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tasks" / "course.toml").write_text("")
    for here in ("docs", "tasks/one"):
        settings.cache_clear()
        monkeypatch.chdir(tmp_path / here)
        assert settings().tasks_dir == tmp_path / "tasks"
        assert settings().state_dir == tmp_path / ".grader"
        assert skeleton_folder(tmp_path / "tasks" / "one") == tmp_path / "skeletons" / "one"


def test_a_variable_wins_and_elsewhere_the_built_in_course_is_meant(
    course: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert not course_given()
    assert tasks_dir() == BUILT_IN / "tasks"
    monkeypatch.setenv("GRADER_TASKS_DIR", str(elsewhere))
    monkeypatch.chdir(course)
    assert tasks_dir() == elsewhere
    monkeypatch.delenv("GRADER_TASKS_DIR")
    named = elsewhere / "name"
    named.write_text(f"{elsewhere}\n")
    monkeypatch.setenv("GRADER_TASKS_DIR_FILE", str(named))
    assert settings().tasks_dir == elsewhere


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a file to somebody else")
def test_somebody_elses_course_is_not_taken_for_ones_own(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(course / "course.toml", 65534, 65534)
    monkeypatch.chdir(course / "week")
    with pytest.raises(UsageError, match=f"export GRADER_TASKS_DIR={course}"):
        tasks_dir()
    monkeypatch.setenv("GRADER_TASKS_DIR", str(course))
    assert tasks_dir() == course


def test_skeletons_lie_beside_their_tasks(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course)
    (course / "mine" / "skeleton").mkdir(parents=True)
    assert skeleton_folder(course / "mine") == course / "mine" / "skeleton"


def test_where_there_is_no_course_an_unknown_task_says_whose_tasks_are_meant(
    course: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(UsageError, match=r"No course was found from here upwards.*GRADER_TASKS_DIR.*ddp-toy"):
        task_folder("house-prices")
    monkeypatch.chdir(course)
    with pytest.raises(UsageError, match=r"There is no task 'house-prices'\. There are no tasks yet\.$"):
        task_folder("house-prices")
