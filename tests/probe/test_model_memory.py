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
