"""Training on a real GPU as learners do it: what the probe sees of it, and that it disturbs nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.checks.run.optimisation.replayed_steps import replays
from grader.model.run import Ending
from tests.gpu import scripts
from tests.gpu.conftest import RunOnGpu

ROOT = Path(__file__).parents[2]


def test_two_ranks_train_with_nccl_and_agree(run: RunOnGpu, sharing: str) -> None:
    ran = run(sharing + scripts.TRAIN, nproc=2)
    first, second = ran.trace.ranks
    assert ran.ran.record.ending is Ending.COMPLETED
    assert [rank.groups[0].backend for rank in ran.trace.ranks] == ["nccl", "nccl"]
    assert ran.told(0)["digest"] == ran.told(1)["digest"]
    assert len(first.steps) == len(second.steps) == 24
    assert [s.grads for s in first.steps] == [s.grads for s in second.steps]
    assert all(step.synced and step.exchanges for step in first.steps[1:])
    assert ran.unsupported == []


def test_losses_and_times_of_the_device_are_told(run: RunOnGpu, sharing: str) -> None:
    ran = run(sharing + scripts.TRAIN, nproc=2)
    for rank in ran.trace.ranks:
        assert [step.loss for step in rank.steps] == pytest.approx(ran.told(rank.rank)["losses"], rel=1e-5)
        assert all(step.device_s is not None and 0 < step.device_s < 10 for step in rank.steps)


def accepted() -> Iterator[Any]:
    """Every accepted script of every task."""
    for path in sorted(ROOT.glob("tasks/*/submissions/accepted/*")):
        if path.suffix == ".py" or (path / "train.py").exists():
            task = path.parts[-4]
            yield pytest.param(task, path, id=f"{task}-{path.stem}")


@pytest.mark.parametrize(("task", "path"), list(accepted()))
def test_every_accepted_script_runs_alone_on_a_gpu(
    grader: Any, task: str, path: Path, tmp_path: Path
) -> None:
    """What needs several ranks can't show; that nothing breaks does."""
    attempt = tmp_path / "attempt"
    code, told = grader(
        "grade", task, str(path), "--profile", "gpu", "--runtime", "process", "--nproc-per-node", "1",
        "--out", str(attempt),
    )  # fmt: skip
    if code == 2 or "grader data prepare" in told["beside"]:
        pytest.skip(told["beside"])
    assert code in (0, 1), told["beside"]
    assert json.loads((attempt / "record.json").read_text())["ending"] == "completed"
    traces = [path.read_text() for path in (attempt / "trace").iterdir()]
    assert not any('"e":"unsupported"' in text for text in traces)


def test_four_ranks_with_gloo_share_a_gpu(run: RunOnGpu) -> None:
    import torch

    ran = run(scripts.TRAIN.replace('"nccl"', '"gloo"'), nproc=4)
    assert len({ran.told(rank)["digest"] for rank in range(4)}) == 1
    assert len({tuple(s.grads for s in rank.steps) for rank in ran.trace.ranks}) == 1
    batches = [b for rank in ran.trace.ranks for b in rank.batches if b.pass_ == 0]
    assert sorted(i for b in batches for i in b.indices or ()) == list(range(512))
    (save,) = ran.trace.ranks[0].saves
    state = torch.load(ran.ran.workspace.outputs / "model.pt", weights_only=True)
    floats = [state[name] for name in sorted(state) if state[name].is_floating_point()]
    assert list(save.sums) == pytest.approx([one.sum(dtype=torch.float64).item() for one in floats], rel=1e-5)
    assert save.live


@pytest.mark.parametrize("style", scripts.STYLES)
def test_the_probe_changes_nothing(run: RunOnGpu, style: str) -> None:
    """The same weights to the last bit, and no capture that fails."""
    if style in ("compiled", "reduce_overhead") and not (shutil.which("cc") or os.environ.get("CC")):
        pytest.skip("torch.compile needs a C compiler here")
    script = scripts.STYLES_HEAD + scripts.STYLES[style] + scripts.STYLES_TAIL
    watched, alone = run(script), run(script, probe=False)
    assert [one.ran.record.ending for one in (watched, alone)] == [Ending.COMPLETED] * 2, (
        watched.words + alone.words
    )
    assert watched.told() == alone.told()
    assert watched.unsupported == []
    (rank,) = watched.trace.ranks
    assert replays(rank) is (style == "captured")
    if not replays(rank):
        assert len(rank.steps) == 24


def test_shards_of_one_rank_are_a_whole(run: RunOnGpu) -> None:
    import torch

    ran = run(scripts.SHARDED)
    (rank,) = ran.trace.ranks
    assert [wrap.kind for wrap in rank.wraps] == ["fsdp2"] * 3
    (held,) = rank.events("held")
    assert held.fields["num_sharded"] == held.fields["num_tensors"] == 4
    assert held.fields["param_bytes"] == held.fields["whole_param_bytes"]
    state = torch.load(ran.ran.workspace.outputs / "model.pt", weights_only=True)
    assert sorted(state) == ran.told()
    assert sum(t.numel() * t.element_size() for t in state.values()) == held.fields["whole_param_bytes"]
    assert ran.unsupported == []


def test_memory_is_what_the_allocator_says_and_the_driver_counts_more(
    run: RunOnGpu, recordings: Path
) -> None:
    ran = run(scripts.MEMORY)
    (rank,) = ran.trace.ranks
    told, (end,) = ran.told(), rank.events("end")
    assert end.fields["peak_device_bytes"] == told["peak"]
    held = [step.device_bytes for step in rank.steps if step.device_bytes is not None]
    assert held
    assert 0 < max(held) <= told["peak"]
    # The driver counts the context and what the allocator keeps, too.
    assert told["used"] >= told["peak"]
    (recordings / "memory.json").write_text(json.dumps(told | {"beside_bytes": told["used"] - told["peak"]}))
