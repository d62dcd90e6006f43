"""What each rank is told to hold of a model, whichever way it is sharded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.probe.warm_ranks import Ran

SCRIPT = """
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 8), nn.ReLU()))
cpu = torch.device("cpu")
{made}
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    cross_entropy(model(torch.randn(6, 8)), torch.zeros(6, dtype=torch.long)).backward()
    optimizer.step()
dist.destroy_process_group()
"""
COPIED = """
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 8), nn.ReLU()))
for parameter in model.parameters():
    dist.broadcast(parameter.data, src=0)
loaded = {{name: one.detach().clone() for name, one in model.state_dict().items()}}
fully_shard(model[1])
fully_shard(model)
{kept}
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    cross_entropy(model(torch.randn(6, 8)), torch.zeros(6, dtype=torch.long)).backward()
    clipped = [p.grad.full_tensor().norm() for p in model.parameters()]
    optimizer.step()
dist.destroy_process_group()
"""
WHOLE = 4 * (8 * 16 + 16 + 16 * 8 + 8)
FSDP1 = "model = FullyShardedDataParallel(model, device_id=cpu, use_orig_params={})"


@pytest.mark.parametrize(
    ("made", "share"),
    [
        ("model = DDP(model)", 1.0),
        ("fully_shard(model)", 0.5),
        (FSDP1.format(False), 0.5),
        (FSDP1.format(True), 0.5),
    ],
)
def test_what_a_rank_holds_is_its_part(ranks: Callable[..., Ran], made: str, share: float) -> None:
    ran = ranks(SCRIPT.format(made=made))
    for rank in ran.ranks:
        (told,) = (event.fields for event in rank.events("held"))
        held: dict[str, Any] = dict(told)
        assert held["whole_param_bytes"] == WHOLE
        assert held["param_bytes"] == pytest.approx(share * WHOLE, rel=0.1)
        # Adam keeps two numbers for each weight.
        assert held["state_bytes"] / held["whole_state_bytes"] == pytest.approx(share, rel=0.1)
        assert held["state_bytes"] == pytest.approx(2 * share * WHOLE, rel=0.2)


@pytest.mark.parametrize(
    ("kept", "copies"),
    [
        ("mine = [[p.detach().full_tensor() for p in model.parameters()] for _ in range(2)]", 3),
        ("views = [one.view_as(one) for one in loaded.values()]", 1),
        ("averages = [p.detach().clone() for p in model.parameters()]", 1),
        ("teacher = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 8))", 1),
        ("del loaded", 0),
    ],
)
def test_whole_tensors_beside_the_shards_are_counted(
    ranks: Callable[..., Ran], kept: str, copies: int
) -> None:
    ran = ranks(COPIED.format(kept=kept))
    for rank in ran.ranks:
        (told,) = (event.fields for event in rank.events("held"))
        assert told["whole_copies"] == copies
        # Parts of one bias are as long as the other: itself, its gradient, two numbers of Adam's, an average.
        alike = 5 * 4 * 8 if copies else 0
        assert copies * WHOLE <= told["copied_bytes"] <= copies * WHOLE + alike
