"""The lines that did it, as findings of a run name them: each text marks them in the order of their likelihood."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from grader.checks.source import causes
from grader.checks.source.data import share_causes
from grader.checks.source.data.uneven_rounds import uneven_rounds
from grader.checks.source.gradients import causes as gradient_causes
from grader.checks.source.gradients.averages_by_hand import misplaced_averages
from grader.checks.source.models.weight_changes import changed_apart
from grader.checks.source.ranks.constant_rank_tests import constant_rank_tests
from grader.checks.source.script import Script, parse
from grader.model.call_site import Site
from grader.model.submission import SourceFile, Submission

HEAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
"""
STEP = """
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""
PLAIN = "model = nn.Linear(4, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
WRAPPED = "model = DDP(nn.Linear(4, 2))\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
AVERAGED = STEP.replace("        optimizer.step()", "        average(model)\n        optimizer.step()")

Cause = Callable[[Script], Iterable[Any]]


def script_of(text: str) -> Script:
    return parse(Submission("test", (SourceFile("train.py", HEAD + textwrap.dedent(text)),)))


def nodes(found: Iterable[Any]) -> list[Any]:
    found = [node for one in found for node in getattr(one, "nodes", (one,))]
    return [getattr(one, "node", one[0] if isinstance(one, tuple) else one) for one in found]


def at_loader(cause: Callable[[Script, Site], Iterable[Any]]) -> Cause:
    def found(script: Script) -> Iterable[Any]:
        where = script.location(script.training.loaders()[0])
        return cause(script, Site(where.path, where.line, ""))

    found.__name__ = cause.__name__
    return found


SAMPLER = """
class Shares:
    def __init__(self, size):
        self.size, self.rank, self.epoch = size, rank, 0

    def __iter__(self):
        generator = torch.Generator()
        {seed}
        order = torch.randperm(self.size, generator=generator).tolist()
        return iter({share})

    def __len__(self):
        return self.size // world


loader = DataLoader(data, batch_size=8, sampler=Shares(len(data)))
"""

CASES: list[tuple[str, Cause, str]] = [
    (
        "smoothed on rank 0 by a helper",
        changed_apart,
        "def smooth():\n    for key, value in model.module.state_dict().items():\n"
        "        value.copy_(smoothed[key])  # <- 1\n"
        + WRAPPED
        + STEP
        + "    if rank == 0:  # <- 2\n        smooth()\n",
    ),
    (
        "noise that each rank draws for itself",
        changed_apart,
        WRAPPED + STEP + "        with torch.no_grad():\n            for p in model.parameters():\n"
        "                p.add_(torch.randn_like(p))  # <- 1\n",
    ),
    (
        "drawn anew before the wrap",
        changed_apart,
        "net = nn.Linear(4, 2)\nnn.init.ones_(net.weight)\n" + WRAPPED + STEP,
    ),
    ("never sent", causes.fresh_models, PLAIN.replace("(4, 2)", "(4, 2)  # <- 1") + STEP),
    (
        "averaged behind the step",
        misplaced_averages,
        "def average(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)  # <- 2\n"
        + PLAIN
        + STEP
        + "        average(model)  # <- 1\n",
    ),
    (
        "averaged before the backward pass, after the first round",
        misplaced_averages,
        "def average(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)  # <- 2\n"
        + PLAIN
        + STEP.replace("        nn.", "        if epoch:\n            average(model)  # <- 1\n        nn."),
    ),
    (
        "averaged before the backward pass, and where it belongs as well",
        misplaced_averages,
        "def average(model):\n    for p in model.parameters():\n        dist.all_reduce(p.grad)\n"
        + PLAIN
        + AVERAGED.replace("        nn.", "        average(model)\n        nn."),
    ),
    (
        "averaged in a copy",
        gradient_causes.averaged_in_vain,
        "def average(model):\n    for p in model.parameters():\n        g = p.grad.clone()  # <- 1\n"
        "        dist.all_reduce(g)  # <- 2\n        g /= world\n" + PLAIN + AVERAGED,
    ),
    (
        "averaged in a copy that is put back",
        gradient_causes.averaged_in_vain,
        "def average(model):\n    for p in model.parameters():\n        g = p.grad.clone()\n"
        "        dist.all_reduce(g)\n        p.grad = g / world\n" + PLAIN + AVERAGED,
    ),
    (
        "only matrices averaged",
        gradient_causes.averaged_in_vain,
        "def average(model):\n    for p in (q for q in model.parameters() if q.ndim > 1):  # <- 1\n"
        "        dist.all_reduce(p.grad)\n        p.grad /= world\n" + PLAIN + AVERAGED,
    ),
    (
        "weights averaged once per epoch",
        gradient_causes.averaged_in_vain,
        PLAIN
        + STEP
        + "    for p in model.parameters():  # <- 1\n        dist.all_reduce(p.data)\n        p.data /= world\n",
    ),
    (
        "an own sampler seeded by rank",
        at_loader(share_causes.own_seeds),
        SAMPLER.format(
            seed="generator.manual_seed(1000 * self.rank + self.epoch)  # <- 1", share="order[rank::world]"
        )
        + PLAIN
        + STEP,
    ),
    (
        "an own sampler that cuts by rank",
        at_loader(share_causes.own_cuts),
        SAMPLER.format(
            seed="generator.manual_seed(self.epoch)", share="order[self.rank * 8 :])  # <- 1\n        ("
        )
        + PLAIN
        + STEP,
    ),
    (
        "a share that is divided once more",
        at_loader(share_causes.cut_before),
        "part = Subset(data, range(rank, len(data), world))  # <- 1\n"
        "loader = DataLoader(part, sampler=torch.utils.data.DistributedSampler(part))\n" + PLAIN + STEP,
    ),
    (
        "more epochs on rank 0",
        uneven_rounds,
        PLAIN + STEP.replace("range(3)", "range(4 if rank == 0 else 3)").replace("3):", "3):  # <- 1", 1),
    ),
    (
        "fewer epochs by rank",
        uneven_rounds,
        PLAIN
        + "epoch = 0\n"
        + STEP.replace("for epoch in range(3):", "while epoch < 3 - rank:  # <- 1\n    epoch += 1"),
    ),
    ("as many on all ranks", uneven_rounds, PLAIN + STEP),
    (
        "some ranks take the group down",
        causes.guarded_ends,
        "if rank == 0:  # <- 2\n    dist.destroy_process_group()  # <- 1\n",
    ),
    (
        "a layer that no forward pass uses",
        lambda script: causes.layers_named(script, ["aux.weight", "aux.bias"]),
        "net = nn.Linear(4, 2)\nnet.aux = nn.Linear(2, 2)  # <- 1\nmodel = DDP(net)\n",
    ),
    (
        "outputs that are kept",
        causes.kept_tensors,
        PLAIN
        + STEP
        + "        kept.append(2 * model(x))  # <- 1\n        losses.append(model(x).sum().item())\n",
    ),
    (
        "a warm-up as long as the whole set",
        causes.warm_up_lengths,
        PLAIN + "steps = 3 * len(data)  # <- 1\n"
        "schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=steps)\n" + STEP,
    ),
    (
        "a guard that lets everyone through",
        constant_rank_tests,
        "if dist.get_rank() is not None:  # <- 1\n    torch.save(model.state_dict(), 'model.pt')\n",
    ),
]


@pytest.mark.parametrize(("cause", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_lines_that_did_it(cause: Cause, text: str) -> None:
    script = script_of(text)
    lines = (HEAD + textwrap.dedent(text)).splitlines()
    marked = {
        int(m[1]): number for number, line in enumerate(lines, 1) if (m := re.search(r"# <- (\d)", line))
    }
    found = list(dict.fromkeys(script.location(node).line for node in nodes(cause(script))))
    assert found == [marked[n] for n in sorted(marked)]
