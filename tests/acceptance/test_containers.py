"""The same submission comes to the same grade wherever it runs: plain processes, warm containers, cold ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.checks.run.models.first_difference import SEEN_AGAIN
from grader.judging.attempt import Attempt
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.settings import settings
from tests import promised

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("docker_images")]

OPTIONS = Options(timed=False, dataset="digits")
SUBMISSIONS = [
    "accepted/seeded_split",
    "rejected/no_distributed_sampler",
    "deadlocked/early_stop_on_rank_zero",
    # With a second look.
    "rejected/reset_on_one_rank",
]


@pytest.fixture(scope="module")
def pipelines(docker_images: object) -> Iterator[dict[str, Pipeline]]:
    with (
        Pipeline("process") as process,
        Pipeline("docker") as docker,
    ):
        yield {"process": process, "docker": docker}


def said(attempt: Attempt) -> dict[str, object]:
    """What a learner is told, without what differs from run to run."""
    grade = attempt.grade
    return {
        "verdict": grade.verdict,
        "points": grade.points,
        "ending": attempt.record.ending if attempt.record is not None else None,
        "findings": sorted((f.code, f.severity.value, str(f.location)) for f in grade.findings),
        "second look": sorted(f.code for f in grade.findings if SEEN_AGAIN in f.message),
    }


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_containers_come_to_the_grade_that_plain_processes_come_to(
    name: str, pipelines: dict[str, Pipeline], tmp_path: Path
) -> None:
    task = load_task("ddp-fashion")
    submission = promised.submission("ddp-fashion", name)
    here, _ = pipelines["process"].grade(task, submission, options=OPTIONS, out=tmp_path / "process")
    there, _ = pipelines["docker"].grade(task, submission, options=OPTIONS, out=tmp_path / "docker")
    assert there.record is not None
    assert there.record.isolated
    assert said(there) == said(here)
    assert bool(said(here)["second look"]) is (name == SUBMISSIONS[-1])


def test_a_cold_attempt_comes_to_the_same_grade(
    docker_images: object, pipelines: dict[str, Pipeline], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_task("ddp-fashion")
    submission = promised.submission("ddp-fashion", SUBMISSIONS[0])
    warm, _ = pipelines["docker"].grade(task, submission, options=OPTIONS, out=tmp_path / "warm")
    monkeypatch.setenv("GRADER_POOL_PAIRS", "0")
    settings.cache_clear()
    try:
        with Pipeline("docker") as pipeline:
            cold, _ = pipeline.grade(task, submission, options=OPTIONS, out=tmp_path / "cold")
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert said(cold) == said(warm)
