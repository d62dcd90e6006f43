"""What a loss was made of is told by its graph, whatever it was called in the script."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.probe.warm_ranks import Ran

START = """
from torch.nn import functional as F
dist.init_process_group('gloo')
net = nn.Linear(3, 4)
x, y = torch.randn(6, 3), torch.randint(4, (6,))
loss = F.cross_entropy(net(x), y)
"""
LOSSES = {
    "as it is": ("loss", "NllLoss", "mean", 1.0),
    "times a number": ("loss * 2", "NllLoss", "mean", 2.0),
    "divided by a tensor, behind a view": (
        "(-(loss.view(1) / torch.tensor(4.0))).squeeze()",
        "NllLoss",
        "mean",
        -0.25,
    ),
    "a sum over samples": ("F.cross_entropy(net(x), y, reduction='sum')", "NllLoss", "sum", 1.0),
    "a mean of their own": ("F.cross_entropy(net(x), y, reduction='none').mean() / 2", "Mean", "mean", 0.5),
    "squares": ("0.5 * F.mse_loss(net(x), torch.zeros(6, 4))", "MseLoss", "mean", 0.5),
    "two losses": ("loss + 0.1 * net.weight.square().sum()", "Add", "", 1.0),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_tells_what_it_was_made_of(ranks: Callable[..., Ran], loss: str) -> None:
    text, *expected = LOSSES[loss]
    ran = ranks(START + f"({text}).backward()\ndist.barrier()\ndist.destroy_process_group()\n", nproc=1)
    (told,) = ran.events("backward")
    assert [told.fields[name] for name in ("function", "reduction", "factor")] == expected
    assert not ran.ranks[0].problems


@pytest.mark.parametrize(
    ("loss", "factor", "summed"),
    [
        ("summed(loss)", 1.0, 2),
        ("summed(loss / 2)", 0.5, 2),
        ("summed(loss, op=dist.ReduceOp.AVG)", 1.0, None),
        ("summed(loss) / 2", 0.5, 2),
    ],
)
def test_a_loss_that_ranks_add_up_on_its_way(
    ranks: Callable[..., Ran], loss: str, factor: float, summed: int | None
) -> None:
    """The collective of `torch.distributed.nn` adds up gradients in the backward pass, too."""
    text = f"{START}from torch.distributed.nn.functional import all_reduce as summed\n({loss}).backward()\n"
    ran = ranks(text + "dist.barrier()\ndist.destroy_process_group()\n", nproc=2)
    for told in ran.events("backward"):
        assert told.fields["function"] == "NllLoss"
        assert told.fields["factor"] == factor
        assert told.fields.get("summed") == summed
    assert not ran.ranks[0].problems
