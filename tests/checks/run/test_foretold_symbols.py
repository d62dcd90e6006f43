"""Causes of wrong bits that the text shows (EVAL007, EVAL013), and a trust ratio that is upside down (EVAL013)."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.evaluation import Evaluation, ReportedMetrics
from grader.model.grade import State
from grader.model.metric import Direction, Metric

BITS = Metric(
    "bits",
    "bits per character",
    "",
    2,
    Direction.MIN,
    0.05,
    share=False,
    reported_as="val_bits_per_character",
)
TEXT = """import torch
from torch import nn
from torch.nn import functional as F

class Windows(torch.utils.data.Dataset):
    def __getitem__(self, index):
        first = index * 64
        return {pair}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2)

    def forward(self, x):
        return self.layers(x{mask})

net = Net()
for inputs, targets in loader:
    logits = net(inputs)
    F.cross_entropy({compared}).backward()
    optimizer.step()
"""
PAIR = "self.text[first : first + 64], self.text[first + 1 : first + 65]"
MASK = ", mask=nn.Transformer.generate_square_subsequent_mask(64), is_causal=True"
SAME = "logits.flatten(0, 1), targets.flatten()"
SHIFTED = "logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten()"


def scored(tell: Any, reported: float, measured: float, text: str) -> Any:
    story = tell.honest()
    story.text, story.metrics = text, (BITS,)
    story.evaluation = Evaluation(
        None,
        artifact="model.pt",
        hidden={"bits": measured},
        validation={"bits": measured},
        num_hidden=900,
        num_validation=1000,
        reported=ReportedMetrics(({"val_bits_per_character": reported},)),
    )
    return story


def text(*, pair: str = PAIR, mask: str = MASK, compared: str = SAME) -> str:
    return TEXT.format(pair=pair, mask=mask, compared=compared)


@pytest.mark.parametrize(
    ("written", "says", "hint", "line"),
    [
        ({"mask": ""}, "attends without a mask", "mask = nn.Transformer.generate", 16),
        ({"compared": SHIFTED}, "has shifted the targets already", "Shift once", 21),
        (
            {"pair": "self.text[:-1], self.text[1:]", "compared": SHIFTED},
            "shifted the targets",
            "Shift once",
            21,
        ),
    ],
)
def test_what_the_network_foretells_is_named(
    tell: Any, written: dict[str, str], says: str, hint: str, line: int
) -> None:
    (hit,) = scored(tell, 1.0, 9.0, text(**written)).observation("EVAL007").hits
    assert says in hit.message
    assert hint in hit.hint
    assert hit.where[0].line == line


@pytest.mark.parametrize(
    "written",
    [
        {},
        # The data set gives each window twice, and the loss shifts once.
        {"pair": "self.text[first : first + 64], self.text[first : first + 64]", "compared": SHIFTED},
        # A network that classifies sees all of its input.
        {"pair": "self.text[first : first + 64], self.labels[index]", "mask": ""},
        {"mask": ", torch.triu(torch.full((64, 64), float('-inf')), 1)"},
    ],
)
def test_a_shift_and_a_mask_are_right(tell: Any, written: dict[str, str]) -> None:
    (hit,) = scored(tell, 1.0, 9.0, text(**written)).observation("EVAL007").hits
    assert "The curve describes other weights or another count." in hit.message


@pytest.mark.parametrize(
    ("reported", "says"),
    [(2.1835, "it is in nats"), (4.5446, "turned into bits twice"), (2.4, "another count")],
)
def test_nats_in_the_place_of_bits(tell: Any, reported: float, says: str) -> None:
    (hit,) = scored(tell, reported, 3.1501, text()).observation("EVAL007").hits
    assert says in hit.message


OPTIMIZER = """import torch

class LARS(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                weight_norm, grad_norm = p.norm(), torch.linalg.vector_norm(g)
                decayed = grad_norm + 1e-4 * weight_norm
                ratio = {ratio}
                p.sub_(g * ratio * group["lr"])

optimizer = LARS(net.parameters(), dict(lr=0.1))
for epoch in range(16):
    for x, y in loader:
        loss_of(net(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        ("decayed / (weight_norm + 1e-9)", "the ratio is upside down"),
        ("weight_norm / (decayed + 1e-9)", "Nothing that was checked"),
        ("1.0 if grad_norm / weight_norm < 0.01 else weight_norm / grad_norm", "Nothing that was checked"),
    ],
)
def test_a_trust_ratio_that_is_upside_down(tell: Any, ratio: str, says: str) -> None:
    story = scored(tell, 9.0, 9.0, OPTIMIZER.format(ratio=ratio))
    story.levels = {"bits": 3.7}
    look = story.observation("EVAL013")
    assert look.state is State.CONTRADICTED
    assert says in look.hits[0].message


def test_what_the_network_foretells_is_named_where_the_report_is_right(tell: Any) -> None:
    story = scored(tell, 9.0, 9.0, text(mask=""))
    story.levels = {"bits": 3.7}
    assert "attends without a mask" in story.observation("EVAL013").hits[0].message
