"""Averages of gradients that a script makes by itself, and what keeps them from reaching a step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.gradients.averages_by_hand import skipped_average
from grader.checks.source.script import Script

SKIPPED = """\
import torch.distributed as dist

def average(network):
    for p in network.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

for i, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    criterion(network(x), y).backward()
    if len(x) == SIZE:
        average(network)
    optimizer.step()
"""


def test_an_average_that_some_steps_go_without(script: Callable[..., Script]) -> None:
    found = skipped_average(script(SKIPPED))
    assert found is not None
    assert [n.lineno for n in found.nodes] == [12, 13, 14]  # type: ignore[attr-defined]
    assert "out of `if len(x) == SIZE:`" in found.hint
    assert found.fix is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    if len(x) == SIZE:\n        average(network)\n", "    average(network)\n"),
        ("len(x) == SIZE", "dist.get_world_size() > 1"),
        ("len(x) == SIZE", "dist.is_initialized()"),
        ("    optimizer.step()", "        optimizer.step()"),
        ("    optimizer.step()", "    if len(x) == SIZE:\n        optimizer.step()"),
    ],
)
def test_an_average_for_every_step(script: Callable[..., Script], old: str, new: str) -> None:
    assert skipped_average(script(SKIPPED.replace(old, new))) is None
