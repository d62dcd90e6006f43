"""A file of the grader itself is edited: `grader verify` runs what that reaches, judges the rest again, and says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import CHECKOUT

NAMES = {"no_process_group", "never_wrapped"}
Verify = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git repository with a copy of the package and of one task with two flawed submissions."""
    top = tmp_path / "checkout"
    no_caches = shutil.ignore_patterns("__pycache__")
    for part in ("grader", "tasks/ddp-toy", "skeletons/ddp-toy"):
        shutil.copytree(CHECKOUT / part, top / part, ignore=no_caches)
    for path in (top / "tasks/ddp-toy/submissions").glob("*/*"):
        if path.parent.name != "accepted" and path.stem not in NAMES:
            path.unlink()
    (top / ".gitignore").write_text("__pycache__/\n")
    git(top, "init", "--quiet")
    git(top, "add", ".")
    git(top, "commit", "--quiet", "--message=first")
    return top


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


@pytest.fixture
def verify(checkout: Path, cli_env: dict[str, str], tmp_path: Path) -> Verify:
    """`grader verify` of the copy: whether each submission was judged from kept evidence, and standard error."""
    env = {**cli_env, "GRADER_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(checkout)}
    env["GRADER_TASKS_DIR"] = str(checkout / "tasks")

    def run(*options: str) -> tuple[dict[str, Any], str]:
        command = [sys.executable, "-m", "grader", "verify", "--only", "rejected/", "--no-time", "--json"]
        done = subprocess.run(
            [*command, *options], cwd=checkout, env=env, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        cases = json.loads(done.stdout)["cases"]
        return {Path(case["submission"]).stem: case["cached"] for case in cases}, done.stderr

    return run


def append(path: Path, line: str = "\n# another line\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(line)


def test_what_runs_is_run_again_and_what_only_judges_is_not(checkout: Path, verify: Verify) -> None:
    both = dict.fromkeys(NAMES, True)
    first, said = verify("--cache")
    assert (first, "Changed since" in said) == (dict.fromkeys(NAMES, False), False)

    append(checkout / "grader/checks/rules/dist001_missing_process_group.py")
    for option in (("--cache",), ("--changed-since", "HEAD")):
        judged, said = verify(*option)
        assert (judged, "Changed since" in said) == (both, False)

    append(checkout / "grader/probe/install.py")
    told = "Changed since they were run: grader/probe. Run again: 2 submissions."
    run, said = verify("--changed-since", "HEAD")
    assert run == dict.fromkeys(NAMES, False)
    assert told in said
    assert verify("--cache")[0] == both, "and that run is kept"

    git(checkout, "commit", "--quiet", "--all", "--message=second")
    (script,) = (checkout / "tasks/ddp-toy/submissions/rejected").glob("no_process_group.*")
    append(script)
    run, said = verify("--changed-since", "HEAD")
    assert run == {"no_process_group": False}
    assert "Changed since they were run: the submission. Run again: 1 submission." in said
