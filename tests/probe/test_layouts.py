"""How ranks are laid out is told once, costs no collective, and distributed tensors are left as they are."""

from __future__ import annotations

from collections.abc import Callable

from grader.checks.run.models.parallel_layout import Layout
from grader.checks.run.models.replica_comparison import compare_gradients, in_parts_by_hand
from grader.model.trace import Trace
from tests.probe.warm_ranks import Ran

MODEL = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
PLAN = {"0": ColwiseParallel(), "2": RowwiseParallel()}
"""
TRAIN = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(5)
for _ in range(3):
    optimizer.zero_grad()
    cross_entropy(model(torch.randn(6, 8)), torch.zeros(6, dtype=torch.long)).backward()
    optimizer.step()
dist.barrier()
"""
TENSOR_PARALLEL = (
    MODEL
    + "mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('dp', 'tp'))\n"
    + "parallelize_module(model, mesh['tp'], PLAN)\n"
    + "parallelize_module(model[1], mesh['tp'], None)\n"
)


def layout(ran: Ran) -> Layout:
    return Layout.of(Trace(ran.ranks))


def test_a_mesh_and_what_is_given_of_it_are_told_once(ranks: Callable[..., Ran]) -> None:
    ran = ranks(TENSOR_PARALLEL + TRAIN, nproc=4)
    (mesh,) = ran.events("mesh")
    assert mesh.fields["dims"] == [["dp", [0, 2]], ["tp", [0, 1]]]
    (given,) = ran.events("parallel", 3)
    assert (given.fields["kind"], given.fields["dims"]) == ("tensor", [["tp", [2, 3]]])
    (placed,) = ran.events("placed", 2)
    assert placed.fields["splits"] == [["tp", [2, 3]]]
    found = layout(ran)
    assert found.models == ((0, 1), (2, 3))
    assert found.copies == ((0, 2), (1, 3))
    assert found.dimension((0, 1)) == " (dimension `tp`)"


def test_ranks_with_equal_parts_are_compared(ranks: Callable[..., Ran]) -> None:
    average = (
        "    for p in model.parameters():\n"
        "        dist.all_reduce(p.grad.to_local() / 2, group=mesh['dp'].get_group())\n"
    )
    ran = ranks(
        TENSOR_PARALLEL + TRAIN.replace("    optimizer.step()", average + "    optimizer.step()"), nproc=4
    )
    found = compare_gradients(Trace(ran.ranks))
    assert found.num_steps == 3
    assert found.difference is None
    assert {c.ranks for c in ran.ranks[3].collectives if c.name == "all_reduce" and c.named} == {(1, 3)}


def test_copies_and_shards_of_hybrid_sharding(ranks: Callable[..., Ran]) -> None:
    script = (
        MODEL
        + "from torch.distributed.fsdp import fully_shard\n"
        + "mesh = init_device_mesh('cpu', (2, 2), mesh_dim_names=('copies', 'shards'))\nfully_shard(model, mesh=mesh)\n"
    )
    ran = ranks(script + TRAIN, nproc=4)
    (wrap,) = ran.ranks[1].wraps
    assert (wrap.replicas, wrap.parts) == ((1, 3), (0, 1))
    found = layout(ran)
    assert not found.divided
    assert found.copies == ((0, 2), (1, 3))


def test_stages_of_a_pipeline(ranks: Callable[..., Ran]) -> None:
    script = """
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.Linear(8, 8)
schedule = ScheduleGPipe(PipelineStage(model, rank, 2, torch.device("cpu")), n_microbatches=2, loss_fn=nn.MSELoss())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    schedule.step(torch.randn(4, 8)) if rank == 0 else schedule.step(target=torch.zeros(4, 8))
    optimizer.step()
dist.barrier()
"""
    ran = ranks(script)
    (given,) = ran.events("parallel", 1)
    assert (given.fields["kind"], given.fields["dims"], given.fields["stage"]) == (
        "pipeline",
        [["", [0, 1]]],
        1,
    )
    found = layout(ran)
    assert found.models == ((0, 1),)
    assert not found.replicated


def test_inputs_that_are_distributed_tensors_are_looked_at_without_a_collective(
    ranks: Callable[..., Ran],
) -> None:
    # A distributed tensor has no memory of its own: to read at its address would end the process.
    script = (
        MODEL
        + "from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor\n"
        + "mesh = init_device_mesh('cpu', (2,))\n"
        + "model[0].weight = nn.Parameter(distribute_tensor(model[0].weight.data, mesh, [Shard(0)]))\n"
        + "model[0].bias = nn.Parameter(distribute_tensor(model[0].bias.data, mesh, [Shard(0)]))\n"
        + "model = model[0]\n"
    )
    train = TRAIN.replace(
        "model(torch.randn(6, 8))",
        "model(DTensor.from_local(torch.randn(6, 8), mesh, [Replicate()])).full_tensor()",
    )
    ran = ranks(script + train)
    feeds = [rank.feeds for rank in ran.ranks]
    assert [len(one) for one in feeds] == [3, 3]
    assert feeds[0][0].hashes == feeds[1][0].hashes
    assert layout(ran).copies == ((0,), (1,))


BY_HAND = """
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, partial):
        whole = partial.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx, gradient):
        return gradient

class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return Sum.apply(self.layer(x))

dist.init_process_group("gloo")
torch.manual_seed(SEED)
model = Half()
"""


def test_layers_that_exchange_hint_at_parts_where_weights_differ(ranks: Callable[..., Ran]) -> None:
    ran = ranks(BY_HAND.replace("SEED", "dist.get_rank()") + TRAIN)
    assert any(call.forward for call in ran.ranks[0].collectives)
    assert in_parts_by_hand(Trace(ran.ranks))
    # Equal weights on all ranks: each has a whole model, whatever it exchanges.
    assert not in_parts_by_hand(Trace(ranks(BY_HAND.replace("SEED", "1") + TRAIN).ranks))
