"""Statements in other languages: found by their names, held against the original that they were made from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.catalog.tasks.task_loading import load_task_folder
from grader.catalog.tasks.translations import translation_notes
from grader.model.task import Task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "ddp-toy"
    shutil.copytree(load_task("ddp-toy").folder, made)
    return made


def load(folder: Path) -> Task:
    return load_task_folder(folder, load_task("ddp-toy").skeleton)


def test_the_first_language_that_there_is_is_told(folder: Path) -> None:
    (folder / "statement.german.md").write_text("none")
    task = load(folder)
    assert [one.language for one in task.translations] == ["de"]
    assert task.told_in(["fr", "de", "en"]).text.startswith("# Ein erstes Netz"), "without its first line"
    assert task.told_in(["en", "de"]).text == task.told_in([""]).text == task.statement


def test_a_translation_whose_original_has_changed_is_told_with_what_to_write(folder: Path) -> None:
    assert translation_notes([load(folder)]) == ()
    with (folder / "statement.md").open("a") as file:
        file.write("One more sentence.\n")
    task = load(folder)
    assert task.told_in(["de"]).stale
    (note,) = translation_notes([task])
    assert note.startswith("ddp-toy/statement.de.md was made from another")
    line = note.split("`")[1]
    path = folder / "statement.de.md"
    path.write_text(f"{line}\n{path.read_text().partition(chr(10))[2]}")
    assert not load(folder).told_in(["de"]).stale


def test_one_that_says_no_original_is_told_whole_and_as_stale(folder: Path) -> None:
    (folder / "statement.de.md").write_text("# Aufgabe\n")
    told = load(folder).told_in(["de"])
    assert (told.text, told.stale) == ("# Aufgabe\n", True)


def test_tasks_that_lack_a_language_of_the_course_are_named(folder: Path) -> None:
    (note,) = translation_notes([load(folder), load_task("fsdp")])
    assert note == "Without a statement.de.md, and told in English instead: fsdp."
