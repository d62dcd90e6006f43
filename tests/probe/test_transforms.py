"""Training inside `torch.func`'s transforms is seen like any other: its samples, its steps, its last weights."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.probe.warm_ranks import Ran

EPOCHS = 3
START = """
from torch.func import functional_call, grad, grad_and_value, vmap
dist.init_process_group('gloo')
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
data = torch.arange(96.0).reshape(32, 3) % 7
weights = {name: p.detach().clone() for name, p in net.named_parameters()}
buffers = {name: b.detach().clone() for name, b in net.named_buffers()}
def mean(tensors):
    for t in tensors:
        dist.all_reduce(t)
        t /= 2
"""
END = """
print(sum(float(w.double().sum()) for w in weights.values()).hex())
torch.save(weights, os.environ['OUTPUT_DIR'] + f'/{rank}.pt')
dist.barrier()
dist.destroy_process_group()
"""
EVALUATED = """
    net.eval()
    with torch.no_grad():
        functional_call(net, (weights, buffers), (data[rank::2],))
    net.train()
"""
WHOLE = f"""
def loss(weights, x):
    statistics = {{name: b.clone() for name, b in buffers.items()}}
    return functional_call(net, (weights, statistics), (x,)).square().mean()
for epoch in range({EPOCHS}):
    order = torch.randperm(32, generator=torch.Generator().manual_seed(epoch))
    for chosen in order[rank::2].split(8):
        grads, value = grad_and_value(loss)(weights, data[chosen])
        mean(grads.values())
        weights = {{name: w - 0.05 * grads[name] for name, w in weights.items()}}
"""
EACH = f"""
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
weights, buffers = {{name: p.detach().clone() for name, p in net.named_parameters()}}, {{}}
def loss(weights, x):
    return functional_call(net, weights, (ROW,)).square().mean()
for epoch in range({EPOCHS}):
    order = torch.randperm(32, generator=torch.Generator().manual_seed(epoch))
    for chosen in order[rank::2].split(8):
        each = vmap(grad(loss), in_dims=(None, 0))(weights, data[chosen])
        grads = {{name: g.mean(0) for name, g in each.items()}}
        mean(grads.values())
        weights = {{name: w - 0.05 * grads[name] for name, w in weights.items()}}
"""
WAYS = {
    "of a batch": WHOLE,
    "of each sample": EACH.replace("ROW", "x.unsqueeze(0)"),
    "of each row": EACH.replace("ROW", "x"),
}


@pytest.mark.parametrize("way", WAYS)
def test_samples_and_steps_are_seen(ranks: Callable[..., Ran], way: str) -> None:
    ran = ranks(START + WAYS[way] + EVALUATED.replace("\n    ", "\n") + END)
    for rank in ran.ranks:
        assert not rank.events("unsupported")
        assert [s.n for s in rank.steps] == list(range(2 * EPOCHS))
        # That nobody but the script's own hand trains it shows when its weights have changed for the first time.
        assert [len(f.hashes) for f in rank.feeds] == [8] * (2 * EPOCHS - 1)
    samples = [{h for f in rank.feeds for h in f.hashes} for rank in ran.ranks]
    # The data repeat after seven rows.
    assert len(samples[0] | samples[1]) == 7


@pytest.mark.parametrize("evaluated", ["after each epoch", "never"])
def test_the_last_weights_are_those_that_were_lent(ranks: Callable[..., Ran], evaluated: str) -> None:
    ran = ranks(START + WHOLE + (EVALUATED if evaluated == "after each epoch" else "") + END)
    for rank in ran.ranks:
        assert len(rank.steps) == 2 * EPOCHS
        (save,) = rank.saves
        if evaluated == "never":
            assert rank.finals == ()
            continue
        (final,) = rank.finals
        assert sorted(final.sums, key=str) == sorted(save.sums or (), key=str)
        assert not final.touched
        assert save.live


def test_accumulated_gradients_are_one_step(ranks: Callable[..., Ran]) -> None:
    """Between calls the module holds its own weights again, and a loader asks for batches there."""
    ran = ranks(
        START
        + """
def loss(weights, x):
    return functional_call(net, (weights, {name: b.clone() for name, b in buffers.items()}), (x,)).square().mean()
total = {name: torch.zeros_like(w) for name, w in weights.items()}
for number, (x,) in enumerate(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), 4)):
    grads = grad(loss)(weights, x)
    total = {name: t + grads[name] for name, t in total.items()}
    if number % 2:
        mean(total.values())
        weights = {name: w - 0.05 * total[name] for name, w in weights.items()}
        total = {name: torch.zeros_like(w) for name, w in weights.items()}
"""
        + END
    )
    for rank in ran.ranks:
        assert len(rank.steps) == 4


@pytest.mark.parametrize("way", WAYS)
def test_nothing_that_is_computed_changes(ranks: Callable[..., Ran], way: str) -> None:
    script = START + WAYS[way] + EVALUATED.replace("\n    ", "\n") + END
    with_probe, without = ranks(script), ranks(script, probe=False)
    assert with_probe.stdout == without.stdout
    assert with_probe.stdout[0].strip()
