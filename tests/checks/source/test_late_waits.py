"""Exchanges that are started in hooks or loops, and when somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.late_waits import late_wait
from grader.checks.source.script import Script

STARTED = """\
import torch.distributed as dist
from torch.utils.data import DataLoader

def send(network):
    return [dist.all_reduce(p.grad, async_op=True) for p in network.parameters()]

def finish(handles):
    for handle in handles:
        handle.wait()

dist.init_process_group("gloo")
for x, y in DataLoader(data):
    optimizer.zero_grad()
    criterion(network(x), y).backward()
    handles = send(network)
    optimizer.step()
    finish(handles)
"""


def test_waited_for_below_the_step(script: Callable[..., Script]) -> None:
    found = late_wait(script(STARTED))
    assert found is not None
    assert [n.lineno for n in found.nodes] == [17, 5, 16]  # type: ignore[attr-defined]
    assert "Move `finish(handles)`" in found.hint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    optimizer.step()\n    finish(handles)\n", "    finish(handles)\n    optimizer.step()\n"),
        ("async_op=True", "async_op=False"),
        ("p.grad, async", "counts[p], async"),
        ("    return [dist", "    before.wait()\n    return [dist"),
        (
            "    optimizer.step()\n",
            "    torch.cuda.synchronize()\n    finish(handles)\n    optimizer.step()\n",
        ),
    ],
)
def test_over_in_time(script: Callable[..., Script], old: str, new: str) -> None:
    assert late_wait(script(STARTED.replace(old, new))) is None


def test_waited_for_by_nobody(script: Callable[..., Script]) -> None:
    found = late_wait(script(STARTED.replace("        handle.wait()", "        print(handle)")))
    assert found is not None
    assert "nothing waits for its end" in found.says
