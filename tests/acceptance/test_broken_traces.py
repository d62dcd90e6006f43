"""A trace may come back cut, mixed up or full of garbage: the attempt is still judged, and never for the better."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.judging.attempt import Attempt
from grader.judging.judge import regrade
from grader.model.grade import Verdict
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.run.workspace import Workspace

QUICK = settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A whole honest two-rank run, really made."""
    folder = tmp_path_factory.mktemp("recorded")
    task = load_task("ddp-fashion")
    submission = read_submission(task.folder / "submissions/accepted/distributed_sampler.py")
    with Pipeline() as pipeline:
        attempt, _ = pipeline.grade(task, submission, options=Options(timed=False), out=folder / "a")
    assert attempt.grade.verdict is Verdict.ACCEPTED
    return Workspace(folder / "a")


@pytest.fixture
def broken(recorded: Workspace, tmp_path: Path) -> Workspace:
    """A copy whose traces a test may damage."""
    shutil.copytree(recorded.root, tmp_path / "a")
    return Workspace(tmp_path / "a")


def lines_of(workspace: Workspace, rank: int) -> list[bytes]:
    return workspace.trace(rank).read_bytes().splitlines(keepends=True)


def judged(workspace: Workspace, rank: int, content: bytes) -> Attempt:
    workspace.trace(rank).write_bytes(content)
    return regrade(workspace)


def codes(attempt: Attempt) -> set[str]:
    return {finding.code for finding in attempt.grade.findings}


@QUICK
@given(share=st.floats(0, 0.999), rank=st.integers(0, 1))
def test_any_truncation_is_found_out(recorded: Workspace, broken: Workspace, share: float, rank: int) -> None:
    whole = recorded.trace(rank).read_bytes()
    cut = whole[: int(len(whole.rstrip()) * share)]
    attempt = judged(broken, rank, cut)
    assert attempt.grade.verdict is not Verdict.ACCEPTED
    assert "TRUST002" in codes(attempt)
    assert attempt.trace is not None
    assert attempt.trace.ranks[rank].problems or attempt.trace.ranks[rank].suspicions
    broken.trace(rank).write_bytes(whole)


@QUICK
@given(
    rank=st.integers(0, 1),
    dropped=st.sets(st.integers(0, 10_000), max_size=40),
    swapped=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), max_size=10),
    garbage=st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=60)), max_size=10),
)
def test_lines_lost_shuffled_and_splashed(
    recorded: Workspace,
    broken: Workspace,
    rank: int,
    dropped: set[int],
    swapped: list[tuple[int, int]],
    garbage: list[tuple[int, bytes]],
) -> None:
    whole = lines_of(recorded, rank)
    lines = [line for number, line in enumerate(whole) if number not in {d % len(whole) for d in dropped}]
    for a, b in swapped:
        lines[a % len(lines)], lines[b % len(lines)] = lines[b % len(lines)], lines[a % len(lines)]
    for place, junk in garbage:
        lines.insert(place % len(lines), junk + b"\n")
    attempt = judged(broken, rank, b"".join(lines))
    best = regrade(recorded).grade
    assert attempt.grade.points <= best.points
    broken.trace(rank).write_bytes(b"".join(whole))


@QUICK
@given(start=st.floats(0, 0.9), length=st.integers(1, 200), rank=st.integers(0, 1))
def test_events_of_the_other_rank_are_staffs_to_see(
    recorded: Workspace, broken: Workspace, start: float, length: int, rank: int
) -> None:
    mine, theirs = lines_of(recorded, rank), lines_of(recorded, 1 - rank)
    at = int(len(mine) * start)
    attempt = judged(broken, rank, b"".join([*mine[:at], *theirs[: 1 + length], *mine[at:]]))
    assert attempt.grade.verdict is Verdict.HELD
    assert "TRUST002" in codes(attempt)
    broken.trace(rank).write_bytes(b"".join(mine))
