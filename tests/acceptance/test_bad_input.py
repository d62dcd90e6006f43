"""Bad input: one clear message that says what to do, the right exit code, no traceback, nothing left behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.conftest import CHECKOUT, Cli

SKELETON = CHECKOUT / "skeletons" / "ddp-fashion" / "train.py"


def _make(folder: Path, kind: str) -> Path:
    """A bad submission of that kind; its path."""
    path = folder / "train.py"
    if kind == "missing":
        return folder / "nowhere.py"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "50 MB":
        with path.open("wb") as file:
            file.truncate(50 << 20)
    elif kind == "binary":
        path.write_bytes(bytes(range(256)) * 8)
    elif kind == "not UTF-8":
        path.write_bytes("x = 1\nname = 'Zoë'\n".encode("latin-1"))
    elif kind == "folder without train.py":
        (folder / "main.py").write_text("print('hello')\n")
        return folder
    elif kind == "notebook":
        path = folder / "train.ipynb"
        path.write_text("{}")
    return path


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("missing", "nowhere.py"),
        ("empty", "empty"),
        ("50 MB", "MiB"),
        ("binary", "text"),
        ("not UTF-8", "UTF-8"),
        ("folder without train.py", "train.py"),
        ("notebook", "is no notebook"),
    ],
)
def test_a_file_that_cannot_be_judged_is_refused_before_anything_runs(
    kind: str, says: str, cli: Cli, tmp_path: Path
) -> None:
    folder = tmp_path / "upload"
    folder.mkdir()
    path = _make(folder, kind)
    before = sorted(p.name for p in tmp_path.iterdir())
    result = cli("grade", "ddp-fashion", path, "--out", tmp_path / "out")
    assert result.returncode == 2, result.stderr
    assert says.lower() in result.stderr.lower()
    assert "Traceback" not in result.stdout + result.stderr
    assert result.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_unknown_task_names_those_that_exist(cli: Cli) -> None:
    result = cli("grade", "ddp-fashoin", SKELETON)
    assert result.returncode == 2
    assert "ddp-fashion" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_rule_names_its_neighbours(cli: Cli) -> None:
    result = cli("rule", "DATA02")
    assert result.returncode == 2
    assert "DATA002" in result.stderr


def test_a_script_that_does_not_parse_gets_one_finding_and_no_run(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import torch\n\ndef main(:\n    pass\n")
    result = cli("grade", "ddp-fashion", path, "--out", tmp_path / "out")
    assert result.returncode == 1, result.stderr
    assert "train.py:3" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr
    lint = cli("lint", path)
    assert lint.returncode == 1
    assert "train.py:3" in lint.stdout


def test_missing_data_says_how_to_prepare_it(cli: Cli, tmp_path: Path) -> None:
    result = cli(
        "grade", "ddp-fashion", SKELETON, "--dataset", "fashion-mnist-mini", "--out", tmp_path / "out"
    )
    assert result.returncode == 2
    assert "grader data prepare fashion-mnist-mini" in result.stderr
    assert not (tmp_path / "out").exists()


def test_three_mistakes_in_a_task_file_are_told_at_once(
    cli: Cli, cli_env: dict[str, str], tmp_path: Path
) -> None:
    tasks = tmp_path / "tasks"
    shutil.copytree(CHECKOUT / "tasks" / "ddp-fashion", tasks / "ddp-fashion")
    toml = tasks / "ddp-fashion" / "task.toml"
    text = toml.read_text()
    text = text.replace("title =", "titel =", 1)
    text = text.replace("nproc_per_node = 2", 'nproc_per_node = "two"', 1)
    text = text.replace("DATA002", "DATA999", 1)
    toml.write_text(text)
    cli_env["GRADER_TASKS_DIR"] = str(tasks)
    result = cli("tasks", "ddp-fashion")
    assert result.returncode == 3, result.stdout + result.stderr
    for word in ("titel", "nproc_per_node", "DATA999"):
        assert word in result.stderr
    assert len({line.split(":")[1] for line in result.stderr.splitlines() if "task.toml:" in line}) >= 3
    assert "Traceback" not in result.stderr


def test_an_out_folder_with_other_files_is_not_touched(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("three years of work")
    result = cli("grade", "ddp-fashion", SKELETON, "--out", out)
    assert result.returncode == 2
    assert (out / "thesis.txt").read_text() == "three years of work"


def test_regrade_of_something_else_says_so(cli: Cli, tmp_path: Path) -> None:
    result = cli("regrade", tmp_path)
    assert result.returncode == 2
    assert "attempt" in result.stderr
