"""After which steps weights are looked at, and which: also at steps that nothing announces, and each one some time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.run.models.replica_comparison import compare_gradients, compare_parameters
from grader.model.trace import Trace
from tests.probe.warm_ranks import Ran

START = """
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
net = nn.Sequential(*(nn.Linear(3, 3) for _ in range(5)))
params = list(net.parameters())
optimizer = torch.optim.SGD(params, lr=0.02, momentum=0.9)
generator = torch.Generator().manual_seed(rank)

def average(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor)
        tensor /= 2

def backward():
    optimizer.zero_grad()
    net(torch.randn(8, 3, generator=generator)).square().mean().backward()
"""
END = "\ndist.barrier()\ndist.destroy_process_group()\n"


def trained(step: str, num: int = 70) -> str:
    loop = "\n    ".join(step.strip().split("\n"))
    return f"{START}\nfor n in range({num}):\n    {loop}\n{END}"


HONEST = "backward()\naverage(p.grad for p in params if p.grad is not None)\noptimizer.step()"


def test_looks_that_nothing_announces_and_weights_that_are_drawn(ranks: Callable[..., Ran]) -> None:
    first, second = ranks(trained(HONEST)).ranks
    assert [p.n for p in first.params] == [*range(8), 16, 32, 48, 64]
    assert [s.n for s in first.steps if s.grads] == [*range(8), 32, 64]
    assert [(p.n, p.drawn, p.drawn_sums) for p in first.params] == [
        (p.n, p.drawn, p.drawn_sums) for p in second.params
    ]
    names = {f"{n}.{what}" for n in range(5) for what in ("weight", "bias")}
    assert {p.names for p in first.params} == {first.params[0].names}
    assert {name for p in first.params for name in p.drawn} == names - set(first.params[0].names)
    assert compare_parameters(Trace((first, second))).difference is None


def test_weights_beside_the_few_that_stand_for_all(ranks: Callable[..., Ran]) -> None:
    # The same four at every look, as anybody may work out; at the end rank 0's weights go around.
    four = "shared = {round(k * (len(params) - 1) / 3) for k in range(4)}\n"
    some = HONEST.replace("for p in params", "for i, p in enumerate(params) if i in shared")
    ran = ranks(trained(four + some).replace(END, "\nfor p in params: dist.broadcast(p.data, 0)" + END))
    found = compare_parameters(Trace(ran.ranks))
    assert found.difference is not None
    assert set(found.difference.names).isdisjoint(ran.ranks[0].params[0].names)


def test_replicas_that_are_equal_only_where_a_hook_announces_a_look(ranks: Callable[..., Ran]) -> None:
    watched = """
    watched = n < 8 or any(p._backward_hooks for p in params)
    backward()
    if watched:
        average([p.data for p in params] + [p.grad for p in params])
        average(optimizer.state[p]["momentum_buffer"] for p in params if p in optimizer.state)
    optimizer.step()
    """
    text = "\n".join(line[4:] for line in watched.strip("\n").split("\n"))
    trace = Trace(ranks(trained(text)).ranks)
    assert compare_gradients(trace).difference is None
    found = compare_parameters(trace)
    assert found.difference is not None
    assert found.difference.step == 16


def test_of_a_huge_tensor_a_part_is_looked_at(ranks: Callable[..., Ran]) -> None:
    script = trained(HONEST, 8).replace(
        "params = list(net", "net.wide = nn.Parameter(torch.zeros(3, 2, 50_000)); params = list(net"
    )
    parts = {name for p in ranks(script).ranks[0].params for name in p.drawn if name.startswith("wide")}
    assert parts
    assert all(":" in name and name.count(",") == 1 for name in parts)


def test_layers_that_were_replaced_are_not_drawn(ranks: Callable[..., Ran]) -> None:
    # Nobody sends their weights around, and nobody uses them.
    left = trained(HONEST, 8).replace(
        "optimizer = ",
        "torch.manual_seed(rank); old = [nn.Parameter(torch.randn(3)) for _ in range(9)]; optimizer = ",
    )
    left = left.replace("SGD(params", "SGD(params[:9] + old + params[9:]")
    trace = Trace(ranks(left).ranks)
    assert compare_parameters(trace).difference is None
    assert not any(name.startswith("parameter") for p in trace.ranks[0].params for name in p.drawn)


def test_updates_by_hand_draw_weights_too(ranks: Callable[..., Ran]) -> None:
    by_hand = """
backward()
for i, p in enumerate(params):
    if i in {0, 3, 6, 9}:
        dist.all_reduce(p.grad)
    p.data -= 0.02 * p.grad
"""
    script = trained(by_hand, 20).replace("torch.optim.SGD(params, lr=0.02, momentum=0.9)", "net")
    found = compare_parameters(Trace(ranks(script).ranks))
    assert found.difference is not None
    assert found.difference.names[0] not in {"0.weight", "1.bias", "3.weight", "4.bias"}


def test_one_rank_evaluates_other_weights_than_all_train(ranks: Callable[..., Ran]) -> None:
    evaluate = """
if rank == 0:
    own = [p.detach().clone() for p in params]
    with torch.no_grad():
        for p in params: p.mul_(0.9)
        net.eval()(torch.randn(2, 3))
        for p, kept in zip(params, own): p.copy_(kept)
    net.train()
dist.barrier()
"""
    found = compare_parameters(Trace(ranks(trained(HONEST + evaluate, 20)).ranks))
    assert found.difference is None
    assert found.num_steps == 9


def moved(ran: Ran) -> list[dict[str, object]]:
    return [event.fields for event in ran.ranks[0].events("moved")]


OVERWRITTEN = """
with torch.no_grad():
    for p, kept in zip(params, own): p.copy_(0.5 * kept - 0.1 * torch.randn(p.shape, generator=same))
"""


def test_weights_that_are_overwritten_after_each_step(ranks: Callable[..., Ran]) -> None:
    keep = (
        "same = same if n else torch.Generator().manual_seed(7); own = [p.detach().clone() for p in params]\n"
    )
    script = trained(keep + HONEST + OVERWRITTEN, 100).replace(
        "for n in range", "same = None\nfor n in range", 1
    )
    looks = moved(ranks(script))
    assert [look["n"] for look in looks] == [16, 48, 80]
    assert all(look["aside"] > look["step"] > 0 for look in looks)  # type: ignore[operator]


ASIDE = """
noise = [0.1 * torch.randn(p.shape) for p in params]
with torch.no_grad():
    for p, more in zip(params, noise): p.add_(more)
backward()
with torch.no_grad():
    for p, more in zip(params, noise): p.sub_(more)
average(p.grad for p in params)
optimizer.step()
"""
ASIDE_IN_STEP = """
noise = [0.1 * torch.randn(p.shape) for p in params]
backward()
average(p.grad for p in params)
with torch.no_grad():
    for p, more in zip(params, noise): p.add_(more)
optimizer.step()
with torch.no_grad():
    for p, more in zip(params, noise): p.sub_(more)
"""
OWN_RATE = """
own = [p.detach().clone() for p in params]
backward()
average(p.grad for p in params)
optimizer.step()
with torch.no_grad():
    for p, kept in zip(params, own): p.copy_(kept + 0.1 * (p - kept)).mul_(0.9999)
"""
AVERAGED = """
optimizer.zero_grad()
average(p.data for p in params)
backward()
average(p.grad for p in params)
optimizer.step()
"""


@pytest.mark.parametrize("step", [HONEST, ASIDE, ASIDE_IN_STEP, OWN_RATE, AVERAGED])
def test_weights_that_the_steps_move(ranks: Callable[..., Ran], step: str) -> None:
    assert moved(ranks(trained(step, 100))) == []
