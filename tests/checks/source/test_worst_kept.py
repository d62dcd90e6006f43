"""Which choice keeps the worst weights: trackers by mode, plain comparisons, scores with a minus in front of them."""

from __future__ import annotations

import re

import pytest

from grader.checks.source.files.worst_kept import worst_kept
from grader.checks.source.script import Script, parse
from grader.model.submission import SourceFile, Submission

HEAD = """
import copy
import torch
from torch import nn

net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""

BY_MODE = (
    HEAD
    + """
class Keeper:
    def __init__(self, patience=5, mode="min"):
        self.mode, self.best, self.weights = mode, None, None

    def better(self, value):
        if self.mode == "min":
            return value < self.best
        return value > self.best

    def __call__(self, value, network):
        if self.best is None or self.better(value):
            self.best, self.weights = value, copy.deepcopy(network.state_dict())

keeper = Keeper({0})  # <- made
for epoch in range(9):
    loss, accuracy = train(net)
    keeper({1}, net)
torch.save(keeper.weights, "model.pt")
"""
)

PLAIN = (
    HEAD
    + """
best = {0}
for epoch in range(9):
    metrics = train(net)
    {1}
    if {2}:  # <- made
        torch.save(net.state_dict(), "model.pt")
"""
)

WITH_MINUS = (
    HEAD
    + """
class Stopping:
    def __init__(self):
        self.best_score = None

    def __call__(self, val_loss, model):
        score = -val_loss  # <- made
        if self.best_score is None:
            self.best_score = score
            self.save(model)
        elif score < self.best_score + 0.01:
            self.counter += 1
        else:
            self.best_score = score
            self.save(model)

    def save(self, model):
        torch.save(model.state_dict(), "model.pt")

stopping = Stopping()
for epoch in range(9):
    val_loss, val_acc = train(net)
    stopping({0}, net)
"""
)


BY_OPERATOR = (
    HEAD
    + """
import operator
import numpy as np

class Keeper:
    def __init__(self, monitor, mode="min"):
        self.monitor, self.best, self.weights = monitor, None, None
        {0}

    def on_epoch_end(self, logs, network):
        current = {1}
        if self.best is None or self.op(current, self.best):
            self.best, self.weights = current, copy.deepcopy(network.state_dict())

keeper = Keeper({2})
for epoch in range(9):
    keeper.on_epoch_end(train(net), net)
torch.save(keeper.weights, "model.pt")
"""
)
FIXED = BY_OPERATOR.replace(', mode="min"', "")
TABLE = 'self.op = {"min": operator.lt, "max": operator.gt}[mode]'
CHOSEN = "self.op = np.less if mode == 'min' else np.greater"
LOGGED, GOT = "logs[self.monitor]", "logs.get(self.monitor)"

LIGHTNING = """
import lightning as L
from lightning.pytorch.callbacks import ModelCheckpoint

keeper = ModelCheckpoint({0})  # <- made
L.Trainer(max_epochs=9, callbacks=[keeper]).fit(model, data)
"""


def marked(text: str, line: str) -> str:
    assert line in text
    return text.replace(line, f"{line}  # <- made", 1)


def parsed(text: str) -> Script:
    return parse(Submission("train", (SourceFile("train.py", text),)))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (BY_MODE.format("", "accuracy"), 'Give `Keeper()` at `train.py:22` `mode="max"`'),
        (BY_MODE.format('mode="min"', "accuracy"), '`mode="max"`'),
        (BY_MODE.format('3, "max"', "loss"), '`mode="min"`'),
        (BY_MODE.format("", "accuracy").replace("mode", "direction").replace('"min"', '"minimize"'),
         '`direction="maximize"`'),
        (PLAIN.format("1e9", "accuracy = metrics[0]", "accuracy < best"), "Write `accuracy > best` for"),
        (PLAIN.format("1e9", "pass", "best >= metrics['val_acc']"), "Write `best <= metrics['val_acc']` for"),
        (PLAIN.format("0", "loss = metrics[1]", "loss > best"), "Write `loss < best` for `loss > best`"),
        (PLAIN.format("1e9", "top1 = metrics[0]; better = top1 < best", "better").replace("  # <- made", "").replace(
            "< best", "< best  # <- made"), "Write `top1 > best` for"),
        (marked(FIXED.format("self.op = np.less", LOGGED, "'val_acc'"), "self.op = np.less"),
         "Write `np.greater` for `np.less` at `train.py:15`"),
        (marked(FIXED.format("self.op = lambda a, b: a > b", GOT, "'val_loss'"), "self.op = lambda a, b: a > b"),
         "Write `a < b` for `a > b`"),
        (marked(BY_OPERATOR.format(CHOSEN, GOT, "'val_acc'"), "keeper = Keeper('val_acc')"), '`mode="max"`'),
        (marked(BY_OPERATOR.format(TABLE, LOGGED, "'val_loss', 'max'"), "keeper = Keeper('val_loss', 'max')"),
         '`mode="min"`'),
        (LIGHTNING.format("monitor='val_acc'"), '`mode="max"`'),
        (LIGHTNING.format("monitor='val_loss', mode='max'"), '`mode="min"`'),
        (WITH_MINUS.format("val_acc"), "Write `val_loss` for `-val_loss` at `train.py:14`"),
    ],
)  # fmt: skip
def test_the_worst_is_kept(text: str, advice: str) -> None:
    script = parsed(text)
    found = worst_kept(script)
    assert found is not None
    assert advice in found.hint
    place = next(number for number, line in enumerate(text.splitlines(), 1) if re.search("<- made", line))
    assert script.location(found.nodes[0]).line == place


@pytest.mark.parametrize(
    "text",
    [
        BY_MODE.format("", "loss"),
        BY_MODE.format('mode="max"', "accuracy"),
        BY_MODE.format("mode=MODE", "value"),
        PLAIN.format("0", "accuracy = metrics[0]", "accuracy > best"),
        PLAIN.format("9", "loss = metrics[1]", "best > loss"),
        PLAIN.format("9", "value = metrics[1]", "value < best"),
        PLAIN.format("9", "value = -metrics['accuracy']", "value < best"),
        PLAIN.format("0.9", "accuracy = metrics[0]", "accuracy < 0.3"),
        WITH_MINUS.format("val_loss"),
        FIXED.format("self.op = np.less", LOGGED, "'val_loss'"),
        FIXED.format("self.op = lambda best, new: new < best", GOT, "'val_acc'"),
        BY_OPERATOR.format(CHOSEN, GOT, "'val_acc', mode='max'"),
        BY_OPERATOR.format(CHOSEN, GOT, "'val_acc', mode=MODE"),
        BY_OPERATOR.format(TABLE, LOGGED, "'val_loss'"),
        LIGHTNING.format("monitor='val_acc', mode='max'"),
        LIGHTNING.format("monitor='val_loss'"),
        LIGHTNING.format("monitor=NAME"),
    ],
)
def test_the_best_is_kept_or_nobody_can_tell(text: str) -> None:
    assert worst_kept(parsed(text)) is None
