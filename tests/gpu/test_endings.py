"""How runs end badly on a real GPU, in whose fault, and that a long silence is no deadlock."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from grader.model.run import Ending
from tests.gpu import scripts
from tests.gpu.conftest import RunOnGpu

ALONE = ("--profile", "gpu", "--runtime", "process", "--nproc-per-node", "1")


def judged(grader: Any, tmp_path: Path, script: str) -> dict[str, Any]:
    """A script of a learner's, judged."""
    path = tmp_path / "train.py"
    path.write_text(script)
    told: dict[str, Any]
    code, told = grader("grade", "ddp-toy", str(path), *ALONE)
    assert code == 1, told["beside"]
    return told


def test_too_much_memory_is_told_with_its_line(grader: Any, tmp_path: Path) -> None:
    told = judged(grader, tmp_path, scripts.OUT_OF_MEMORY)
    assert told["verdict"] == "out_of_memory"
    line = 1 + scripts.OUT_OF_MEMORY.splitlines().index(
        'torch.empty(2 * total, dtype=torch.uint8, device="cuda")'
    )
    assert [place["line"] for place in told["diagnosis"]["where"]] == [line]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (scripts.ASSERTS, "Assertion"),
        (scripts.ILLEGAL_ACCESS, "illegal memory access"),
        (scripts.BAD_ORDINAL, "invalid device ordinal"),
    ],
    ids=["assert", "illegal", "ordinal"],
)
def test_crashes_on_the_gpu_are_the_learners_and_quoted(
    grader: Any, tmp_path: Path, script: str, words: str
) -> None:
    told = judged(grader, tmp_path, script)
    assert told["verdict"] == "crashed"
    assert told["diagnosis"] is not None
    assert words in json.dumps(told["diagnosis"])


def test_the_gpu_is_fit_after_a_crash(grader: Any, tmp_path: Path) -> None:
    judged(grader, tmp_path, scripts.ILLEGAL_ACCESS)
    code, told = grader("devices")
    assert code == 0
    assert told["gpus"][0]["unfit"] == ""


def test_a_deadlock_under_nccl_is_found_soon_and_named(run: RunOnGpu, sharing: str, recordings: Path) -> None:
    ran = run(sharing + scripts.SKIPS_ONE, nproc=2, wall_s=120.0)
    for kept in ran.ran.workspace.outputs.glob("collectives*.json"):
        shutil.copy(kept, recordings)
    assert ran.ran.record.ending is Ending.DEADLOCKED
    assert ran.facts["wall_s"] < 30
    assert "Rank 0 is in its 4th all_reduce of 8 elements" in ran.ran.record.ending_reason
    # Some versions of NCCL take rank 0's sum for the partner of that barrier, and rank 1 goes on to its end.
    told = "rank 1 is in its 1st barrier", "rank 1 has ended"
    assert any(words in ran.ran.record.ending_reason for words in told)
    sites = [rank.waiting.site for rank in ran.ran.record.ranks if rank.waiting]
    lines = [1 + (sharing + scripts.SKIPS_ONE).splitlines().index(line) for line in (
        "    dist.all_reduce(wide)", "dist.barrier()")]  # fmt: skip
    assert [site and site.line for site in sites] == lines[: len(sites)]


def test_a_long_silent_kernel_is_no_deadlock(run: RunOnGpu) -> None:
    ran = run(scripts.LONG_KERNEL, wall_s=120.0)
    assert ran.ran.record.ending is Ending.COMPLETED
    assert ran.told() > 20
