"""Rates that are set after a schedule was made that goes by its own base."""

from __future__ import annotations

import pytest

from grader.checks.source.optimisation.set_back_rates import set_back_rate
from grader.checks.source.script import Script, parse
from grader.model.submission import SourceFile, Submission

MADE = "import torch\nfrom torch.optim.lr_scheduler import LambdaLR, StepLR\noptimizer = torch.optim.SGD(ps, lr=0.1)\n"
LOOP = "for x in loader:\n    loss_of(x).backward()\n    optimizer.step()\n    scheduler.step()\n"
SET = "for group in optimizer.param_groups:\n    group['lr'] *= 8\n"


def script(text: str) -> Script:
    return parse(Submission("test", (SourceFile("train.py", MADE + text),)))


def test_the_loop_that_scales_too_late_is_named() -> None:
    found = set_back_rate(script(f"scheduler = LambdaLR(optimizer, by_step)\n{SET}{LOOP}"))
    assert found is not None
    assert found.nodes[0].lineno == 6  # type: ignore[attr-defined]
    assert (
        "move the loop `for group in optimizer.param_groups: …` (`train.py:6`) above `scheduler" in found.hint
    )


def test_so_is_the_call_of_a_helper() -> None:
    helper = "def scaled(optimizer):\n    for group in optimizer.param_groups:\n        group['lr'] *= 8\n"
    found = set_back_rate(
        script(f"{helper}scheduler = LambdaLR(optimizer, by_step)\nscaled(optimizer)\n{LOOP}")
    )
    assert found is not None
    assert [n.lineno for n in found.nodes] == [8, 6, 7]  # type: ignore[attr-defined]
    assert "move `scaled(optimizer)` (`train.py:8`) above" in found.hint


@pytest.mark.parametrize(
    "text",
    [
        f"{SET}scheduler = LambdaLR(optimizer, by_step)\n{LOOP}",  # in time
        f"scheduler = StepLR(optimizer, 5)\n{SET}{LOOP}",  # goes on from the rate there is
        f"scheduler = LambdaLR(optimizer, by_step)\n{LOOP}    for g in optimizer.param_groups:\n        g['lr'] *= 2\n",
    ],
)
def test_what_lasts_is_not(text: str) -> None:
    assert set_back_rate(script(text)) is None
