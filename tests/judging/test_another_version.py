"""A stored attempt judged again after its task was edited: by the task as it is now, or as it was handed in for."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from grader import cli
from grader.catalog.data.datasets import prepare
from grader.catalog.tasks.kept_tasks import keep_task
from grader.catalog.tasks.task_folders import load_task
from grader.errors import UsageError
from grader.judging.attempt_folder import read_facts, write_facts
from grader.judging.stored_attempt import judge_again, judged_version
from grader.run.workspace import Workspace
from grader.settings import in_course, settings

FIXTURE = Path(__file__).parent / "fixtures" / "ddp-fashion-no_distributed_sampler.tar.xz"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """A course of one task, to be edited."""
    made = tmp_path / "tasks"
    left_out = shutil.ignore_patterns("rejected", "crashed", "deadlocked", "timed_out", "out_of_memory")
    shutil.copytree(settings().tasks_dir / "ddp-fashion", made / "ddp-fashion", ignore=left_out)
    shutil.copytree(settings().skeletons_dir / "ddp-fashion", tmp_path / "skeletons" / "ddp-fashion")
    return made


@pytest.fixture
def attempt(tmp_path: Path, tasks: Path) -> Workspace:
    """A stored attempt without its weights, handed in for the course's task before it is edited."""
    with tarfile.open(FIXTURE) as packed:
        # The first Pythons 3.11 know no filter; it is our own archive.
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        packed.extractall(tmp_path / "attempt", **safe)
    workspace = Workspace(tmp_path / "attempt")
    with in_course(tasks):
        task = load_task("ddp-fashion")
    keep_task(task)
    write_facts(replace(read_facts(workspace), task_version=task.version), workspace)
    return workspace


def edit(tasks: Path, name: str, old: str, new: str) -> None:
    path = tasks / "ddp-fashion" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def edit_target(tasks: Path) -> None:
    path = tasks / "ddp-fashion" / "task.toml"
    text, number = re.subn(r"digits = 0\.\d+", "digits = 0.5", path.read_text())
    assert number == 1
    path.write_text(text)


def test_a_changed_target_judges_and_what_changes_is_said(
    attempt: Workspace, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_target(tasks)
    with in_course(tasks):
        assert cli.main(["regrade", str(attempt.root), "--json", "--staff"]) == 1
        said = capsys.readouterr()
        grade = json.loads(said.out)
        assert grade["metrics"]["accuracy_target"] == 0.5
        assert "accuracy_target" in said.err
        assert "→ 0.5" in said.err
        (note,) = [one for one in grade["notes"] if one.startswith("Judged again by version")]
        assert "Changed since: task.toml." in note
        assert "scored" not in note, "the target is no part of the score"
        cli.main(["regrade", str(attempt.root), "--json", "--staff"])
        again = capsys.readouterr()
        assert again.out == said.out, "the same bytes"
        assert "nothing changes" in again.err
        # As it was handed in for, the old target holds.
        cli.main(["regrade", str(attempt.root), "--json", "--staff", "--version", "kept"])
        kept = json.loads(capsys.readouterr().out)
        assert kept["metrics"]["accuracy_target"] != 0.5
        assert kept["task_version"] == read_facts(attempt).task_version


def test_a_changed_scorer_scores_what_was_kept(attempt: Workspace, tasks: Path) -> None:
    """Weights are there for one judging and not for the other."""
    prepare("digits")
    edit(tasks, "evaluate.py", "def evaluate(", "BETTER = True\n\n\ndef evaluate(")
    run = attempt.evaluation.read_bytes()
    with in_course(tasks):
        chosen = judged_version(attempt, as_handed_in=False)
        without = judge_again(attempt, chosen).grade
        assert "were not kept, so the score is still that of the run" in without.notes[-1]
        assert without.metrics["accuracy"] == json.loads(run)["hidden"]["accuracy"]

        attempt.outputs.mkdir()
        _untrained_weights(tasks, attempt.outputs / "model.pt")
        scored = judge_again(attempt, judged_version(attempt, as_handed_in=False)).grade
    assert "evaluate.py" in scored.notes[-1]
    assert "was scored anew" in scored.notes[-1]
    accuracy = scored.metrics["accuracy"]
    assert accuracy is not None
    assert accuracy < 0.5, "of weights that were never trained"
    assert attempt.evaluation.read_bytes() == run, "evidence stays as the run left it"


def test_a_version_that_nobody_kept_is_said(attempt: Workspace, tasks: Path) -> None:
    facts = read_facts(attempt)
    assert asdict(facts)["task_version"]
    write_facts(replace(facts, task_version="0" * 64), attempt)
    with in_course(tasks):
        grade = judge_again(attempt, judged_version(attempt, as_handed_in=False)).grade
        assert "Nobody kept that one" in grade.notes[-1]
        with pytest.raises(UsageError, match="never kept here"):
            judged_version(attempt, as_handed_in=True)


def _untrained_weights(tasks: Path, path: Path) -> None:
    import importlib.util

    import torch

    spec = importlib.util.spec_from_file_location("edited", tasks / "ddp-fashion" / "evaluate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    torch.save(module.build_model().state_dict(), path)
