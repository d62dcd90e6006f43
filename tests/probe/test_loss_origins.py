"""What a loss was made of is told by its graph, whatever it was called in the script."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

import pytest
import torch

from tests.probe.warm_ranks import Ran

START = """
from torch.nn import functional as F
dist.init_process_group('gloo')
net = nn.Linear(3, 4)
x, y = torch.randn(6, 3), torch.randint(4, (6,))
loss = F.cross_entropy(net(x), y)
SOFT = torch.full((6, 4), 0.25)
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
    "probabilities as targets": ("F.cross_entropy(net(x), SOFT)", "Sum", "sum", pytest.approx(-1 / 6)),
    "a teacher's probabilities": (
        "F.kl_div(net(x).log_softmax(1), SOFT, reduction='batchmean')",
        "Sum",
        "sum",
        1 / 6,
    ),
}
HELD = {
    "as it is, and divided": ("loss / 4", ["loss"]),
    "beside a penalty": ("0.5 * (loss + 3 * net.weight.square().sum())", ["loss"]),
    "behind penalties, one after the other": (
        "sum((p.square().sum() for _ in range(8) for p in net.parameters()), loss)",
        ["loss"],
    ),
    "smoothed by torch": ("F.cross_entropy(net(x), y, label_smoothing=0.2)", ["loss"]),
    "of each sample": ("(F.cross_entropy(net(x), y, reduction='none') * torch.rand(6)).sum()", ["loss"]),
    "of some samples": ("F.cross_entropy(net(x), y.index_fill(0, torch.tensor([1]), -100))", ["some"]),
    "two, mixed": (
        "0.3 * F.cross_entropy(net(x), y) + 0.7 * F.cross_entropy(net(x), y.flip(0))",
        ["loss", "other"],
    ),
    "none": ("F.cross_entropy(net(x), SOFT)", None),
    "none, of squares": ("net(x).square().mean()", None),
    "packed by the script": ("packed()", None),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_tells_what_it_was_made_of(ranks: Callable[..., Ran], loss: str) -> None:
    text, *expected = LOSSES[loss]
    ran = ranks(START + f"({text}).backward()\ndist.barrier()\ndist.destroy_process_group()\n", nproc=1)
    (told,) = ran.events("backward")
    assert [told.fields[name] for name in ("function", "reduction", "factor")] == expected
    assert not ran.ranks[0].problems
    assert not ran.events("unsupported")


@pytest.mark.parametrize("loss", HELD)
def test_the_cross_entropies_in_a_loss_are_told_as_they_are(ranks: Callable[..., Ran], loss: str) -> None:
    text, expected = HELD[loss]
    script = f"""
def packed():
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return F.cross_entropy(net(x), y)
whole = {text}
with torch.no_grad():
    told = {{"loss": loss, "other": F.cross_entropy(net(x), y.flip(0))}}
    told["some"] = F.cross_entropy(net(x)[[0, 2, 3, 4, 5]], y[[0, 2, 3, 4, 5]])
    print(*(told[name].item() for name in {expected or []!r}))
for _ in range(2):
    whole.backward(retain_graph=True)
dist.destroy_process_group()
"""
    ran = ranks(START + script, nproc=1)
    expected_means = [float(one) for one in ran.stdout[0].split()]
    means = [event.fields["means"] for event in ran.events("cross_entropies")]
    assert means == ([pytest.approx(expected_means, rel=1e-5)] * 2 if expected else [])
    assert {event.fields["n"] for event in ran.events("cross_entropies")} <= {0}
    assert not ran.events("unsupported")


def test_text_that_a_loss_foretells_is_told_however_the_network_was_given_it(
    ranks: Callable[..., Ran],
) -> None:
    script = """
net, text = nn.Embedding(40, 40), torch.arange(200) % 37
for _ in range(2):
    F.cross_entropy(F.embedding(text[:-1], net.weight), text[1:]).backward()
    F.cross_entropy(net(text[:8]), text[1:9]).backward()
dist.destroy_process_group()
"""
    ran = ranks(START + script, nproc=1, lot="other")
    values = [b64decode(event["values"]) for event in ran.lines[0] if event["e"] == "pictures"]
    text = (torch.arange(1, 200) % 37).to(torch.int16).numpy().tobytes()
    assert values == [text] * 2, "of eight symbols nothing can be told"


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
