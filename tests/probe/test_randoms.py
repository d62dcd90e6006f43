"""Whether ranks draw alike, and how long a schedule is, as the trace tells them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.probe.trace import events
from tests.probe.warm_ranks import Ran

NOISY = """
dist.init_process_group("gloo")
rank = dist.get_rank()
{seed}

class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.full((6,), float(i)) + {noise}, i % 3

model = DDP(nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=40)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 7)
sampler = torch.utils.data.DistributedSampler(Noisy())
{after}
for n, (x, y) in enumerate(DataLoader(Noisy(), batch_size=4, sampler=sampler)):
    optimizer.zero_grad(); cross_entropy(model(x), y).backward(); optimizer.step()
dist.destroy_process_group()
"""
IMPORTS = "import random\nimport numpy as np\n"


def told(ran: Ran) -> list[list[dict[str, object]]]:
    return [[e.fields for e in rank.events(events.RANDOM)] for rank in ran.ranks]


@pytest.mark.parametrize(
    ("noise", "generator"),
    [("torch.rand(6)", "torch"), ("random.random()", "python"), ("np.random.rand()", "numpy")],
)
def test_equal_generators_that_are_drawn_from(ranks: Callable[..., Ran], noise: str, generator: str) -> None:
    seed = "torch.manual_seed(0); random.seed(0); np.random.seed(0)"
    ran = ranks(IMPORTS + NOISY.format(seed=seed, noise=noise, after=""))
    first, second = told(ran)
    assert [e["n"] for e in first] == [0, 1, 2]
    assert first == second
    assert [e["drawn"] for e in first] == [[], [generator], [generator]]
    assert set(first[0]["states"]) == {"torch", "python", "numpy"}  # type: ignore[call-overload]


def test_a_seed_of_its_own_for_each_rank(ranks: Callable[..., Ran]) -> None:
    first, second = told(
        ranks(NOISY.format(seed="torch.manual_seed(0)", noise="0.0", after="torch.manual_seed(rank)"))
    )
    assert all(a["states"]["torch"] != b["states"]["torch"] for a, b in zip(first, second, strict=True))  # type: ignore[index]
    assert all(e["drawn"] == [] for e in first)


def test_looking_draws_nothing(ranks: Callable[..., Ran]) -> None:
    text = NOISY.format(seed="torch.manual_seed(0)", noise="torch.rand(6)", after="")
    text += "print(torch.rand(1).item())"
    assert ranks(text).stdout == ranks(text, probe=False).stdout != ["", ""]


def test_schedules_say_how_long_they_are(ranks: Callable[..., Ran]) -> None:
    ran = ranks(NOISY.format(seed="", noise="0.0", after=""))
    lengths = [(e.fields["kind"], e.fields["length"]) for e in ran.events(events.LR_SCHEDULER)]
    assert lengths == [("OneCycleLR", 40), ("CosineAnnealingLR", 7)]
