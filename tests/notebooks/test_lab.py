"""A task as a notebook: what Jupyter opens, with all that is asked, and handed in as it is the skeleton."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from grader import cli
from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import EXIT_ACCEPTED, EXIT_USAGE
from grader.notebooks.lab import lab_notebook

# Jupyter's own, of the package nbformat (BSD).
SCHEMA = json.loads((Path(__file__).parent / "nbformat.v4.5.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", find_tasks())
def test_every_task_is_a_notebook_that_holds_its_skeleton(name: str, tmp_path: Path) -> None:
    task = load_task(name)
    path = tmp_path / "lab.ipynb"
    path.write_text(lab_notebook(task, task.statement), encoding="utf-8")
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(document, SCHEMA)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    start = read_submission(task.skeleton)
    for file in read_submission(path).files:
        assert file.text.split("\n", 1)[1].rstrip() == (start.text(file.path) or "").rstrip()
    figures = document["cells"][0].get("attachments", {})
    told = "".join(document["cells"][0]["source"])
    assert "](figures/" not in told
    assert all(f"(attachment:{figure})" in told for figure in figures)
    assert bool(figures) == ("](figures/" in task.statement)


def test_it_is_written_once_and_in_the_readers_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_ALL", "de_AT.UTF-8")
    assert cli.main(["tasks", "ddp-toy", "--notebook"]) == EXIT_ACCEPTED
    first = (tmp_path / "ddp-toy.ipynb").read_text(encoding="utf-8")
    assert "# Ein erstes Netz" in first
    assert cli.main(["tasks", "ddp-toy", "--notebook"]) == EXIT_USAGE, "it may hold somebody's work"
    assert cli.main(["tasks", "ddp-toy", "--notebook", "lab.txt"]) == EXIT_USAGE
    assert cli.main(["tasks", "--notebook"]) == EXIT_USAGE
    assert (tmp_path / "ddp-toy.ipynb").read_text(encoding="utf-8") == first
    capsys.readouterr()
    command = ["tasks", "ddp-toy", "--notebook", "lab.ipynb", "--language", "en", "--json"]
    assert cli.main(command) == EXIT_ACCEPTED
    assert json.loads(capsys.readouterr().out)["path"] == "lab.ipynb"
    assert "# A first network" in (tmp_path / "lab.ipynb").read_text(encoding="utf-8")
