"""`grader doctor` tells what is wrong with a machine on which hardly anything is right, and never dies of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader import cli
from grader.settings import settings
from tests.promised import CHECKOUT


def checkups(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    settings.cache_clear()
    try:
        assert cli.main(["doctor", "--json"]) == 4
    finally:
        settings.cache_clear()
    return {one["what"]: one for one in json.loads(capsys.readouterr().out)}


def test_a_setting_that_is_wrong_is_told_once_and_the_rest_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADER_POOL_PAIRS", "many")
    found = checkups(capsys)
    assert "GRADER_POOL_PAIRS=many: must be a whole number" in str(found["settings"]["remedy"])
    assert sum("GRADER_POOL_PAIRS" in str(one["remedy"]) for one in found.values()) == 1
    assert found["Python"]["ok"]


def test_a_folder_of_tasks_that_is_not_there_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("GRADER_TASKS_DIR", str(tmp_path / "gone"))
    found = checkups(capsys)
    assert "There is no folder of tasks" in str(found["tasks"]["remedy"])
    assert found["runtime process"]["ok"]
    (tmp_path / "gone").mkdir()
    assert "grader new course" in str(checkups(capsys)["tasks"]["remedy"])


def test_an_old_python_is_told_in_one_line(tmp_path: Path) -> None:
    code = "import runpy, sys; sys.version_info = (3, 9, 2); runpy.run_module('grader', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code, "doctor"], cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stderr.startswith("grader: Python 3.11 or newer is needed")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("other", [False, True])
def test_a_torch_without_its_command_is_told(
    other: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "torchrun").touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path) if other else "")
    # Torch itself is there; the settings are wrong, so that nothing slower is looked at.
    monkeypatch.setenv("GRADER_POOL_PAIRS", "many")
    found = checkups(capsys)
    assert found["torch"]["ok"]
    assert not found["torchrun"]["ok"]
    assert str(found["torchrun"]["found"]).startswith("of another Python" if other else "not installed")
    assert f"{sys.executable} -m torch.distributed.run" in str(found["torchrun"]["remedy"])
