"""At steps drawn by lot, one rank tells the weights and the gradients that are stepped on, as they lie there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.evaluate.audit.told_steps import told as told_of
from grader.model.dataset import PreparedDataset
from grader.run.workspace import Workspace
from tests.probe.warm_ranks import Ran

TRAIN = """
import json
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
MODEL
ddp = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    ddp(torch.randn(8, 30)).square().mean().backward()
    if sum(p.numel() for p in model.parameters()) > 100_000:
        optimizer.step()
        continue
    weights = [p.detach().reshape(-1).half().tolist() for p in model.parameters()]
    grads = [None if p.grad is None else p.grad.reshape(-1).bfloat16().tolist() for p in model.parameters()]
    print("step", json.dumps([step, weights, grads]))
    STEP
    optimizer.zero_grad()
dist.destroy_process_group()
"""
PLAIN = "model = nn.Sequential(nn.Linear(30, 600), nn.ReLU(), nn.Linear(600, 3)); model[0].bias.requires_grad_(False)"


def told(ran: Ran) -> list[tuple[int, dict[str, Any]]]:
    """Rank and event of every audited step."""
    return [
        (rank, line)
        for rank, lines in enumerate(ran.lines)
        for line in lines
        if line["e"] in ("audited", "audited_part")
    ]


def script(model: str = PLAIN, step: str = "optimizer.step()") -> str:
    return TRAIN.replace("MODEL", model).replace("STEP", step)


def test_one_rank_tells_one_step_of_each_doubling_as_it_is(ranks: Callable[..., Ran]) -> None:
    ran = ranks(script(), lot="drawn")
    audited = [(rank, event) for rank, event in told(ran) if event["e"] == "audited"]
    assert not any(rank.problems for rank in ran.ranks)
    steps = [event["n"] for _, event in audited]
    assert sorted(step.bit_length() for step in steps if step < 32) == [3, 4, 5]
    assert len(steps) == len(set(steps))
    for rank, event in audited:
        lines = [line.split(" ", 1)[1] for line in ran.stdout[rank].splitlines() if line.startswith("step ")]
        _, weights, grads = json.loads(lines[event["n"]])
        parts = [part for _, part in told(ran) if part["e"] == "audited_part" and part["n"] == event["n"]]
        for number, (weight, grad) in enumerate(zip(weights, grads, strict=True)):
            own = [part for part in parts if part["of"] == number]
            given = b"".join(base64.b64decode(part["weights"]) for part in own)
            assert np.frombuffer(given, np.float16).tolist() == weight
            if grad is None:
                assert own[0]["gradients"] is None
                continue
            words = np.frombuffer(base64.b64decode(own[0]["gradients"]), np.uint16).astype(np.uint32) << 16
            assert words.view(np.float32).tolist() == grad[:: event["stride"]]


@pytest.mark.parametrize(
    ("model", "step", "lot"),
    [
        (PLAIN, "optimizer.step()", ""),
        ("model = nn.Linear(30, 20_000)", "optimizer.step()", "drawn"),
        (PLAIN, "optimizer.step(lambda: ddp(torch.randn(8, 30)).square().mean())", "drawn"),
    ],
    ids=["nothing is drawn", "too large", "gradients of another time"],
)
def test_others_are_not_told(ranks: Callable[..., Ran], model: str, step: str, lot: str) -> None:
    assert not told(ranks(script(model, step), lot=lot))


DRAWN = """
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Linear(30, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(640, 30))
n = 0
for x, in DataLoader(data, batch_size=8, sampler=DistributedSampler(data)):
    model(x).square().mean().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    n += 1
    if n != SKIPPED or dist.get_rank() == 0:
        optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("skipped", [0, 10])
def test_steps_are_told_with_what_ranks_drew_for_them_while_they_step_together(
    ranks: Callable[..., Ran], tmp_path: Path, skipped: int
) -> None:
    ran = ranks(DRAWN.replace("SKIPPED", str(skipped)), lot="drawn")
    workspace = Workspace(tmp_path)
    workspace.trace(0).parent.mkdir()
    for rank in range(2):
        (ran.output.parent / f"rank{rank}.trace").rename(workspace.trace(rank))
    told = told_of(workspace, PreparedDataset("", "", tmp_path, tmp_path, 640, 1, 1)).steps
    assert [step["n"].bit_length() for step in told if step["n"] < 8] == [3]
    assert skipped == 0 or all(step["n"] < skipped for step in told)
    assert skipped or len(told) >= 3
    for step in told:
        for rank, around in enumerate(step["samples"]):
            of_step = [
                list(batch.indices or ()) for batch in ran.ranks[rank].batches if batch.step == step["n"]
            ]
            assert around[0] == of_step
            assert len(of_step[0]) == 8
    assert not told_of(workspace, PreparedDataset("", "", tmp_path, tmp_path, 641, 1, 1)).steps
