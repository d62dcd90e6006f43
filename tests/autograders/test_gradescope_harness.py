"""Gradescope's side played for real: its folders, its order of programs, root in a container with limits."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader import cli
from grader.run.image_context import base_tag
from tests.promised import CHECKOUT

TASK = "ddp-toy"
# What is installed here stands in for an index: the real pip finds all that is asked for already there, but for the
# setuptools that a new environment of Debian's brings along and PyTorch finds too old.
PYTHON = """#!/bin/sh
/usr/bin/python3 "$@" || exit $?
case "$*" in
"-m venv "*)
    packages=$(echo "$3"/lib/python*/site-packages)
    rm -rf "$packages"/setuptools*
    echo /installed >"$packages/installed.pth" ;;
esac
"""
Harness = Callable[[Path], dict[str, Any]]


def in_container(autograder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line as the platform does: as root, on its folders, within the limits that the command asked for."""
    mounts = (f"{autograder}:/autograder", f"{sysconfig.get_path('purelib')}:/installed:ro")
    limits = ("--rm", "--network=none", "--env=PIP_NO_INDEX=1", "--cpus=2", "--memory=6g")
    options = (*limits, *(f"--volume={mount}" for mount in mounts))
    return subprocess.run(
        ["docker", "run", *options, f"grader-base:{base_tag()}", "bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def harness(docker_images: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Harness:
    """An autograder built from the archive: a folder that is handed in becomes what is in results.json."""
    autograder = tmp_path_factory.mktemp("autograder")
    assert cli.main(["export", "gradescope", TASK, "--out", str(autograder / "archive.zip")]) == 0
    zipfile.ZipFile(autograder / "archive.zip").extractall(autograder / "source")
    (autograder / "bin").mkdir()
    (autograder / "bin" / "python3").write_text(PYTHON)
    (autograder / "bin" / "python3").chmod(0o755)
    built = in_container(
        autograder,
        "cp /autograder/source/run_autograder /autograder/run_autograder && chmod +x /autograder/run_autograder && "
        "PATH=/autograder/bin:$PATH bash /autograder/source/setup.sh",
    )
    assert built.returncode == 0, built.stdout + built.stderr

    def hand_in(folder: Path) -> dict[str, Any]:
        for name in ("submission", "results"):
            shutil.rmtree(autograder / name, ignore_errors=True)
        shutil.copytree(folder, autograder / "submission")
        (autograder / "results").mkdir()
        done = in_container(autograder, "cd /autograder && ./run_autograder")
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads((autograder / "results" / "results.json").read_text())
        return found

    return hand_in


def folder_of(tmp_path: Path, script: Path, name: str = "train.py") -> Path:
    (tmp_path / "mine").mkdir()
    shutil.copy(script, tmp_path / "mine" / name)
    return tmp_path / "mine"


@pytest.mark.slow
def test_a_solution_earns_all_points(harness: Harness, tmp_path: Path) -> None:
    accepted = CHECKOUT / "tasks" / TASK / "submissions" / "accepted" / "launcher_variables.py"
    told = harness(folder_of(tmp_path, accepted))
    assert told["score"] == 100.0
    assert told["extra_data"]["verdict"] == "accepted"
    assert {test["status"] for test in told["tests"] if "status" in test} == {"passed"}


@pytest.mark.slow
def test_a_skeleton_is_told_what_is_missing(harness: Harness, tmp_path: Path) -> None:
    told = harness(folder_of(tmp_path, CHECKOUT / "skeletons" / TASK / "train.py"))
    assert told["score"] < 50
    assert any("DIST001" in test["output"] for test in told["tests"])


@pytest.mark.slow
def test_what_is_no_submission_has_a_result_that_says_so(harness: Harness, tmp_path: Path) -> None:
    told = harness(folder_of(tmp_path, CHECKOUT / "skeletons" / TASK / "train.py", "lab.py"))
    assert told["score"] == 0.0
    assert "rename the script to start" in " ".join(told["output"].split())
