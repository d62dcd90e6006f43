"""Saves of another network than the trained one: which line did it, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from grader.checks.source.files.replaced_networks import untrained_saves

HEAD = """import copy
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

def step(model, optimizer, x, y):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

loader = torch.utils.data.DataLoader(data)
"""
TRAIN = """model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(9):
    for x, y in loader:
        step(model, optimizer, x, y)
"""
MEASURE = """for size in (2, 4):
    NAME = build()
    optimizer = torch.optim.SGD(NAME.parameters(), lr=0.1)
    for x, y in loader:
        step(NAME, optimizer, x, y)
"""
SAVE = 'torch.save(model.state_dict(), "model.pt")\n'
LOCAL = """def train():
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for x, y in loader:
            step(model, optimizer, x, y)
model = build()  # here
train()
"""


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (LOCAL + SAVE, "model = build()  # here", "No optimizer was given its parameters"),
        (TRAIN.replace("optim", "start = copy.deepcopy(model)\noptim", 1)
         + SAVE.replace("model.state", "start.state"), "start = copy.deepcopy(model)", "before they are trained"),
        (TRAIN.replace("optim", "state = {k: v.clone() for k, v in model.state_dict().items()}\noptim", 1)
         + 'torch.save(state, "model.pt")\n', "state = {k: v.clone() for k, v in model.state_dict().items()}",
         "copies the weights before"),
        (MEASURE.replace("NAME", "model") + TRAIN + SAVE, "", ""),
        (TRAIN + MEASURE.replace("NAME", "other") + SAVE, "", ""),
        (TRAIN + "model = torch.optim.swa_utils.AveragedModel(model)\n" + SAVE, "", ""),
        (TRAIN + "state = model.state_dict()\nmodel = build()\nmodel.load_state_dict(state)\n" + SAVE, "", ""),
        (TRAIN.replace("optim", "state = model.state_dict()\noptim", 1) + 'torch.save(state, "model.pt")\n', "", ""),
        (TRAIN.replace("optim", "ema = copy.deepcopy(model)\noptim", 1).replace(
            "x, y)\n", "x, y)\n        for e, p in zip(ema.parameters(), model.parameters()):\n"
            "            e.data.mul_(0.9).add_(p.data, alpha=0.1)\n", 1) + SAVE.replace("model.state", "ema.state"),
         "", ""),
        (TRAIN.replace("x, y)\n", "x, y)\n    best = copy.deepcopy(model.state_dict())\n", 1)
         + 'torch.save(best, "model.pt")\n', "", ""),
        (TRAIN + "model = torch.ao.quantization.quantize_dynamic(model)\n" + SAVE, "", ""),
        (TRAIN + "model = model.merge_and_unload()\n" + SAVE, "", ""),
        (TRAIN + TRAIN + SAVE, "", ""),  # each trained as long as the other: folds, or a second try
        (TRAIN.replace("model.p", "net.p").replace("optim", "net = nn.DataParallel(model)\noptim", 1) + SAVE, "", ""),
    ],
)  # fmt: skip
def test_what_is_saved_is_not_what_was_trained(script: Any, body: str, line: str, words: str) -> None:
    parsed = script(HEAD + body)
    found = next(untrained_saves(parsed), None)
    assert bool(found) is bool(line), found and found.says
    if found is not None:
        assert words in found.says
        number = parsed.location(found.nodes[0]).line
        assert (HEAD + body).splitlines()[number - 1].strip() == line
