"""The scripts of the tests on a GPU are right: with their words changed, those that can run here do, on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.run.runtime import Runtime
from grader.run.script_runs import run_script
from tests.gpu import scripts
from tests.gpu.conftest import GpuRun, recorded

_WITHOUT_DEVICE = ("scaled", "bf16", "channels_last", "bucket_views", "comm_hook")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    return folder


def here(runtime: Runtime, folder: Path, script: str, nproc: int = 1, *, probe: bool = True) -> GpuRun:
    ran = run_script(runtime, folder, scripts.on_cpu(script), nproc_per_node=nproc, probe=probe)
    assert ran.exit_codes == [0] * nproc, "".join(ran.err(rank) for rank in range(nproc))
    return recorded(ran, nproc, folder)


def test_two_ranks_agree(runtime: Runtime, folder: Path) -> None:
    ran = here(runtime, folder, scripts.SHARING[0] + scripts.TRAIN, 2)
    assert ran.told(0)["digest"] == ran.told(1)["digest"]
    assert [len(rank.steps) for rank in ran.trace.ranks] == [24, 24]
    assert [step.loss for step in ran.trace.ranks[1].steps] == pytest.approx(ran.told(1)["losses"])
    assert (folder / "record0.json").exists()
    assert here(runtime, folder, scripts.SHARING[1] + scripts.REDUCE, 2).told() == 3.0


@pytest.mark.slow
@pytest.mark.parametrize("style", _WITHOUT_DEVICE)
def test_ways_of_training_end_alike_with_and_without_the_probe(
    runtime: Runtime, folder: Path, style: str
) -> None:
    script = scripts.STYLES_HEAD + scripts.STYLES[style] + scripts.STYLES_TAIL
    watched = here(runtime, folder, script)
    assert watched.told() == here(runtime, folder, script, probe=False).told()
    assert len(watched.trace.ranks[0].steps) == 24
    assert watched.unsupported == []


def test_shards_are_told(runtime: Runtime, folder: Path) -> None:
    (rank,) = here(runtime, folder, scripts.SHARDED).trace.ranks
    (held,) = rank.events("held")
    assert held.fields["num_sharded"] == held.fields["num_tensors"] == 4
    assert [wrap.kind for wrap in rank.wraps] == ["fsdp2"] * 3
