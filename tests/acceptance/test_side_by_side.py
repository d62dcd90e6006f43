"""`--jobs`: several submissions are judged at once, with the same outcome, in the same order, and nothing survives."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from grader.catalog.tasks.task_folders import load_task, reference
from grader.model.run_options import Options
from grader.pipeline import OnProgress, Pipeline
from grader.promises.parallel_pipelines import side_by_side
from grader.run.runtime import Progress
from tests import promised
from tests.acceptance.conftest import CHECKOUT, Cli

OPTIONS = Options(dataset="digits", timed=False)
KEPT = ("accepted/launcher_variables", "crashed/ddp_without_process_group", "rejected/never_wrapped")


def quiet(_: object) -> None:
    """Whoever looks at results needs no signs of life."""


def all_at_once(
    items: list[int],
    work: Callable[[Pipeline, int, OnProgress], int],
    alone: Callable[[int], bool] = lambda _: False,
    on_progress: Callable[[Progress], None] = quiet,
) -> tuple[int, ...]:
    return side_by_side(
        items, work, runtime=None, jobs=2, alone=alone, on_progress=on_progress, on_done=quiet
    )


def children() -> set[int]:
    """But those that this process keeps to read texts with: they are no run's, and end with it."""
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if "grader.readers" not in child.cmdline()
    }


def test_the_outcome_is_the_same_and_in_the_same_order(
    cli: Cli, cli_env: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "tasks" / "ddp-toy"
    shutil.copytree(CHECKOUT / "tasks" / "ddp-toy", own, ignore=shutil.ignore_patterns("submissions"))
    for name in KEPT:
        folder = (own / "submissions" / name).parent
        folder.mkdir(parents=True)
        promised.script("ddp-toy", name, folder)
    cli_env["GRADER_TASKS_DIR"] = str(tmp_path / "tasks")

    def cases(*options: str | Path) -> list[dict[str, Any]]:
        done = cli("verify", "ddp-toy", "--json", "--no-containers", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        starts = [line.partition(" of 3  ") for line in done.stderr.splitlines() if " of 3  " in line]
        assert [int(number) for number, _, _ in starts] == [1, 2, 3]
        assert sorted(name for _, _, name in starts) == [f"ddp-toy/{name}.py" for name in KEPT]
        return [{**case, "seconds": 0} for case in json.loads(done.stdout)["cases"]]

    together = cases("--jobs", "3", "--keep", tmp_path / "kept")
    assert [case["submission"] for case in together] == [f"{name}.py" for name in KEPT]
    assert together == cases()
    for folder in (tmp_path / "kept").iterdir():
        assert (folder / "grade.json").is_file()
        assert (folder / "report.html").is_file()
    assert len(list((tmp_path / "kept").iterdir())) == len(KEPT)


def test_two_run_at_once_and_what_must_be_alone_is() -> None:
    met, under_way, seen = threading.Barrier(2), set[int](), dict[int, int]()
    counting = threading.Lock()

    def work(_: Pipeline, item: int, _on_progress: OnProgress) -> int:
        with counting:
            under_way.add(item)
            seen[item] = len(under_way)
        if item < 2:
            met.wait(timeout=60)
        with counting:
            under_way.discard(item)
        return item * 10

    assert all_at_once([7, 0, 8, 1], work, alone=lambda item: item > 2) == (70, 0, 80, 10)
    assert sorted((seen[0], seen[1])) == [1, 2]
    assert (seen[7], seen[8]) == (1, 1)


def test_who_fails_ends_the_others_in_the_middle_of_their_run(tmp_path: Path) -> None:
    task = load_task("ddp-fashion")
    before, started = children(), threading.Event()
    done: list[int] = []

    def sign(_: Progress) -> None:
        started.set()

    def work(pipeline: Pipeline, item: int, on_progress: OnProgress) -> int:
        if item == 0:
            assert started.wait(timeout=60)
            raise ZeroDivisionError("the first one")
        submission = reference(task).submission
        pipeline.grade(task, submission, options=OPTIONS, on_progress=on_progress, out=tmp_path / f"{item}")
        done.append(item)
        return item

    with pytest.raises(ZeroDivisionError, match="the first one"):
        all_at_once([0, 1, 2, 3], work, on_progress=sign)
    assert done == []
    assert children() - before == set()


def test_a_number_that_is_none_is_refused(cli: Cli) -> None:
    for command in (("verify", "ddp-toy"), ("course", "check")):
        done = cli(*command, "--jobs", "0")
        assert done.returncode == 2
        assert "--jobs 0: give a number from 1" in done.stderr
