"""Exchanges that are started in hooks or loops, and when somebody waits for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.gradients.late_waits import late_wait
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


LAST_ALONE = """\
import torch.distributed as dist

for p in network.parameters():
    work = dist.all_reduce(p.grad, async_op=True)
work.wait()
optimizer.step()
"""


def test_waited_for_the_last_alone(script: Callable[..., Script]) -> None:
    found = late_wait(script(LAST_ALONE))
    assert found is not None
    assert [n.lineno for n in found.nodes] == [5, 4]  # type: ignore[attr-defined]
    assert "`works.append(dist.all_reduce(p.grad, async_op=True))`" in found.hint
    kept = "works = [dist.all_reduce(p.grad, async_op=True) for p in parameters]"
    found = late_wait(script(f"import torch.distributed as dist\n{kept}\nworks[-1].wait()\n"))
    assert found is not None
    assert "`for handle in works:`" in found.hint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("async_op=True)\n", "async_op=True)\n    works.append(work)\n"),
        ("\nwork.wait()", "\n    work.wait()"),
        ("p.grad, async", "counts[p], async"),
    ],
)
def test_waited_for_all(script: Callable[..., Script], old: str, new: str) -> None:
    assert late_wait(script(LAST_ALONE.replace(old, new))) is None
