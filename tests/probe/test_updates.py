"""A step is a step, whoever takes it: what changes the weights in training is told, and compared among ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.run.models.replica_comparison import compare_gradients, compare_parameters
from grader.model.trace import Trace
from tests.probe.warm_ranks import Ran

STEPS = 5
START = f"""
dist.init_process_group('gloo')
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
generator = torch.Generator().manual_seed(rank)
batches = [torch.randn(8, 3, generator=generator) for _ in range({STEPS})]
"""
END = "\ndist.barrier()\ndist.destroy_process_group()\n"

# How a script may write an update; each ends with equal weights on both ranks.
WAYS = {
    "in place": """
model = DDP(net)
for x in batches:
    model.zero_grad()
    model(x).square().mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            p.sub_(0.1 * p.grad)
""",
    "behind autograd's back": """
for x in batches:
    net.zero_grad()
    net(x).square().mean().backward()
    for p in net.parameters():
        dist.all_reduce(p.grad)
        p.data -= 0.05 * p.grad
""",
    "of new tensors": """
weights = {name: p.detach().clone() for name, p in net.named_parameters()}
for x in batches:
    leaves = {name: w.requires_grad_() for name, w in weights.items()}
    loss = torch.func.functional_call(net, leaves, (x,)).square().mean()
    grads = torch.autograd.grad(loss, list(leaves.values()))
    for g in grads:
        dist.all_reduce(g)
    weights = {name: w.detach() - 0.05 * g for (name, w), g in zip(weights.items(), grads)}
""",
    "each rank its part of a flat vector": """
params = list(net.parameters())
flat = torch.cat([p.detach().reshape(-1) for p in params])
size = flat.numel() // 2
mine = nn.Parameter(flat[rank * size:(rank + 1) * size].clone())
optimizer = torch.optim.SGD([mine], lr=0.1, momentum=0.9)
for x in batches:
    net.zero_grad()
    net(x).square().mean().backward()
    whole = torch.cat([p.grad.reshape(-1) for p in params])
    dist.all_reduce(whole)
    mine.grad = whole[rank * size:(rank + 1) * size] / 2
    optimizer.step()
    parts = [torch.empty(size) for _ in range(2)]
    dist.all_gather(parts, mine.detach())
    torch.nn.utils.vector_to_parameters(torch.cat(parts), params)
""",
    "with a closure": """
model = DDP(net)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
for x in batches:
    def closure():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss
    optimizer.step(closure)
""",
}


def trace_of(ran: Ran) -> Trace:
    return Trace(ran.ranks)


@pytest.mark.parametrize("way", WAYS)
def test_every_update_is_one_step(ranks: Callable[..., Ran], way: str) -> None:
    ran = ranks(START + WAYS[way] + END)
    for rank in ran.ranks:
        assert [s.n for s in rank.steps] == list(range(STEPS))
        assert not rank.problems
    compared = [compare_gradients(trace_of(ran)), compare_parameters(trace_of(ran))]
    assert all(c.difference is None for c in compared)
    assert any(c.num_steps >= STEPS - 1 for c in compared)


def test_updates_by_hand_that_nobody_averages_are_told_apart(ranks: Callable[..., Ran]) -> None:
    alone = WAYS["behind autograd's back"].replace("dist.all_reduce(p.grad)", "pass")
    found = compare_parameters(trace_of(ranks(START + alone + END)))
    assert found.difference is not None
    assert found.difference.step == 0


def test_a_module_that_only_helps_takes_no_steps(ranks: Callable[..., Ran]) -> None:
    helped = """
teacher = nn.Linear(3, 2)
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
assert sum(p.numel() for p in teacher.parameters()) == 8
for x in batches:
    optimizer.zero_grad()
    (model(x) - teacher(x)).square().mean().backward()
    optimizer.step()
"""
    for rank in ranks(START + helped + END).ranks:
        assert {s.kind for s in rank.steps} == {"SGD"}
        assert len(rank.steps) == STEPS
