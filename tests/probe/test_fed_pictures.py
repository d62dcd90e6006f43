"""At steps drawn by lot, each rank tells some of the samples that its model learns from, as it was given them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.probe.warm_ranks import Ran

TRAIN = """
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
model = nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 3))
ddp = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

def given(kind, step, num=40):
    # The first element tells the kind, the second the step, the third the sample.
    x = torch.zeros(num, 1, SIZE)
    x[:, 0, 0], x[:, 0, 1], x[:, 0, 2] = kind, step, torch.arange(num) + 40 * dist.get_rank()
    x[:, 0, 3], x[:, 0, 4] = 255, 0
    return x

for step in range(40):
    STEP
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""


def told(ranks: Callable[..., Ran], step: str, size: int = 16, lot: str = "other") -> list[Any]:
    """Rank, step and pictures, (num, size), of each event."""
    ran = ranks(TRAIN.replace("STEP", step.replace("\n", "\n    ")).replace("SIZE", str(size)), lot=lot)
    assert not any(rank.problems for rank in ran.ranks)
    return [
        (
            rank,
            event["n"],
            np.frombuffer(base64.b64decode(event["values"]), np.uint8).reshape(event["num"], -1),
        )
        for rank, lines in enumerate(ran.lines)
        for event in lines
        if event["e"] == "pictures"
    ]


def test_each_rank_tells_samples_of_one_step_of_each_doubling(ranks: Callable[..., Ran]) -> None:
    found = told(ranks, "ddp(given(7, step)).square().mean().backward()")
    for rank in range(2):
        steps = [n for by, n, _ in found if by == rank]
        assert sorted(n.bit_length() for n in steps if n < 32) == [3, 4, 5]
    for rank, n, pictures in found:
        assert 16 < len(pictures) <= 32
        assert {*pictures[:, 0].tolist()} == {7}
        assert {*pictures[:, 1].tolist()} == {n}
        samples = pictures[:, 2].tolist()
        assert samples == sorted({*samples})
        assert all(40 * rank <= sample < 40 * rank + 40 for sample in samples)


def test_of_several_batches_one_is_told_that_gradients_are_taken_of(ranks: Callable[..., Ran]) -> None:
    step = """ddp(given(1, step))
for kind in (2, 3, 4, 5):
    ddp(given(9, step))
    ddp(given(kind, step, 8)).square().mean().backward()
ddp(given(8, step))"""
    found = told(ranks, step, lot="third")
    kinds = {int(pictures[0, 0]) for _, _, pictures in found}
    assert len(found) >= 6
    assert kinds <= {2, 3, 4, 5}
    assert len(kinds) > 1
    assert {len(pictures) for _, _, pictures in found} == {8}


def test_evaluation_is_not_told(ranks: Callable[..., Ran]) -> None:
    step = """ddp(given(2, step)).square().mean().backward()
with torch.no_grad():
    model(given(9, step))
model.eval()
model(given(8, step))
model.train()"""
    assert {int(pictures[0, 0]) for _, _, pictures in told(ranks, step)} == {2}


@pytest.mark.parametrize(
    ("step", "size", "lot"),
    [
        ("ddp(given(7, step)).square().mean().backward()", 16, ""),
        ("ddp(given(7, step)).square().mean().backward()", 4097, "drawn"),
        ("ddp(given(7, step) * torch.nan).square().mean().backward()", 16, "drawn"),
    ],
    ids=["nothing is drawn", "too large", "no numbers"],
)
def test_others_are_not_told(ranks: Callable[..., Ran], step: str, size: int, lot: str) -> None:
    assert not told(ranks, step, size, lot)


def text(ranks: Callable[..., Ran], given: str, network: str = "nn.Embedding(1 << 18, 3)") -> list[Any]:
    """Step, whether it is text, and rows of each event, where the model is given this in `step`."""
    script = TRAIN.replace("nn.Sequential(nn.Flatten(), nn.Linear(SIZE, 3))", network).replace("SIZE", "16")
    ran = ranks(script.replace("STEP", f"ddp({given}).square().mean().backward()"), lot="drawn")
    assert not any(rank.problems for rank in ran.ranks)
    events = [event for event in ran.lines[1] if event["e"] == "pictures"]
    assert len(events) > 2
    return [
        (
            event["n"],
            event["text"],
            np.frombuffer(base64.b64decode(event["values"]), "<u2" if event["text"] else "u1").reshape(
                event["num"], -1
            ),
        )
        for event in events
    ]


def test_rows_of_whole_numbers_are_text(ranks: Callable[..., Ran]) -> None:
    for n, is_text, rows in text(ranks, "torch.arange(5, 69).repeat(40, 1) + 1000 * step"):
        assert is_text
        assert 16 < len(rows) <= 32
        assert all(row.tolist() == [(k + 1000 * n) % (1 << 16) for k in range(5, 69)] for row in rows)


def test_a_packed_text_is_one_row_of_which_a_part_is_told(ranks: Callable[..., Ran]) -> None:
    starts = set()
    for _, is_text, rows in text(ranks, "torch.arange(6000)"):
        assert is_text
        assert rows.shape == (1, 2048)
        assert rows[0].tolist() == [*range(rows[0, 0], rows[0, 0] + 2048)]
        starts.add(int(rows[0, 0]))
    assert len(starts) > 1


def test_images_of_whole_numbers_are_pictures(ranks: Callable[..., Ran]) -> None:
    network = "nn.Sequential(nn.Flatten(), nn.Embedding(256, 3))"
    for n, is_text, pictures in text(ranks, "given(7, step).long()", network):
        assert not is_text
        assert {*pictures[:, 1].tolist()} == {n}
