"""What leaves in a Gradescope archive: the grader as it is here and one task, and no solution of it."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest

from grader import cli
from grader.autograders.requirements import pinned
from tests.promised import CHECKOUT


@pytest.fixture
def archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> zipfile.ZipFile:
    out = tmp_path / "build" / "toy.zip"
    assert (
        cli.main(["export", "gradescope", "ddp-fashion", "--dataset", "digits", "--out", str(out), "--json"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    assert told["archive"] == str(out)
    assert told["needs"]["cores"] >= 2
    return zipfile.ZipFile(out)


def test_it_holds_the_task_the_grader_and_what_is_started(archive: zipfile.ZipFile) -> None:
    names = set(archive.namelist())
    assert {"setup.sh", "run_autograder", "requirements.txt", "grader/__main__.py"} <= names
    assert {
        f"course/ddp-fashion/{name}" for name in ("task.toml", "evaluate.py", "skeleton/train.py")
    } <= names
    for name in ("setup.sh", "run_autograder"):
        assert archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR
        assert b"{{" not in archive.read(name)


def test_no_solution_is_in_it(archive: zipfile.ZipFile) -> None:
    solutions = {
        path.read_bytes()
        for path in (CHECKOUT / "tasks/ddp-fashion/submissions").rglob("*")
        if path.is_file()
    }
    assert solutions
    assert not {archive.read(name) for name in archive.namelist()} & solutions
    assert [name for name in archive.namelist() if name.startswith("course/ddp-fashion/submissions/")] == [
        "course/ddp-fashion/submissions/accepted/distributed_sampler.py"
    ]


def test_requirements_are_pinned_to_what_judges_here() -> None:
    lines = pinned("judge").splitlines()
    assert any(line.startswith("torch==") and "+" not in line for line in lines)
    assert not any(line.startswith(("pytest", "ruff", "mypy")) for line in lines)


def test_what_the_platform_lacks_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "gradescope", "ddp-fashion", "--profile", "gpu"]) == 2
    assert "without GPUs" in capsys.readouterr().err
    assert cli.main(["export", "gradescope", "ddp-fashion", "--profile", "moon"]) == 2
