"""OPT and PERF rules over runs: rates, batches and schedules against what was asked, and where the time went."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.checks.rule import load_rules
from grader.evaluate.time.throughput import num_steps
from grader.model.calibration import Calibration
from grader.model.drawn_data import Batch
from grader.model.evaluation import Evaluation, ReportedMetrics
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending
from grader.model.task import Expected
from grader.model.trace import Collective
from grader.model.traffic import Traffic

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
ASKED = Expected(base_learning_rate=0.1, base_batch_size=16, scaling=("linear", "sqrt"), warmup=True)


def steps(tell: Any, rates: list[float], *, samples: int = 8, world_size: int = 2, **fields: Any) -> Any:
    """All ranks take these steps."""
    story = tell.Story(world_size)
    story.group()
    story.wrap()
    for rank in range(world_size):
        for rate in rates:
            story.step(rank, None, samples, lr=(rate,), **fields)
    return story


# ---- OPT001, OPT002: only where a task asks ------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["OPT001", "OPT002"])
def test_nothing_is_said_where_the_task_does_not_ask(tell: Any, code: str) -> None:
    assert steps(tell, [5.0] * 20).observation(code).state is CLEAN


@pytest.mark.parametrize(
    ("rate", "samples", "state"),
    [
        (0.1, 8, CLEAN),  # the batch of all ranks is what it was
        (0.2, 8, FLAGGED),  # raised although it is
        (0.02, 8, CLEAN),  # a choice
        (0.8, 64, CLEAN),  # 8 times the batch, linear
        (0.28, 64, CLEAN),  # 8 times the batch, square root
        (0.1, 64, FLAGGED),  # left behind
        (6.4, 64, FLAGGED),  # twice
    ],
)
def test_the_rate_follows_the_batch(tell: Any, rate: float, samples: int, state: State) -> None:
    story = steps(tell, [rate] * 12, samples=samples)
    story.text = "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=1.0)\n"
    story.expected = ASKED
    look = story.observation("OPT001")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].where[0].line == 2
        assert f"{2 * samples} samples over all ranks" in look.hits[0].message


def test_other_optimizers_have_no_such_rule(tell: Any) -> None:
    story = steps(tell, [0.001] * 12, kind="Adam")
    story.expected = ASKED
    assert story.observation("OPT001").state is UNSEEN


def test_a_run_that_ended_in_its_warmup_is_not_blamed(tell: Any) -> None:
    story = steps(tell, [0.01] * 12, samples=64)
    story.expected, story.ending = ASKED, Ending.TIMED_OUT
    assert story.observation("OPT001").state is UNSEEN


@pytest.mark.parametrize(
    ("rates", "state"),
    [
        ([0.8] * 20, FLAGGED),
        ([0.1 * n for n in range(1, 9)] + [0.8] * 12, CLEAN),
        ([0.1] * 10 + [0.4] * 10 + [0.8] * 10, CLEAN),  # in steps of an epoch
        ([0.1] + [0.8] * 19, FLAGGED),
        ([0.8 - 0.03 * n for n in range(20)], FLAGGED),
        ([0.8, 0.8], UNSEEN),
    ],
)
def test_a_warmup_climbs(tell: Any, rates: list[float], state: State) -> None:
    story = steps(tell, rates)
    story.expected = ASKED
    assert story.observation("OPT002").state is state


SHORT = {
    "of its own": """class Rates:
    def __init__(self, steps_per_epoch):
        self.climb = 2  # epochs
        self.now = 0
    def apply(self, optimizer):
        self.now += 1
        share = self.now / self.climb if self.now <= self.climb else 1
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * share
loader = torch.utils.data.DataLoader(train_set)
rates = Rates(len(loader))
""",
    "a function's": """loader = torch.utils.data.DataLoader(train_set)

WARM = 2
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / WARM))
""",
    "torch's": """loader = torch.utils.data.DataLoader(train_set)

schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
""",
}


@pytest.mark.parametrize("how", SHORT)
def test_a_warm_up_of_so_many_epochs_that_is_so_many_steps_long(tell: Any, how: str) -> None:
    story = steps(tell, [0.05] + [0.1] * 30)
    story.text = "import torch\n" + SHORT[how]
    story.expected = ASKED
    hit = story.observation("OPT002").hits[0]
    assert hit.where[0].line == 4
    assert "it is as many steps long, not epochs" in hit.message
    assert hit.hint.startswith("Count the warm-up in steps")
    assert "`2 * steps_per_epoch`" in hit.hint or "`2 * len(" in hit.hint
    story.text = story.text.replace(" = 2", " = 2 * len(loader)").replace("iters=2", "iters=2 * len(loader)")
    assert "as many steps long" not in story.observation("OPT002").hits[0].message


BESIDE = """def climb(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * min(1, step / 100)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
step = 0
for x, y in loader:
    loss_of(model(x), y).backward()
    {}
    step += 1
"""


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("optimizer.step(); climb(optimizer, step); schedule.step()", True),
        ("climb(optimizer, step); optimizer.step(); schedule.step()", False),
        ("optimizer.step(); schedule.step(); climb(optimizer, step)", False),
    ],
)
def test_a_climb_by_hand_that_a_schedule_sets_back_in_each_step(tell: Any, order: str, told: bool) -> None:
    story = steps(tell, [0.1] * 30)
    story.text = "import torch\n" + BESIDE.format(order.replace("; ", "\n    "))
    story.expected = ASKED
    (hit,) = story.observation("OPT002").hits
    assert ("sets it again before any step is taken with it" in hit.message) is told
    assert hit.hint.startswith("Put the climb into the schedule") is told


def test_where_the_number_of_ranks_is_handed_on(tell: Any) -> None:
    story = steps(tell, [0.2] * 30, samples=64)
    story.text = """import torch
import torch.distributed as dist
def build(model, factor):
    return torch.optim.SGD(model.parameters(), lr=0.1 * factor)
world = dist.get_world_size()
optimizer = build(model, world)
"""
    story.expected = ASKED
    hit = story.observation("OPT001").hits[0]
    assert [place.line for place in hit.where] == [4, 6]
    assert "`world` at `train.py:6` is where that comes from" in hit.hint


PER_EPOCH = [0.1 + 0.07 * (n // 5) for n in range(50)]


def climbing(tell: Any, rates: list[float], *lengths: int, samples: int = 64) -> Any:
    story = steps(tell, rates, samples=samples)
    story.expected = ASKED
    for rank in story.ranks:
        for kind, length in zip(("LinearLR", "CosineAnnealingLR"), lengths, strict=False):
            rank.event("lr_scheduler", 17, kind=kind, length=length)
        rank.event("lr_scheduler", 19, kind="SequentialLR", length=None)
    return story


@pytest.mark.parametrize(
    ("lengths", "warm", "whole"),
    [
        ((15, 35), FLAGGED, FLAGGED),  # counted in batches, stepped ten times in all
        ((15, 5), FLAGGED, UNSEEN),
        ((4, 6), CLEAN, UNSEEN),  # counted in epochs
    ],
)
def test_a_schedule_in_steps_that_is_stepped_once_an_epoch(
    tell: Any, lengths: tuple[int, ...], warm: State, whole: State
) -> None:
    story = climbing(tell, PER_EPOCH, *lengths)
    assert story.observation("OPT002").state is warm
    assert story.observation("OPT006").state is whole
    if warm is FLAGGED:
        assert "the warm-up is 15 steps long, and was given 10" in story.observation("OPT002").reason
        assert story.observation("OPT001").state is UNSEEN


def test_the_step_of_a_schedule_in_the_wrong_loop_is_named(tell: Any) -> None:
    story = climbing(tell, PER_EPOCH, 15, 35)
    story.text = """import torch
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=50)
for epoch in range(10):
    for x, y in loader:
        loss_of(model(x), y).backward()
        optimizer.step()
    schedule.step()
"""
    hit = story.observation("OPT006").hits[0]
    assert hit.where[0].line == 7
    assert hit.hint.startswith("Move `schedule.step()` from `train.py:7` right behind `optimizer.step()`")
    assert "stepped once in 5 of them, and training ended after 10 of its steps" in hit.message


def test_a_stair_may_be_stepped_at_each_batch(tell: Any) -> None:
    story = steps(tell, PER_EPOCH)
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind="StepLR", length=None)
        rank.event("lr_scheduler", 18, kind="LinearLR", length=50)
    assert story.observation("OPT006").state is UNSEEN


@pytest.mark.parametrize(
    ("rate", "state"),
    [
        ("0.1 * dist.get_world_size()", FLAGGED),
        ("0.2", CLEAN),  # between the rules, as somebody chose it
    ],
)
def test_a_rate_that_grew_with_the_ranks_and_not_with_the_batch(tell: Any, rate: str, state: State) -> None:
    story = steps(tell, [0.1, 0.15] + [0.2] * 12, samples=64)
    story.expected = ASKED
    story.text = (
        "import torch\nimport torch.distributed as dist\n"
        f"optimizer = torch.optim.SGD(model.parameters(), lr={rate})\n"
    )
    look = story.observation("OPT001")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].where[0].line == 3
        assert (
            "by what the batch of all ranks has grown, 8, and not by the number of ranks" in look.hits[0].hint
        )


GROUPS = """import torch

optimizer = torch.optim.SGD([
    {"params": biases, "lr": 0.8},
    {"params": matrices, "lr": 0.1},
], lr=0.8)
"""


@pytest.mark.parametrize(
    ("rates", "elements", "state"),
    [
        ((0.8, 0.1), (100, 9000), FLAGGED),  # the matrices keep the old rate
        ((0.8, 0.1), (9000, 100), CLEAN),  # a few keep it
        ((0.8, 0.1), None, CLEAN),  # nobody told how many
        ((1.6, 0.8), (100, 9000), CLEAN),  # twice the rate for biases
        ((0.8, 0.08), (100, 9000), CLEAN),  # a rate chosen for a part
        ((0.8, 0.4, 0.2, 0.1), (10, 10, 10, 90), CLEAN),  # layer by layer
    ],
)
def test_the_rate_of_most_of_the_model(
    tell: Any, rates: tuple[float, ...], elements: tuple[int, ...] | None, state: State
) -> None:
    story = tell.Story()
    story.text, story.expected = GROUPS, ASKED
    for rank in (0, 1):
        for _ in range(12):
            story.step(rank, None, 64, lr=rates)
        if elements is not None:
            story.ranks[rank].event("held", 25, kind="SGD", group_elements=list(elements))
    look = story.observation("OPT001")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert (
            "99 % of the model's elements kept the old rate, 0.1: those of parameter group 2 of 2"
            in hit.message
        )
        assert "(`0.1` at `train.py:5` doesn't)" in hit.hint
        assert [place.line for place in hit.where] == [5, 3]


# ---- OPT003 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "world_size", "state", "words"),
    [
        (32, 4, CLEAN, "as the task asks"),
        (42, 3, CLEAN, "126 samples"),
        (128, 2, FLAGGED, "each of 2 ranks takes the whole batch of 128"),
        (8, 4, FLAGGED, "divided by 4 twice"),
        (1000, 2, FLAGGED, "15.6 times as large"),
    ],
)
def test_the_batch_of_all_ranks(tell: Any, samples: int, world_size: int, state: State, words: str) -> None:
    story = steps(tell, [0.1] * 5, samples=samples, world_size=world_size)
    story.expected = Expected(global_batch_size=128)
    look = story.observation("OPT003")
    assert look.state is state
    assert words in look.reason


CHOSEN = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

BATCH = 128
world = dist.get_world_size()
loader = DataLoader(train_set, batch_size={size}, sampler=DistributedSampler(train_set))
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("size", "state"), [("64 // world", CLEAN), ("BATCH // world // world", FLAGGED)])
def test_a_batch_that_the_text_divides_once_is_its_own_choice(tell: Any, size: str, state: State) -> None:
    story = tell.Story(num_train=640)
    story.text = CHOSEN.format(size=size)
    story.epoch(tell.strided(640, 2), batch=32, site=tell.site(6))
    story.expected = Expected(global_batch_size=128)
    assert story.observation("OPT003").state is state


RAMP = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

world = dist.get_world_size()
loaders = [DataLoader(part, batch_size={size}, sampler=DistributedSampler(part)) for part in parts]
for (x, y), (u, v) in zip(*loaders):
    criterion(model(x), y).backward()
    optimizer.step()
"""


def zipped(tell: Any, size: str, batch: int) -> Any:
    """Two ranks, and two loaders of each: a batch of both in a step."""
    story = tell.Story(num_train=640)
    story.text = RAMP.format(size=size)
    for rank, shard in tell.strided(640, 2).items():
        for n in range(0, 320, 2 * batch):
            for name in ("first", "second"):
                built = story.loader(rank, name, site=tell.site(5))
                one = Batch(built.id, 0, n, batch, tuple(shard[n : n + batch]), 0.0, n // 2 // batch, 1.0)
                story.ranks[rank].add("batches", one)
            story.step(rank, None, 2 * batch)
    story.expected = Expected(global_batch_size=128)
    return story


@pytest.mark.parametrize(
    ("size", "state"), [("64 // (2 * world)", CLEAN), ("32 // world", CLEAN), ("take()", FLAGGED)]
)
def test_a_step_takes_its_batch_from_all_its_loaders(tell: Any, size: str, state: State) -> None:
    look = zipped(tell, size, 16).observation("OPT003")
    assert look.state is state
    if state is FLAGGED:
        assert "with batches of 2 loaders in a step, the batch is 0.5 times" in look.hits[0].message
        assert "twice" not in look.hits[0].message
        assert "`BATCH_SIZE // (2 * dist.get_world_size())`" in look.hits[0].hint


@pytest.mark.parametrize(("sizes", "state"), [((32, 32, 128), CLEAN), ((8, 16), FLAGGED)])
def test_a_batch_that_changes_on_purpose(tell: Any, sizes: tuple[int, ...], state: State) -> None:
    story = tell.Story()
    for rank in range(2):
        for samples in sizes:
            for _ in range(6):
                story.step(rank, None, samples)
    story.expected = Expected(global_batch_size=128)
    look = story.observation("OPT003")
    assert look.state is state
    if state is CLEAN:
        assert "from 64 to 256 samples" in look.reason
    story.expected = Expected(global_batch_size=128, base_batch_size=32)
    assert "changes in training" not in story.observation("OPT003").reason


def test_no_batch_is_prescribed(tell: Any) -> None:
    assert steps(tell, [0.1] * 5, samples=128).observation("OPT003").state is UNSEEN


# ---- OPT004 --------------------------------------------------------------------------------------------------------


def test_rates_that_part(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.ranks[rank].event("lr_scheduler", 14, kind="ReduceLROnPlateau", length=None)
        for n in range(6):
            story.step(rank, None, lr=(0.1 if n < 4 or rank else 0.01,))
    look = story.observation("OPT004")
    assert look.state is FLAGGED
    assert "At step 4 rank 0 stepped with a learning rate of 0.01 and rank 1 with 0.1" in look.hits[0].message
    assert "in 2 steps of 6" in look.hits[0].message
    assert look.hits[0].where[0].line == 14


OWN_EPS = """import torch
import torch.distributed as dist

rank = dist.get_rank()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1, eps=damping(model, rank))
"""


def settled(
    tell: Any, *told: dict[int, dict[str, Any]], names: tuple[str, ...] = ("a", "b"), text: str = ""
) -> Any:
    """What is said of ranks whose optimizers had these settings from these steps on, each over its parameter."""
    story = tell.Story()
    story.text = text or "import torch\noptimizer = torch.optim.Adam(model.parameters())\n"
    for rank, looks in enumerate(told):
        for _ in range(6):
            story.step(rank, None, kind="Adam")
            r = story.ranks[rank]
            r.fields["steps"][-1] = replace(r.fields["steps"][-1], grads=(1.0,), grad_names=(names[rank],))
        for n, settings in looks.items():
            story.ranks[rank].event("settings", n=n, optimizer=0, groups=[settings])
    return story.observation("OPT004")


def test_a_setting_that_each_rank_has_for_itself(tell: Any) -> None:
    look = settled(tell, {0: {"eps": 1e-8}}, {0: {"eps": 86.0}}, names=("a", "a"), text=OWN_EPS)
    (hit,) = look.hits
    assert "At step 0 rank 0 stepped with `eps` 1e-08 and rank 1 with 86." in hit.message
    assert "`train.py:5` makes `eps` of the rank: `damping(model, rank)`" in hit.message
    assert [place.line for place in hit.where] == [5]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({0: {"betas": [0.9, 0.999]}}, {0: {"betas": [0.9, 0.9]}}, id="one of two numbers"),
        pytest.param({0: {"momentum": 0}}, {0: {"momentum": 0.9}}, id="none on one rank"),
        pytest.param({0: {"maximize": False}}, {0: {"maximize": True}}, id="a switch"),
        pytest.param({0: {"trust": 0.001}}, {0: {"trust": 1.0}}, id="of an optimizer of the script's own"),
        pytest.param({0: {"eps": 1e-8}, 4: {"eps": 86.0}}, {0: {"eps": 1e-8}}, id="later"),
    ],
)
def test_settings_that_part(tell: Any, one: dict[int, Any], other: dict[int, Any]) -> None:
    look = settled(tell, one, other, names=("a", "a"))
    assert look.state is FLAGGED
    assert look.hits[0].where[0].line == 2


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        pytest.param({0: {"betas": [0.9, 0.999]}}, {0: {"betas": [0.9, 0.999]}}, ("a", "a"), id="equal"),
        pytest.param(
            {0: {"weight_decay": 0.1}}, {0: {"weight_decay": 0}}, ("a", "b"), id="of other parameters"
        ),
        pytest.param(
            {0: {"d": 1.0}, 3: {"d": 2.0}}, {0: {"d": 1.0}, 3: {"d": 3.0}}, ("a", "a"), id="what it counts"
        ),
        pytest.param(
            {0: {"momentum": 0.9}, 3: {"momentum": 0.85}},
            {0: {"momentum": 0.9}, 3: {"momentum": 0.85}},
            ("a", "a"),
            id="a cycle",
        ),
        pytest.param({0: {"eps": 1e-8}}, {}, ("a", "a"), id="one rank told none"),
        pytest.param({0: "?"}, {0: {"eps": ["?"]}}, ("a", "a"), id="nonsense"),
    ],
)
def test_settings_that_may_be_so(
    tell: Any, one: dict[int, Any], other: dict[int, Any], names: tuple[str, str]
) -> None:
    assert settled(tell, one, other, names=names).state is CLEAN


ONE_RANKS_SUM = """import torch
import torch.distributed as dist


def total(sums):
    dist.reduce(sums, dst=0)
    return (sums[0] / sums[1]).item()


scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
for epoch in range(5):
    accuracy = total(validate(model))
    scheduler.step(accuracy)
"""


def test_a_plateau_of_a_sum_that_one_rank_has(tell: Any) -> None:
    story = tell.Story()
    story.text = ONE_RANKS_SUM
    for rank in range(2):
        story.ranks[rank].event("lr_scheduler", 10, kind="ReduceLROnPlateau", length=None)
        for n in range(6):
            story.step(rank, None, lr=(0.1 if n < 4 or rank else 0.01,))
    (hit,) = story.observation("OPT004").hits
    assert [place.line for place in hit.where] == [6, 13]
    assert hit.hint.startswith("Write `dist.all_reduce(sums)` at `train.py:6`")
    assert hit.fix is not None


OWN_CLOCK = """import time
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = time.monotonic()


def slow_down():
    used = (time.monotonic() - began) / 60
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * (1 - used)


for x, y in loader:
    optimizer.step()
    slow_down()
"""


def parting(tell: Any, text: str) -> Any:
    """What is said of a script whose ranks step with different rates."""
    story = tell.Story()
    story.text = text
    for rank in range(2):
        for n in range(6):
            story.step(rank, None, lr=(0.1 - 0.001 * n * (rank + 1),))
    (hit,) = story.observation("OPT004").hits
    return hit


OWN_PLATEAU = """import torch
import torch.distributed as dist


class Plateau:
    best = float("inf")

    def on_epoch_end(self, trainer):
        if trainer.local_loss > self.best:
            for group in trainer.optimizer.param_groups:
                group["lr"] *= 0.5
        self.best = min(self.best, trainer.local_loss)


class Trainer:
    def train_epoch(self):
        sums = self.run()
        self.local_loss = (sums[0] / sums[1]).item()
        dist.all_reduce(sums)
"""


def test_the_test_that_a_rate_is_set_under_is_told_with_what_it_asks(tell: Any) -> None:
    hit = parting(tell, OWN_PLATEAU)
    assert [place.line for place in hit.where] == [11, 9, 18]
    assert "`train.py:11` sets the rate where `trainer.local_loss > self.best` holds" in hit.message
    assert "stored at `train.py:18`" in hit.message


def test_a_rate_by_a_rank_s_own_clock_is_told_where_it_is_set(tell: Any) -> None:
    hit = parting(tell, OWN_CLOCK)
    assert [place.line for place in hit.where] == [11, 9]
    assert "`train.py:11` sets the rate by this rank's own clock" in hit.message
    assert "scheduler" not in hit.hint
    assert "dist.broadcast" in hit.hint


def test_who_has_no_plateau_is_not_told_to_step_it_otherwise(tell: Any) -> None:
    hit = parting(tell, "import torch\noptimizer = torch.optim.SGD(model.parameters(), lr=read())\n")
    assert "scheduler" not in hit.hint


def test_rates_that_agree_but_for_rounding(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        for n in range(6):
            story.step(rank, None, lr=(0.1 * 0.9**n * (1 + rank * 1e-12),))
    assert story.observation("OPT004").state is CLEAN


def test_unequal_numbers_of_steps_are_not_compared_step_by_step(tell: Any) -> None:
    story = tell.Story()
    for rank, per_epoch in enumerate((5, 4)):
        for epoch in range(2):
            for _ in range(per_epoch):
                story.step(rank, None, lr=(0.1 / (epoch + 1),))
    assert story.observation("OPT004").state is UNSEEN


def test_steps_of_other_iterations_are_not_compared_by_their_rates(tell: Any) -> None:
    story = tell.Story()
    for rank, skipped in enumerate((4, 2)):
        for n in (n for n in range(6) if n != skipped):
            num = 2 if n == skipped + 1 else 1
            story.step(rank, None, lr=(0.1 / (n + 1),), backwards=num, exchanges=num)
    look = story.observation("OPT004")
    assert look.state is UNSEEN
    assert "From step 2 on" in look.reason


def test_rates_that_are_no_numbers_on_all_ranks_are_alike(tell: Any) -> None:
    assert steps(tell, [0.1, float("nan"), float("nan")]).observation("OPT004").state is CLEAN


# ---- OPT006 --------------------------------------------------------------------------------------------------------


def scheduled(tell: Any, length: int, taken: int = 40, kind: str = "OneCycleLR", every: int = 1) -> Any:
    story = steps(tell, [0.1 - 0.002 * (n // every) for n in range(taken)])
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind=kind, length=length)
    return story


@pytest.mark.parametrize(
    ("length", "every", "state"),
    [(80, 1, FLAGGED), (78, 1, FLAGGED), (40, 1, CLEAN), (60, 1, UNSEEN), (80, 10, UNSEEN)],
)
def test_schedules_and_the_steps_taken(tell: Any, length: int, every: int, state: State) -> None:
    look = scheduled(tell, length, every=every).observation("OPT006")
    assert look.state is state
    if state is FLAGGED:
        assert f"for {length} steps, but each of 2 ranks took 40, 1/2 of that" in look.hits[0].message


@pytest.mark.parametrize(("down", "state"), [(64, FLAGGED), (24, CLEAN), (40, CLEAN)])
def test_schedules_that_follow_one_another_add_up(tell: Any, down: int, state: State) -> None:
    story = steps(tell, [0.1 - 0.002 * n for n in range(40)])
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind="LinearLR", length=16)
        rank.event("lr_scheduler", 18, kind="CosineAnnealingLR", length=down)
        rank.event("lr_scheduler", 19, kind="SequentialLR", length=None)
    look = story.observation("OPT006")
    assert look.state is state
    if state is FLAGGED:
        assert "together last 80 steps, but each of 2 ranks took 40" in look.hits[0].message
    else:
        assert f"made for {16 + down} steps, and 40 were taken" in look.reason


def test_a_helper_that_divides_is_named_with_what_it_was_given(tell: Any) -> None:
    story = scheduled(tell, 80)
    story.text = """import math
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, DistributedSampler


def curve(optimizer, samples, size):










    return OneCycleLR(optimizer, 0.1, total_steps=5 * math.ceil(samples / size))  # line 17, as the run tells


train_set = load()
loader = DataLoader(train_set, 8, sampler=DistributedSampler(train_set))
schedule = curve(optimizer, len(train_set), 8)
for x, y in loader:
    loss_of(model(x), y).backward()
    optimizer.step()
    schedule.step()
"""
    hit = story.observation("OPT006").hits[0]
    assert {w.line for w in hit.where} == {17, 22}
    assert "hand on `len(loader)` in place of `len(train_set)`" in hit.hint
    assert "write `samples` for `math.ceil(samples / size)`" in hit.hint
    assert hit.fix is not None


LEFT_EARLY = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def parts(train_set):
    sampler = DistributedSampler(train_set)
    return DataLoader(train_set, 8, sampler=sampler), DataLoader(train_set, 8), sampler


train_set = load()
loader, whole, sampler = parts(train_set)
EPOCHS = 4



schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=LENGTH)  # line 17, as the run tells
for epoch in range(EPOCHS):
    train(loader, schedule)
    if good_enough():
        break
"""


@pytest.mark.parametrize(
    ("length", "state"),
    [
        ("EPOCHS * len(loader)", UNSEEN),
        ("EPOCHS * (len(sampler) // 8)", UNSEEN),
        ("EPOCHS * len(whole)", FLAGGED),
        ("EPOCHS * len(loader) * dist.get_world_size()", FLAGGED),
        ("EPOCHS * (len(train_set) // 8)", FLAGGED),
    ],
)
def test_a_training_that_was_left_before_its_schedule_was_over(tell: Any, length: str, state: State) -> None:
    story = scheduled(tell, 80)
    story.text = LEFT_EARLY.replace("LENGTH", length)
    look = story.observation("OPT006")
    assert look.state is state
    if state is UNSEEN:
        assert "makes the schedule for 80 steps of a rank" in look.reason
        assert "Training ended after 40" in look.reason


def test_a_schedule_stepped_per_batch_while_gradients_accumulate(tell: Any) -> None:
    story = tell.Story(num_train=640)
    for epoch in range(2):
        story.epoch(tell.strided(640, 2, epoch), every=2)
    for rank in story.ranks:
        moving = [tell.replace(s, lr=(0.1 - 0.001 * n,)) for n, s in enumerate(rank.fields["steps"])]
        rank.fields["steps"] = moving
        rank.event("lr_scheduler", 17, kind="OneCycleLR", length=80)
    assert story.observation("OPT006").state is CLEAN


def cosine(steps: int, length: int, low: float = 0.01) -> list[float]:
    return [low + (0.1 - low) * (1 + math.cos(math.pi * n / length)) / 2 for n in range(steps)]


WARM = [0.01 + 0.009 * n for n in range(10)]


@pytest.mark.parametrize(
    ("rates", "kind", "state"),
    [
        (WARM + cosine(60, 30), "CosineAnnealingLR", FLAGGED),  # back at its peak
        (WARM + cosine(45, 30), "CosineAnnealingLR", FLAGGED),  # half way up
        (WARM + cosine(31, 30), "CosineAnnealingLR", UNSEEN),
        (WARM + 2 * cosine(30, 30), "CosineAnnealingWarmRestarts", UNSEEN),
        (WARM + cosine(120, 30), "CosineAnnealingLR", FLAGGED),  # wave after wave, back at its peak
        (
            WARM + cosine(90, 30),
            "CosineAnnealingLR",
            UNSEEN,
        ),  # waves that end at the bottom, as somebody chose it
    ],
)
def test_a_cosine_that_climbs_again(tell: Any, rates: list[float], kind: str, state: State) -> None:
    story = steps(tell, rates)
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind="LinearLR", length=10)
        rank.event("lr_scheduler", 18, kind=kind, length=30)
        rank.event("lr_scheduler", 19, kind="SequentialLR", length=None)
    look = story.observation("OPT006")
    assert (look.state is FLAGGED) is (state is FLAGGED)
    if state is FLAGGED:
        (hit,) = look.hits
        assert hit.where[0].line == 18
        assert f"`T_max` is to be {len(rates) - 10} here" in hit.hint


IN_EPOCHS = """import torch
from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(train_set, 8, sampler=DistributedSampler(train_set))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs - 1)
for epoch in range(epochs):
    for x, y in loader:
        loss_of(model(x), y).backward()
        optimizer.step()
        schedule.step()
"""


@pytest.mark.parametrize("low", [0.0, 0.01])
@pytest.mark.parametrize("length", [5, 6, 60])
def test_a_cosine_that_counts_epochs_and_is_stepped_in_batches(tell: Any, length: int, low: float) -> None:
    story = tell.Story()
    story.text = IN_EPOCHS
    for epoch in range(6):
        story.epoch(tell.strided(96, 2, epoch))
    num = len(story.ranks[0].fields["steps"])
    length = min(length, num)
    for rank in story.ranks:
        moved = zip(rank.fields["steps"], cosine(num, length, low), strict=True)
        rank.fields["steps"] = [tell.replace(s, lr=(rate,)) for s, rate in moved]
        rank.event("lr_scheduler", 6, kind="CosineAnnealingLR", length=length)
    hits = story.observation("OPT006").hits
    assert bool(hits) is (length < num)
    for hit in hits:
        assert "times again" in hit.message
        assert f"`T_max` is to be {num} here" in hit.hint
        assert hit.where[0].line == 6
    if length == 6:
        assert f"would be {num} steps: `train.py:11` steps it once per batch" in hits[0].message
        assert "`T_max=(epochs - 1) * len(loader)`" in hits[0].hint
        assert [place.line for place in hits[0].where] == [6, 11]


def test_a_warm_up_before_it_that_counts_epochs_as_well(tell: Any) -> None:
    story = tell.Story()
    story.text = IN_EPOCHS.replace("epochs - 1", "epochs - 2")
    for epoch in range(8):
        story.epoch(tell.strided(96, 2, epoch))
    num = len(story.ranks[0].fields["steps"])
    rates = [0.01, 0.05, *cosine(num - 2, 6, 0.0)]
    for rank in story.ranks:
        moved = zip(rank.fields["steps"], rates, strict=True)
        rank.fields["steps"] = [tell.replace(s, lr=(rate,)) for s, rate in moved]
        rank.event("lr_scheduler", 6, kind="LinearLR", length=2)
        rank.event("lr_scheduler", 6, kind="CosineAnnealingLR", length=6)
    (hit,) = story.observation("OPT006").hits
    assert f"6 epochs would be {6 * num // 8} steps: `train.py:11` steps it once per batch" in hit.message
    assert "`T_max=(epochs - 2) * len(loader)`" in hit.hint
    assert "The 2 of the warm-up are epochs as well" in hit.hint
    assert "CosineAnnealingWarmRestarts" not in hit.hint


def test_a_short_schedule_beside_a_warm_up_by_hand_is_none_that_is_too_short(tell: Any) -> None:
    story = steps(tell, WARM + cosine(30, 30, 0.0))
    for rank in story.ranks:
        rank.event("lr_scheduler", 18, kind="CosineAnnealingLR", length=30)
    look = story.observation("OPT006")
    assert look.state is CLEAN
    assert "made for" not in look.reason
    assert "in the last of 40, and its peak was 0.1." in look.reason


@pytest.mark.parametrize(
    ("rates", "state"),
    [
        (WARM + [0.1 - 0.004 * n for n in range(25)] + [0.0] * 35, FLAGGED),
        (WARM + [0.1 - 0.004 * n for n in range(25)] + [-1e-17] * 35, FLAGGED),  # what rounding leaves
        (WARM + [0.1 - 0.002 * n for n in range(50)] + [0.0] * 5, UNSEEN),  # the foot of its curve
        (
            WARM + [0.1 - 0.004 * n for n in range(20)] + [0.001] * 35,
            UNSEEN,
        ),  # a least rate, as somebody chose it
    ],
)
def test_a_rate_of_zero_long_before_the_end(tell: Any, rates: list[float], state: State) -> None:
    story = steps(tell, rates)
    story.text = SCHEDULE_ONCE_PER_RANK
    for rank in story.ranks:
        rank.event("lr_scheduler", 8, kind="LambdaLR", length=None)
    look = story.observation("OPT006")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert f"was 0 in the last 35 of {len(rates)} optimizer steps" in hit.message
        assert "`train.py:15` steps the schedule as often as there are ranks" in hit.message
        assert {w.line for w in hit.where} >= {8, 15, 16}
        assert "Write `schedule.step()` once" in hit.hint


SCHEDULE_ONCE_PER_RANK = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group()
loader = DataLoader(train_set, 8, sampler=DistributedSampler(train_set))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, curve)


for epoch in range(5):
    for x, y in loader:
        loss_of(model(x), y).backward()
        optimizer.step()
        for _ in range(dist.get_world_size()):
            schedule.step()
"""


def test_a_rate_of_zero_that_nothing_in_the_text_explains(tell: Any) -> None:
    story = steps(tell, [0.1] * 20 + [0.0] * 20)
    (hit,) = story.observation("OPT006").hits
    assert "over after 20 steps, and 40 are taken" in hit.hint


@pytest.mark.parametrize(
    ("later", "anew", "found"),
    [
        ([0.09] * 30, False, True),
        ([0.09] * 30, True, False),  # a schedule of its own, which has not moved it yet
        ([0.09 - 0.001 * n for n in range(30)], False, False),  # somebody sets its rate
    ],
)
def test_an_optimizer_that_is_built_anew_without_its_schedule(
    tell: Any, later: list[float], anew: bool, found: bool
) -> None:
    story = tell.Story()
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind="CosineAnnealingLR", length=40)
    for rank in (0, 1):
        for rate in [0.1 - 0.001 * n for n in range(10)]:
            story.step(rank, None, lr=(rate,), wraps=(0,), num_params=3)
        if anew:
            story.ranks[rank].event("lr_scheduler", 21, kind="CosineAnnealingLR", length=40)
        for rate in later:
            story.step(rank, None, lr=(rate,), wraps=(0,), num_params=3, optimizer=1)
    look = story.observation("OPT006")
    assert (look.state is FLAGGED) is found
    if found:
        assert "the rate stood at 0.09 in the 30 steps that were left" in look.hits[0].message


ANEW = """import torch
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def configure(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=40)

    def distribute(self):
        self.model = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("told", "rates", "found"),
    [
        ([1, 2, 4, 8, 16, 32], [0.1], True),
        ([1, 2], [0.1], False),  # it was stepped later on
        ([1, 2, 4, 8, 16, 32], [0.1, 0.05], False),  # another schedule moves it
        ([], [0.1], False),
    ],
)
def test_a_schedule_of_an_optimizer_that_never_steps(
    tell: Any, told: list[int], rates: list[float], found: bool
) -> None:
    story = tell.Story()
    story.text = ANEW
    for rank in (0, 1):
        story.ranks[rank].event("lr_scheduler", 8, kind="OneCycleLR", length=40)
        for n in range(40):
            story.step(rank, None, lr=(rates[n % len(rates)],), wraps=(0,))
            if n + 1 in told:
                story.ranks[rank].event("idle_schedule", 8, kind="OneCycleLR", calls=n + 1, n=n + 1)
    look = story.observation("OPT006")
    assert (look.state is FLAGGED) is found
    if found:
        (hit,) = look.hits
        assert [place.line for place in hit.where] == [12, 8]
        assert "`train.py:12` builds another one in its place" in hit.message
        assert "stood at 0.1 in all 40 steps" in hit.message
        assert "Make the schedule below `train.py:12`" in hit.hint


@pytest.mark.parametrize(
    ("rates", "found"), [([0.1] * 40, True), ([0.1 - 0.002 * n for n in range(40)], False)]
)
def test_a_schedule_that_is_never_stepped(tell: Any, rates: list[float], found: bool) -> None:
    story = steps(tell, rates)
    story.text = NEVER_STEPPED
    for rank in story.ranks:
        rank.event("lr_scheduler", 15, kind="LambdaLR", length=None)
    look = story.observation("OPT006")
    assert (look.state is FLAGGED) is found
    if found:
        (hit,) = look.hits
        assert hit.where[0].line == 15
        assert "nothing calls its `step()`" in hit.message
        assert "stood at 0.1 in all 40 steps" in hit.message
        assert "Write `self.scheduler.step()` behind `self.optimizer.step()` (`train.py:24`):" in hit.hint


def test_the_rates_of_optimizers_that_take_each_others_place(tell: Any) -> None:
    story = tell.Story()
    story.expected = ASKED
    for rank in (0, 1):
        for number, rate in enumerate([0.1, 0.1, 0.8, 0.8]):
            for _ in range(6 - number):
                story.step(rank, None, 64, lr=(rate,), wraps=(0,), num_params=3, optimizer=number)
    assert story.observation("OPT001").state is CLEAN
    assert "climbed from 0.1 to 0.8 over 11 steps" in story.observation("OPT002").reason


# ---- PERF ----------------------------------------------------------------------------------------------------------


def meeting(
    tell: Any, name: str, numel: int, every: int = 1, reduce_op: str = "SUM", wrap: bool = True
) -> Any:
    story = tell.Story()
    if wrap:
        story.wrap()
    for rank in story.ranks:
        calls = 0
        for n in range(120):
            story.step(rank.rank, None)
            if n % every == 0:
                calls += 1
                if calls <= 64 or calls % 64 == 0:  # as the probe tells them
                    rank.add(
                        "collectives", Collective(name, tell.site(27), calls, numel, reduce_op, rank.tick())
                    )
    return story


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ({"name": "barrier", "numel": 0}, FLAGGED),
        ({"name": "all_reduce", "numel": 1}, FLAGGED),
        ({"name": "all_reduce", "numel": 1, "every": 10}, CLEAN),
        ({"name": "all_reduce", "numel": 1, "reduce_op": "MIN"}, CLEAN),  # all agree to go on
        ({"name": "all_reduce", "numel": 5000}, CLEAN),  # gradients
        ({"name": "all_reduce", "numel": 1, "wrap": False}, UNSEEN),
    ],
)
def test_meetings_in_every_step(tell: Any, call: dict[str, Any], state: State) -> None:
    look = meeting(tell, **call).observation("PERF001")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].where[0].line == 27
        assert "120 optimizer steps" in look.hits[0].message
        assert "at least 64 times" in look.hits[0].message  # nothing counted those that were not told


def test_meetings_are_counted_and_not_guessed(tell: Any) -> None:
    story = meeting(tell, "all_gather", 3)
    for rank in story.ranks:
        rank.add("traffic", Traffic("all_gather", tell.site(27), None, None, 120, 4))
    message = story.observation("PERF001").hits[0].message
    assert "`all_gather` brought 3 numbers of each rank together 120 times in 120 optimizer steps." in message


DENOMINATOR = """import torch
import torch.distributed as dist


def begin(total):
    shared = total.clone()
    return dist.all_reduce(shared, async_op=True), shared


for x, y in loader:
    work, shared = begin((y > 0).sum())
    each = criterion(model(x), y)
    work.wait()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "state"),
    [
        ("each.sum() * 2 / shared", CLEAN),
        ("each.mul(2 / shared.item()).sum()", CLEAN),
        ("each.mean()", FLAGGED),
    ],
)
def test_a_number_that_the_loss_is_made_of_meets_in_every_step(tell: Any, loss: str, state: State) -> None:
    story = meeting(tell, "all_reduce", 1)
    story.text = DENOMINATOR.format(loss=loss)
    for rank in story.ranks:
        rank.fields["collectives"] = [replace(c, site=tell.site(7)) for c in rank.fields["collectives"]]
    assert story.observation("PERF001").state is state


@pytest.mark.parametrize("part", ["forward", "backward", "differentiated"])
def test_what_the_network_needs_in_every_step_is_no_meeting_too_many(tell: Any, part: str) -> None:
    story = meeting(tell, "all_gather", 3)
    for rank in story.ranks:
        rank.fields["collectives"] = [replace(c, **{part: True}) for c in rank.fields["collectives"]]
    assert story.observation("PERF001").state is CLEAN


def waiting(tell: Any, data_s: float, compute_s: float, taken: int = 60) -> Any:
    story = tell.Story()
    for rank in story.ranks:
        for _ in range(taken):
            story.step(rank.rank, None)
        took_s = data_s + compute_s
        told = [
            tell.replace(s, data_s=data_s, compute_s=compute_s, t=1.0 + n * took_s)
            for n, s in enumerate(rank.fields["steps"])
        ]
        rank.fields["steps"] = told
    return story


def test_waiting_for_data(tell: Any) -> None:
    look = waiting(tell, 0.2, 0.05).observation("PERF002")
    assert look.state is FLAGGED
    assert "80% on rank 0 and 80% on rank 1" in look.hits[0].message
    assert waiting(tell, 0.05, 0.05).observation("PERF002").state is CLEAN
    assert waiting(tell, 0.002, 0.0005).observation("PERF002").state is CLEAN, (
        "a tenth of a second is not worth a word"
    )
    assert waiting(tell, 0.2, 0.05, taken=5).observation("PERF002").state is UNSEEN


def test_one_long_wait_is_no_lack_of_input(tell: Any) -> None:
    story = waiting(tell, 0.01, 0.05)
    for rank in story.ranks:
        steps = rank.fields["steps"]
        rank.fields["steps"] = [
            *steps[:30],
            tell.replace(steps[30], data_s=60.0, t=steps[30].t + 60.0),
            *(tell.replace(s, t=s.t + 60.0) for s in steps[31:]),
        ]
    assert story.observation("PERF002").state is CLEAN


def calibrated(one_rank_s: float | None, samples: int) -> Calibration:
    made_at = "2026-01-01T00:00:00Z"
    return Calibration(
        "any", "0", "cpu", "digits", 2, "here", (), 900.0, one_rank_s, False, 0.0, made_at, samples
    )


def test_two_ranks_that_are_no_faster_than_one(tell: Any) -> None:
    story = tell.honest()  # five seconds of processor time on each rank
    samples = sum(step.samples for rank in story.ranks for step in rank.fields["steps"])
    story.calibration = calibrated(5.2, samples)
    look = story.observation("PERF003")
    assert look.state is FLAGGED
    assert "1.04 × as fast" in look.hits[0].message
    story.disturbed = True
    assert story.observation("PERF003").state is UNSEEN
    story.calibration = calibrated(8.0, samples)
    assert story.observation("PERF003").state is CLEAN, "faster all the same"
    story.calibration = calibrated(16.0, 2 * samples)
    assert story.observation("PERF003").state is CLEAN
    story.calibration = calibrated(None, samples)
    assert story.observation("PERF003").state is UNSEEN
    story.calibration = None
    assert story.observation("PERF003").state is UNSEEN


NEVER_STEPPED = (Path(__file__).parents[1] / "fixtures/OPT006/flagged_never_stepped.py").read_text("utf-8")
OWN_COUNT = (Path(__file__).parents[1] / "fixtures/OPT006/flagged_count_of_own_samples.py").read_text(
    encoding="utf-8"
)


@pytest.mark.parametrize(("end", "state"), [(0.07, FLAGGED), (0.001, UNSEEN)])
def test_a_count_of_own_samples_on_the_curve_of_all(tell: Any, end: float, state: State) -> None:
    """The text shows the count; that the rate never came down, the run."""
    story = steps(tell, [*WARM, *(0.1 - (0.1 - end) * n / 29 for n in range(30))])
    story.text = OWN_COUNT
    look = story.observation("OPT006")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert "ended at 0.07, and 0.1 was its peak" in hit.message
        assert "`seen += len(y) * dist.get_world_size()`" in hit.hint
        assert [place.line for place in hit.where] == [35, 25, 31]


@pytest.mark.parametrize("end", [0.07, 0.001])
def test_a_rate_that_did_not_come_down_is_looked_at_before_more_epochs(tell: Any, end: float) -> None:
    story = steps(tell, [*WARM, *(0.1 - (0.1 - end) * n / 29 for n in range(30))])
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4})
    story.levels = {"accuracy": 0.9}
    (hit,) = story.observation("EVAL013").hits
    assert ("come to the end of its curve" in hit.hint) is (end == 0.07)
    assert ("more epochs" in hit.hint) is not (end == 0.07)


STEPS_OF_ALL = """from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(train_set, batch_size=8, sampler=DistributedSampler(train_set))
steps_per_epoch = NUMBER
for epoch in range(3):
    for step in range(steps_per_epoch):
        x, y = next(batches)
        criterion(model(x), y).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("number", "epochs", "told"),
    [("len(train_set) // 8", 2, True), ("len(loader)", 2, False), ("len(train_set) // 8", 4, False)],
)
def test_epochs_of_as_many_passes_as_there_are_ranks(tell: Any, number: str, epochs: int, told: bool) -> None:
    """Who validates less often than each epoch reports fewer, too: the text decides."""
    story = tell.honest()
    for epoch in range(2, 4):
        story.epoch(tell.strided(96, 2, epoch), sampler_epoch=epoch)
    story.text = STEPS_OF_ALL.replace("NUMBER", number)
    rows = tuple({"val_accuracy": 0.5} for _ in range(epochs))
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4}, reported=ReportedMetrics(rows))
    drawn = sum(e.num_drawn for s in story.evidence().ledger.training for e in s.epochs)
    assert drawn == 4 * 96
    look = story.observation("PERF003")
    assert (look.state is FLAGGED) is told
    if told:
        (hit,) = look.hits
        assert "has 2 epochs, and the training split was gone through 4 times" in hit.message
        assert [place.line for place in hit.where] == [4]
        assert "`len(loader)`" in hit.hint


def test_no_speed_is_told_where_nobody_knows_what_was_trained_on(tell: Any) -> None:
    story = tell.Story()
    for rank in story.ranks:
        for _ in range(9):
            story.step(rank.rank, None, samples=64)
    story.calibration = calibrated(7.1, 11_990)
    assert story.observation("PERF003").state is UNSEEN


@pytest.mark.parametrize("hook", ["forward", "update", "step"])
def test_steps_that_a_broken_hook_lost_sight_of_are_not_counted(tell: Any, hook: str) -> None:
    story = tell.honest()
    story.calibration = calibrated(1.0, 1_000)
    rules = [rule for rule in load_rules() if rule.code in ("DATA005", "OPT004", "PERF003")]
    seen = [rule.observe(story.evidence()) for rule in rules]
    assert UNSEEN not in [one and one.state for one in seen]
    assert "12 steps" in story.observation("DIST008").reason
    story.ranks[1].event("unsupported", 1, reason=f"hook {hook} failed: RuntimeError: no storage")
    seen = [rule.observe(story.evidence()) for rule in rules]
    assert [one and one.state for one in seen] == [UNSEEN] * 3
    assert story.observation("DIST008").reason == "All ranks stayed together."
    assert num_steps(story.evidence().trace) is None


def test_a_look_that_failed_leaves_the_count_of_steps_alone(tell: Any) -> None:
    story = tell.honest()
    story.ranks[0].event("unsupported", 1, reason="hook fed samples failed: RuntimeError: no storage")
    assert story.observation("DATA005").state is CLEAN
    assert num_steps(story.evidence().trace)


@pytest.mark.parametrize("code", ["DIST003", "DIST009", "DIST012"])
def test_calls_are_counted_and_not_those_that_were_told(tell: Any, code: str) -> None:
    story = meeting(tell, "all_reduce", 1, wrap=False)
    story.group()
    for rank in story.ranks:
        rank.add("traffic", Traffic("all_reduce", tell.site(27), None, None, 120, 4))
    assert " 240 " in story.observation(code).reason.replace("(", " ")


LATE = """import torch
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, by_step)
for group in optimizer.param_groups:
    group["lr"] *= 8
"""


@pytest.mark.parametrize(("text", "code"), [(LATE, "OPT001"), (LATE.replace("*= 8", "+ 8"), "OPT002")])
def test_a_rate_that_the_schedule_set_back_is_one_fault(tell: Any, text: str, code: str) -> None:
    story = steps(tell, [0.1, *(0.0125 * n for n in range(1, 9)), *[0.09] * 10], samples=64)
    story.text, story.expected = text, ASKED
    scaled, warmed = (story.observation(one) for one in ("OPT001", "OPT002"))
    assert scaled.state is FLAGGED
    late = code == "OPT001"
    assert warmed.state is (CLEAN if late else FLAGGED)
    assert (
        "It fell from 0.1 in the first step to 0.0125 in the second, 12%" in scaled.hits[0].message
    ) is late
    assert scaled.hits[0].where[0].line == (5 if late else 2)


# ---- rates by hand that begin anew in each epoch ------------------------------------------------------------------


def in_each_epoch(tell: Any, *curves: list[float]) -> Any:
    """Epochs of six steps, with these rates."""
    story = tell.Story()
    for epoch, _ in enumerate(curves):
        story.epoch(tell.strided(96, 2, epoch), sampler_epoch=epoch)
    rates = [rate for curve in curves for rate in curve]
    for rank in story.ranks:
        rank.fields["steps"] = [
            tell.replace(s, lr=(rate,)) for s, rate in zip(rank.fields["steps"], rates, strict=True)
        ]
    return story


CLIMBS = [0.01 * n for n in range(1, 7)]
FALLS = [0.06 - 0.01 * n for n in range(6)]
BY_HAND = """import torch
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(epochs):
    for it, (x, y) in enumerate(loader):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(it, LENGTH)
        loss_of(model(x), y).backward()
        optimizer.step()
"""


def test_a_rate_by_hand_that_begins_anew_in_each_epoch(tell: Any) -> None:
    story = in_each_epoch(tell, *[FALLS] * 3)
    story.text = BY_HAND.replace("LENGTH", "epochs * len(loader)")
    (hit,) = story.observation("OPT006").hits
    assert hit.severity is None
    assert (
        "In each of 3 epochs the learning rate went through the same values, from 0.06 to 0.01" in hit.message
    )
    assert {place.line for place in hit.where} == {9, 7}
    assert "write `rate_at(epoch * len(loader) + it, epochs * len(loader))`" in hit.hint


def test_a_warm_up_that_begins_anew_is_a_hint_where_the_text_says_nothing(tell: Any) -> None:
    (hit,) = in_each_epoch(tell, *[CLIMBS] * 3).observation("OPT006").hits
    assert hit.severity is Severity.HINT
    assert "a warm-up that begins anew in each epoch" in hit.message


@pytest.mark.parametrize(
    "curves",
    [
        [FALLS] * 4,  # restarts, as somebody chose it
        [CLIMBS] * 2,  # too few to tell
        [CLIMBS, CLIMBS, FALLS],
        [[0.1] * 6] * 4,
        [[0.1 * 0.5**n] * 6 for n in range(4)],
    ],
)
def test_rates_that_may_be_meant_so(tell: Any, curves: list[list[float]]) -> None:
    story = in_each_epoch(tell, *curves)
    story.text = BY_HAND.replace("LENGTH", "len(loader)")
    assert story.observation("OPT006").state is not FLAGGED


def test_a_schedule_of_torch_has_its_own_period(tell: Any) -> None:
    story = in_each_epoch(tell, *[CLIMBS] * 4)
    for rank in story.ranks:
        rank.event("lr_scheduler", 17, kind="CyclicLR", length=None)
    assert story.observation("OPT006").state is not FLAGGED


# ---- schedules that wait for a plateau --------------------------------------------------------------------------


WAITING = """import torch
import torch.distributed as dist

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, MODE)
for epoch in range(epochs):
    train(model, optimizer)
    figure = measure(model)
    schedule.step(FIGURE)
"""
BETTER = {"val_loss": [2.0, 1.5, 1.0, 0.6, 0.4, 0.3], "val_accuracy": [0.2, 0.4, 0.55, 0.7, 0.8, 0.9]}


def for_a_plateau(tell: Any, mode: str, values: list[float], *, cut: bool = True) -> Any:
    """Two ranks whose schedule, of line 5 and stepped on line 9, halves the rate from the second value on."""
    story = steps(tell, [0.1] * 24)
    for rank in story.ranks:
        for n, value in enumerate(values):
            before, after = 0.1 * 0.5 ** max(0, n - 1), 0.1 * 0.5**n
            told = {"before": before, "after": after} if cut else {"before": 0.1, "after": 0.1}
            made = ["train.py", 5, "<module>"]
            rank.event("plateau", 9, mode=mode, value=value, n=4 * n, made=made, **told)
    return story


def reporting(**columns: list[float]) -> Evaluation:
    epochs = tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return Evaluation(None, reported=ReportedMetrics(epochs))


@pytest.mark.parametrize(
    ("key", "mode", "state"),
    [
        ("val_loss", "max", FLAGGED),
        ("val_loss", "min", UNSEEN),
        ("val_accuracy", "min", FLAGGED),
        ("val_accuracy", "max", UNSEEN),
    ],
)
def test_a_plateau_in_the_mode_of_another_number(tell: Any, key: str, mode: str, state: State) -> None:
    story = for_a_plateau(tell, mode, BETTER[key][1:])  # from the second epoch on
    story.evaluation = reporting(**BETTER)
    story.text = WAITING.replace("MODE", repr(mode)).replace("FIGURE", "figure")
    look = story.observation("OPT006")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert hit.severity is None
        assert f"in mode `{mode}`, and `train.py:9` gives it what is reported as `{key}`" in hit.message
        assert "better than before in 4 of 4 times" in hit.message
        assert "was cut 4 times" in hit.message
        assert f'Write `"{"min" if mode == "max" else "max"}"` for' in hit.hint
        assert [place.line for place in hit.where] == [5, 9]


def test_a_plateau_whose_number_the_text_alone_names(tell: Any) -> None:
    story = for_a_plateau(tell, "max", BETTER["val_loss"])
    story.text = WAITING.replace("MODE", "mode").replace("FIGURE", "val_loss")
    (hit,) = story.observation("OPT006").hits
    assert hit.severity is Severity.HINT
    assert "gives it a loss, `val_loss`" in hit.message


@pytest.mark.parametrize("figure", ["figure", "-val_loss", "1 - val_accuracy", "score(val_loss)"])
def test_a_number_of_which_nobody_knows_what_it_is(tell: Any, figure: str) -> None:
    story = for_a_plateau(tell, "max", BETTER["val_loss"])
    story.text = WAITING.replace("MODE", "mode").replace("FIGURE", figure)
    assert story.observation("OPT006").state is not FLAGGED


def test_a_number_that_only_gets_worse_or_a_rate_that_stays(tell: Any) -> None:
    worse = for_a_plateau(tell, "max", BETTER["val_loss"][::-1])
    stays = for_a_plateau(tell, "max", BETTER["val_loss"], cut=False)
    for story in (worse, stays):
        story.text = WAITING.replace("MODE", "mode").replace("FIGURE", "val_loss")
        assert story.observation("OPT006").state is not FLAGGED
