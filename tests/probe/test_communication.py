"""Every way in which ranks exchange values is told, under the name of what it is, with the learner's line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.probe.warm_ranks import Ran

START = "dist.init_process_group('gloo')\nrank = dist.get_rank()\nx = torch.ones(3) * rank\n"
MESH = "from torch.distributed.device_mesh import init_device_mesh\nmesh = init_device_mesh('cpu', (2,))\n"

# What the script writes → what is told of its last line, by name or seen at the process group.
WAYS = {
    "by name": (START + "dist.all_reduce(x)", ("all_reduce", True)),
    "imported by name": (
        START + "from torch.distributed import all_gather_object\nall_gather_object([None, None], rank)",
        ("all_gather_object", True),
    ),
    "functional": (
        START + "from torch.distributed import _functional_collectives as funcol\n"
        "assert funcol.wait_tensor(funcol.all_reduce(x, 'sum', dist.group.WORLD)).sum() == 3",
        ("all_reduce", False),
    ),
    "a distributed tensor": (
        MESH + "from torch.distributed.tensor import DTensor, Partial\n"
        "assert DTensor.from_local(torch.ones(3), mesh, [Partial()]).full_tensor().sum() == 6",
        ("all_reduce", False),
    ),
    "the group's own method": (
        START + "dist.group.WORLD.allgather([[x, x]], [x]).wait()",
        ("all_gather", False),
    ),
    "a group of the script's": (
        START + "ours = dist.new_group([0, 1])\nours.broadcast(x, 0).wait()",
        ("broadcast", False),
    ),
    "the group of a mesh": (
        MESH + "dist.all_reduce(torch.ones(1), group=mesh.get_group())",
        ("all_reduce", True),
    ),
    "point to point": (
        START + "dist.send(x, 1) if rank == 0 else dist.group.WORLD.recv([x], 0, 0).wait()",
        ("recv", False),
    ),
    # Rank 0 keeps the store, so it leaves last.
    "the store": (
        START + "store = dist.distributed_c10d._get_default_store()\n"
        "store.set('done', 'x') if rank == 1 else store.get('done')",
        ("store.set", True),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_exchange_is_told_however_it_is_written(ranks: Callable[..., Ran], way: str) -> None:
    script, expected = WAYS[way]
    ran = ranks(script)
    told = ran.ranks[1].collectives
    assert [(c.name, c.named) for c in told][-1] == expected, told
    assert told[-1].site is not None
    # The script comes after lines of the test's own.
    last = max(c.site.line for c in told if c.site is not None)
    assert told[-1].site.line == last
    assert not ran.ranks[1].problems


def test_what_is_exchanged_on_the_way_back_says_so(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        START
        + """
class Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.view_as(x)
    @staticmethod
    def backward(ctx, grad):
        dist.all_reduce(grad)
        return grad / 2
w = torch.ones(3, requires_grad=True)
Mean.apply(w).sum().backward()
dist.all_reduce(w.grad)
"""
    )
    assert [(c.name, c.backward) for c in ran.ranks[0].collectives] == [
        ("all_reduce", True),
        ("all_reduce", False),
    ]


def test_the_numbers_of_a_gathering_are_those_that_a_rank_puts_in(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        START
        + """
dist.all_gather([torch.empty(3), torch.empty(3)], x)
dist.all_gather_into_tensor(torch.empty(6), x)
dist.reduce_scatter(torch.empty(3), [x.clone(), x.clone()])
dist.all_gather_object([None, None], rank)
dist.barrier()
"""
    )
    assert [c.numel for c in ran.ranks[0].collectives] == [3, 3, 6, None, None]


def test_what_gradients_come_back_through_says_so(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        START
        + """
from torch.distributed.nn.functional import all_gather
class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(2)]
        dist.all_gather(parts, x)
        return torch.cat(parts)
    @staticmethod
    def backward(ctx, grad): return grad[:3]
w = torch.ones(3, requires_grad=True)
all_gather(w)
Gather.apply(w)
Gather.apply(x)
dist.all_gather([torch.empty(3), torch.empty(3)], w.detach())
"""
    )
    assert [c.differentiated for c in ran.ranks[0].collectives] == [True, True, False, False]


def test_what_follows_an_evaluation_is_told_however_often_its_line_was_called(
    ranks: Callable[..., Ran],
) -> None:
    ran = ranks(
        START
        + """
net = nn.Linear(3, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def together(t):
    dist.all_reduce(t)
for epoch in range(4):
    for _ in range(40):
        net(torch.ones(4, 3)).sum().backward()
        together(net.weight.grad)
        optimizer.step()
    with torch.no_grad():
        net.eval()(torch.ones(4, 3))
    net.train()
    together(torch.ones(5))
"""
    )
    told = ran.ranks[0].collectives
    assert [c.n for c in told if c.numel == 5] == [41, 82, 123, 164]
    assert len(told) < 100
    assert not ran.ranks[0].problems


def test_a_mesh_forms_the_default_group(ranks: Callable[..., Ran]) -> None:
    # Nobody leaves while the other still forms it.
    (group,) = ranks(MESH + "dist.barrier()\n").ranks[0].groups
    assert (group.op, group.backend, group.world_size) == ("init", "gloo", 2)
    assert group.site is not None


def test_what_the_reducer_does_is_told_by_its_steps_alone(ranks: Callable[..., Ran]) -> None:
    train = """
model = DDP(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
for _ in range(3):
    model(torch.ones(4, 2)).sum().backward()
"""
    ran = ranks(START + train)
    assert ran.ranks[0].collectives == ()
    # No group was taken down: the hooks are off before the interpreter ends.
    assert ran.ranks[0].ended


def test_threads_without_a_line_of_python_go_on_as_if_nobody_listened(
    ranks: Callable[..., Ran],
) -> None:
    """Such as torch's own, which run backward passes on a GPU: what a hook can't place there must not break it."""
    script = """
import _thread
import os
import time
done = os.path.join(os.environ["OUTPUT_DIR"], f"made{rank}")
x = torch.ones(3)
_thread.start_new_thread(dist.group.WORLD.allreduce, ([x],))
_thread.start_new_thread(os.mkdir, (done,))
until = time.monotonic() + 20
while not (x.eq(2).all() and os.path.exists(done)) and time.monotonic() < until:
    time.sleep(0.01)
assert x.tolist() == [2.0] * 3
assert os.path.exists(done)
dist.barrier()
"""
    ran = ranks(START + script)
    assert [rank.events("unsupported") for rank in ran.ranks] == [(), ()]
    assert all(("mkdir", None) in [(file.op, file.site) for file in rank.files] for rank in ran.ranks)
