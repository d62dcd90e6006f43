"""GRAD rules over runs: gradients and replicas, with the cascades that one cause brings about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from grader.model.audited_step import AuditedStep
from grader.model.evaluation import Evaluation
from grader.model.grade import State
from grader.model.run import Ending
from grader.model.trace import Collective

FIXTURES = Path(__file__).parents[1] / "fixtures"
FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE


def own_gradients(rank: int, step: int) -> tuple[float, ...]:
    return (1.0 + step + 0.1 * rank, 0.5, 1e-9)


# ---- GRAD001 -----------------------------------------------------------------------------------------------------


def test_equal_gradients(tell: Any) -> None:
    look = tell.honest().observation("GRAD001")
    assert look.state is CLEAN
    assert "equal at all 12 steps compared" in look.reason


def test_noise_of_a_hand_written_average_is_no_difference(tell: Any) -> None:
    story = tell.Story()
    story.epoch(
        tell.strided(96, 2), grads=lambda rank, step: (3.0 * (1 + 1e-9 * rank), 0.5, 1e-9 * (1 + rank))
    )
    assert story.observation("GRAD001").state is CLEAN


def test_steps_that_were_not_sampled_are_not_compared(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        for step in range(20):
            story.step(rank, (1.0, 2.0, float(step)) if step < 4 else None)
    assert "all 4 steps" in story.observation("GRAD001").reason


def test_a_model_that_was_never_wrapped(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    look = story.observation("GRAD001")
    assert look.state is FLAGGED
    assert "different gradients at 6 of 6 compared steps" in look.hits[0].message
    assert "`conv.weight`" in look.hits[0].message
    assert "Wrap the model" in look.hits[0].hint
    assert look.hits[0].where[0].line == 25


REDUCES_THE_LOSS = """import torch
import torch.distributed as dist

world = dist.get_world_size()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    {reduce}
    loss.backward()
    {after}
    optimizer.step()
"""


def test_a_loss_that_is_reduced_in_the_place_of_gradients(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    story.text = REDUCES_THE_LOSS.format(reduce="dist.all_reduce(loss); loss = loss / world", after="")
    hit = story.observation("GRAD001").hits[0]
    assert hit.where[0].line == 9
    assert "`train.py:9` averages the loss, not the gradients" in hit.message
    assert (
        "leave out `dist.all_reduce(loss)` (`train.py:9`) and `loss = loss / world` (`train.py:9`)"
        in hit.hint
    )
    story.text = REDUCES_THE_LOSS.format(reduce="pass", after="dist.all_reduce(loss)")
    assert "averages the loss" not in story.observation("GRAD001").hits[0].message


def test_a_layer_that_was_put_in_after_the_wrap(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for rank in range(2):
        story.ranks[rank].event("changed", 0, wrap=0, added=["fc.weight"], frozen=[], removed=0)
        for _ in range(4):
            story.step(rank, (1.0, 0.5 + rank, 0.1), backwards=1, wraps=(0,))
    story.text = """import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.module.fc = torch.nn.Sequential(model.module.fc, adapter)
"""
    hit = story.observation("GRAD001").hits[0]
    assert hit.where[0].line == 6
    assert "`model.module.fc = torch.nn.Sequential(model.module.fc, adapter)` (`train.py:6`)" in hit.hint


AVERAGES_TOO_EARLY = """import torch
import torch.distributed as dist


class Trainer:
    def average(self):
        for p in self.model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()

    def train_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=False)
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.average()
        loss.backward()
        self.optimizer.step()

    def fit(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in batches:
            self.train_step(x, y)
"""


def test_gradients_that_are_averaged_before_there_are_any(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    story.text = AVERAGES_TOO_EARLY
    hit = story.observation("GRAD001").hits[0]
    assert hit.where[0].line == 14
    assert "`train.py:14` averages gradients before `train.py:15`" in hit.message
    assert hit.hint.startswith("Move `self.average()` from `train.py:14` to right after `loss.backward()`")
    assert hit.fix is not None


@pytest.mark.parametrize(
    ("again", "hint"),
    [
        ("loss.backward()", "Leave out `loss.backward()` at `train.py:10`"),
        ("other.backward()", "Go backward once, from the sum: `(loss + other).backward()`"),
    ],
)
def test_a_second_backward_pass_that_ddp_does_not_average(tell: Any, again: str, hint: str) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for rank in range(2):
        for step in range(4):
            story.step(rank, own_gradients(rank, step), backwards=2, wraps=(0,))
    story.text = f"""import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    loss, other = losses(model(x), y)
    loss.backward(retain_graph=True)
    {again}
    optimizer.step()
"""
    hit = story.observation("GRAD001").hits[0]
    assert hit.where[0].line == 10
    assert "DDP averages in the first backward" in hit.message
    assert hit.hint.startswith(hint)
    assert hit.details["seen_right"] == ["GRAD002", "GRAD003"], (
        "it was wrapped, and called through its wrapper"
    )


def test_a_step_that_ddp_never_finished_is_not_compared(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for rank in range(2):
        for step in range(3):
            story.step(rank, own_gradients(rank, step) if step == 2 else (1.0, 2.0, 3.0))
    assert story.observation("GRAD001").state is FLAGGED
    message = "Expected to have finished reduction in the prior iteration before starting a new one."
    story.ranks[1].event("exception", type="RuntimeError", message=message, frames=[])
    look = story.observation("GRAD001")
    assert look.state is State.NOT_REACHED
    assert "had not finished the exchange of step 2" in look.reason


TWO_MODELS = """import torch
from torch.nn.parallel import DistributedDataParallel

critic = DistributedDataParallel(critic)
for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for real in loader:
    for_critic.step()
    for_generator.step()
"""


def test_the_model_beside_the_wrapped_one(tell: Any) -> None:
    story = tell.Story()
    story.text = TWO_MODELS
    story.group()
    story.wrap()
    for rank in range(2):
        for step in range(4):
            story.step(rank, (1.0, 2.0, 3.0), optimizer=0, site=tell.site(8), wraps=(0,), modules=("Critic",))
            grads = own_gradients(rank, step)
            story.step(rank, grads, optimizer=1, site=tell.site(9), wraps=(), modules=("Generator",))
    hit = story.observation("GRAD001").hits[0]
    assert "different gradients at 4 of 8 compared steps" in hit.message
    assert "It trains `Generator`, which is in no wrapper: `train.py:8` wraps `Net`." in hit.message
    assert "`generator = DistributedDataParallel(generator)`" in hit.hint
    assert [place.line for place in hit.where] == [5, 9]


WRAPPED_LATE = """import torch
from torch.nn.parallel import DistributedDataParallel

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in warm_up:
    criterion(model(x), y).backward()
    optimizer.step()
model = DistributedDataParallel(model)
"""


def test_steps_before_the_model_is_wrapped(tell: Any) -> None:
    story = tell.Story()
    story.text = WRAPPED_LATE
    story.group()
    for rank in range(2):
        for step in range(4):
            if step == 2 and not rank:
                story.wrap(line=9)
            grads = own_gradients(rank, step) if step < 2 else (1.0, 2.0, 3.0)
            story.step(rank, grads, site=tell.site(8), wraps=(), modules=("Net",))
    hit = story.observation("GRAD001").hits[0]
    assert "`train.py:9` wraps the model only after that" in hit.message
    assert "in no wrapper" not in hit.message
    assert hit.hint.startswith("Move the wrapper from `train.py:9` above the first step")
    assert "`train.py:5`" in hit.hint
    assert hit.where[0].line == 9


LOSS_THAT_LEARNS = """from itertools import chain

import torch
from torch.nn.parallel import DistributedDataParallel


class Margin(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.margin = torch.nn.Parameter(torch.zeros(2))


net = torch.nn.Linear(8, 2)
model = DistributedDataParallel(net)
criterion = Margin()
optimizer = torch.optim.SGD({given}, lr=0.1)
for x, y in loader:
    criterion(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "given",
    [
        "chain(model.parameters(), criterion.parameters())",
        '[{"params": net.parameters()}, {"params": criterion.parameters(), "lr": 0.01}]',
        "list(net.parameters()) + list(criterion.parameters())",
    ],
)
def test_a_loss_with_parameters_beside_the_wrapped_model(tell: Any, given: str) -> None:
    hit = outside(tell, LOSS_THAT_LEARNS.replace("{given}", given))
    assert (
        "`fc.bias` lies outside of the model that `train.py:14` wraps, in what `train.py:15`" in hit.message
    )
    assert (
        "above `train.py:16`: `criterion = DistributedDataParallel(criterion)`; or make it a part" in hit.hint
    )
    assert [w.line for w in hit.where] == [15, 19]


def test_a_parameter_beside_the_wrapped_model(tell: Any) -> None:
    hit = outside(tell, LOSS_THAT_LEARNS.replace("{given}", "[*model.parameters(), scale]"))
    assert "`fc.bias` lies outside of the model that `train.py:14` wraps: DDP never averages" in hit.message
    assert hit.hint.startswith("Put what holds it into a wrapper of its own, or make it a part of the model")


def outside(tell: Any, text: str) -> Any:
    """One optimizer steps a wrapped model, whose gradients are equal, and a tensor that is not in it."""
    story = tell.Story()
    story.text = text
    story.group()
    story.wrap(line=14)
    for rank in range(2):
        for _step in range(4):
            story.step(rank, (1.0, 2.0, 3.0 + rank), site=tell.site(19), wraps=(0,), modules=("Net",))
        story.final(rank, (1.0, 2.0), ("conv.weight", "fc.weight"))
    return story.observation("GRAD001").hits[0]


UNFROZEN = """import torch
from torch.nn.parallel import DistributedDataParallel


def set_trainable(module, on):
    for p in module.parameters():
        p.requires_grad_(on)


net = Net()
set_trainable(net.fc, False)
model = DistributedDataParallel(net)
for step, (x, y) in enumerate(loader):
    if step == 2:
        set_trainable(model.module.fc, True)
    criterion(model(x), y).backward()
    optimizer.step()
"""


def test_parameters_unfrozen_after_the_wrap(tell: Any) -> None:
    story = tell.Story()
    story.text = UNFROZEN
    story.group()
    story.wrap(line=12)
    for rank in range(2):
        for step in range(4):
            grads = (1.0, 2.0, 3.0 + rank) if step >= 2 else (1.0, 2.0, None)
            story.step(rank, grads, site=tell.site(17), wraps=(0,), modules=("Net",))
        story.ranks[rank].event("changed", wrap=0, added=["fc.bias"], thawed=["fc.bias"])
        story.final(rank, (1.0, 2.0), ("conv.weight", "fc.weight"))
    hit = story.observation("GRAD001").hits[0]
    assert "`fc.bias` required no gradient when it was wrapped" in hit.message
    assert "before `train.py:12` wraps" in hit.hint
    assert "right after `train.py:15` switches them on" in hit.hint
    assert hit.where[0].line == 15


REPLACED = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(net{argument})
{hook}
for x, y in loader:
    loss = criterion(model(x), y)
    {backward}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("parts", "line", "advice"),
    [
        (
            {"argument": ", process_group=own_group()"},
            6,
            "Leave out `process_group=own_group()` at `train.py:6`",
        ),
        (
            {"hook": "model.register_comm_hook(None, compress)"},
            7,
            "Leave out `model.register_comm_hook(None, compr",
        ),
        (
            {"backward": "grads = torch.autograd.grad(loss, weights)"},
            10,
            "Call `backward()` on the loss in the pl",
        ),
    ],
)
def test_what_takes_the_place_of_the_exchange_is_left_out(
    tell: Any, parts: dict[str, str], line: int, advice: str
) -> None:
    story = tell.Story()
    story.text = REPLACED.format(**{"argument": "", "hook": "", "backward": "loss.backward()"} | parts)
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    (hit,) = story.observation("GRAD001").hits
    assert hit.where[0].line == line
    assert hit.hint.startswith(advice)


def test_a_step_under_no_sync(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    for rank in range(2):
        for step in range(6):
            synced = step % 2 == 1
            story.step(rank, (1.0 + (0.0 if synced else rank), 2.0, float(step)), synced=synced)
    look = story.observation("GRAD001")
    assert look.state is FLAGGED
    assert "`no_sync()`" in look.hits[0].hint


TAIL = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
ddp = DistributedDataParallel(network)
for number, (x, y) in enumerate(loader):
    ends = (number + 1) % 2 == 0 or number == len(loader) - 1
    with nullcontext() if number % 2 == 1 else ddp.no_sync():
        criterion(ddp(x), y).backward()
    if ends:
        optimizer.step()
        optimizer.zero_grad()
"""


def tail(tell: Any, apart_from: int, backwards: int = 1) -> Any:
    """Six steps, the fourth of them after passes inside `no_sync()` that the run does not look at."""
    story = tell.Story()
    story.text = TAIL
    story.wrap()
    for rank in range(2):
        for n in range(6):
            held = n == 3
            grads = None if held else (1.0, 2.0, float(n))
            counted = {"backwards": backwards, "unsynced": 1} if held else {"backwards": 2, "unsynced": 1}
            story.step(rank, grads, synced=not held, **counted)
            if not held:
                story.params(rank, n, (1.0 + (0.5 * rank if n >= apart_from else 0.0), 2.0, 3.0))
    return story


def test_a_step_under_no_sync_that_was_not_looked_at(tell: Any) -> None:
    (hit,) = tail(tell, 4).observation("GRAD001").hits
    assert hit.where[0].line == 8
    assert "took 1 of 6 steps after backward passes that all ran inside `no_sync()`" in hit.message
    assert hit.hint.startswith("Leave `no_sync()` in just those rounds that step")


@pytest.mark.parametrize(("apart_from", "backwards"), [(9, 1), (1, 1), (5, 1), (4, 2)])
def test_replicas_that_part_elsewhere_are_not_laid_to_it(tell: Any, apart_from: int, backwards: int) -> None:
    assert tail(tell, apart_from, backwards).observation("GRAD001").state is CLEAN


STARTED = """\
import torch.distributed as dist
from torch.utils.data import DataLoader

class Reducer:
    def __init__(self, network):
        self.pending = []
        for parameter in network.parameters():
            parameter.register_post_accumulate_grad_hook(self.send)

    def send(self, parameter):
        self.pending.append(dist.all_reduce(parameter.grad, async_op=True))

    def finish(self):
        for work in self.pending:
            work.wait()
        self.pending.clear()

dist.init_process_group("gloo")
reducer = Reducer(network)
loader = DataLoader(data, sampler=sampler)
for x, y in loader:
    optimizer.zero_grad()
    criterion(network(x), y).backward()
    optimizer.step()
    reducer.finish()
"""


def test_an_exchange_that_is_waited_for_below_the_step(tell: Any) -> None:
    story = tell.Story()
    story.text = STARTED
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    (hit,) = story.observation("GRAD001").hits
    assert [w.line for w in hit.where][:3] == [25, 11, 24]
    assert "waits for its end below the step at `train.py:24`" in hit.message
    assert hit.hint.startswith("Move `reducer.finish()` from `train.py:25` right behind `criterion")


def test_two_optimizers_one_after_the_other_step_on_other_parameters(tell: Any) -> None:
    """A head that is trained alone, and then all of it: as many gradients as there are parameters in each."""
    story = tell.honest(epochs=3)
    random = Random(0)
    for step in {s.n for r in story.ranks for s in r.fields["steps"]}:
        number = 2 if step < 12 else 3
        own = [tuple(random.gauss(0, 1) for _ in range(number)) for _ in story.ranks]
        mean = tuple(sum(column) / len(own) for column in zip(*own, strict=True))
        for r, mine in zip(story.ranks, own, strict=True):
            r.fields["steps"] = [
                replace(s, own=mine, own_last=mine, grads=mean, grad_names=s.grad_names[:number]) if s.n == step else s
                for s in r.fields["steps"]
            ]  # fmt: skip
    assert story.observation("GRAD001").state is CLEAN


def muted(tell: Any, factor: Callable[[int, int], float], text: str = "", **changed: Any) -> Any:
    """Averaged gradients of which those of rank 1 are multiplied, parameter by parameter (factor of step and it)."""
    story = tell.honest(epochs=4)
    story.text = text or story.text
    random = Random(0)
    for step in sorted({s.n for r in story.ranks for s in r.fields["steps"]}):
        own = [[random.gauss(0, 1) for _ in range(3)] for _ in story.ranks]
        own[1] = [factor(step, n) * x for n, x in enumerate(own[1])]
        mean = tuple(sum(column) / len(own) for column in zip(*own, strict=True))
        for r, mine in zip(story.ranks, own, strict=True):
            other = {name: one(step) for name, one in changed.items()} if r.rank else {}
            r.fields["steps"] = [
                replace(s, own=tuple(mine), own_last=tuple(mine), grads=mean, **other) if s.n == step else s
                for s in r.fields["steps"]
            ]
    return story


@pytest.mark.parametrize(
    ("factor", "seen"),
    [(1e-5, "times as large as those of rank 0"), (0.0, "computed were zero, unlike those of rank 0")],
)
def test_a_rank_whose_gradients_are_next_to_nothing(tell: Any, factor: float, seen: str) -> None:
    text = """
import torch.distributed as dist
dist.init_process_group("gloo")
for x, y in loader:
    loss = criterion(model(x), y)
    loss = loss * (dist.get_rank() == 0)
    loss.backward()
    optimizer.step()
"""
    story = muted(tell, lambda n, p: factor, text, loss=lambda n: factor)
    (hit,) = story.observation("GRAD001").hits
    assert seen in hit.message
    assert hit.ranks == (1,)


def test_the_line_that_makes_them_small_is_named(tell: Any) -> None:
    text = """
import torch.distributed as dist
dist.init_process_group("gloo")
weight = 2.0 if dist.get_rank() == 0 else 1e-5
for x, y in loader:
    logits = model(x)
    logits.register_hook(lambda gradient: gradient * weight)
    criterion(logits, y).backward()
    optimizer.step()
"""
    (hit,) = muted(tell, lambda n, p: 1e-5, text).observation("GRAD001").hits
    assert "`train.py:7` makes what goes backward depend on the rank: `gradient * weight`" in hit.message
    assert [w.line for w in hit.where] == [7]


def test_a_rank_that_is_muted_once_nobody_looks_often(tell: Any) -> None:
    story = muted(tell, lambda n, p: 1.0 if n < 7 else 1e-3)
    (hit,) = story.observation("GRAD001").hits
    assert "At 17 of 24 steps that were looked at" in hit.message


@pytest.mark.parametrize(
    ("factor", "changed"),
    [
        pytest.param(lambda n, p: 1 / 31, {"samples": lambda n: 1}, id="weighted by few samples"),
        pytest.param(lambda n, p: 1.0, {"samples": lambda n: 1}, id="the mean of few samples"),
        pytest.param(
            lambda n, p: 1e-3 if n > 8 else 1.0, {"loss": lambda n: 1e-3}, id="it has learned its samples"
        ),
        pytest.param(lambda n, p: 0.0 if p else 1.0, {}, id="experts that it does not use"),
        pytest.param(lambda n, p: 0.0 if n % 2 else 1.0, {}, id="nothing left to compute at times"),
        pytest.param(lambda n, p: 1 / 4, {}, id="another size of losses"),
    ],
)
def test_gradients_that_are_smaller_for_a_reason(tell: Any, factor: Any, changed: dict[str, Any]) -> None:
    assert muted(tell, factor, **changed).observation("GRAD001").state is CLEAN


def test_one_rank_trains_alone(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(96)})
    look = story.observation("GRAD001")
    assert look.state is FLAGGED
    assert "Rank 0 took all 12 optimizer steps" in look.hits[0].message


def test_a_rank_that_serves_is_not_missed(tell: Any) -> None:
    story = tell.Story(world_size=3)
    shards = tell.strided(96, 2)
    story.epoch({1: shards[0], 2: shards[1]}, num_replicas=2)
    assert story.observation("GRAD001").state is CLEAN


def test_sharded_parameters_are_not_judged(tell: Any) -> None:
    story = tell.Story()
    story.wrap("fsdp2")
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    for rank in range(2):
        story.final(rank, (1.0, 2.0, float(rank)), sharded=True)
    assert {story.observation(c).state for c in ("GRAD001", "GRAD002", "GRAD007")} == {UNSEEN}


def test_gradients_that_are_missing_on_both_ranks_prove_nothing(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.step(rank, (None, None, None))
    assert story.observation("GRAD001").state is UNSEEN


# ---- GRAD002 -----------------------------------------------------------------------------------------------------


def test_training_through_the_wrapper(tell: Any) -> None:
    assert tell.honest().observation("GRAD002").state is CLEAN


def test_training_through_the_inner_module(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    for rank in range(2):
        story.ranks[rank].event("bypass", 23, wrap=0, n=0)
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    look = story.observation("GRAD002")
    assert look.state is FLAGGED
    assert "`train.py:23` calls it" in look.hits[0].message
    assert [p.line for p in look.hits[0].where] == [23, 8]


CLOSURE = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def make_step(network, optimizer):
    def step(x, y):
        loss = criterion(network(x), y)
        loss.backward()
        optimizer.step()
    return step

def main():
    dist.init_process_group("gloo")
    net = torch.nn.Linear(4, 2)
    step = make_step(net, optimizer)
    model = DistributedDataParallel(net)
    for x, y in loader:
        step(x, y)

main()
"""
OBJECT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

class Trainer:
    def __init__(self, network):
        self.network = network

    def step(self, x, y):
        criterion(self.network(x), y).backward()
        optimizer.step()

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 2)
trainer = Trainer(model)
model = DistributedDataParallel(model)
for x, y in loader:
    trainer.step(x, y)
"""
MOVED = CLOSURE.replace("    step = make_step(net, optimizer)\n", "").replace(
    "    for x, y", "    step = make_step(net, optimizer)\n    for x, y"
)
TRIED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def step(network, x, y):
    loss = criterion(network(x), y)
    loss.backward()
    return loss

dist.init_process_group("gloo")
net = torch.nn.Linear(4, 2)
first = step(net, x, y)
model = DistributedDataParallel(net)
for x, y in loader:
    step(model.module, x, y)
"""


@pytest.mark.parametrize(
    ("text", "line", "handed", "hint"),
    [
        (CLOSURE, 7, 15, "below the wrapper at `train.py:16`, and give it `model` in place of `net`."),
        (OBJECT, 10, 15, "below the wrapper at `train.py:16`: `model` is the wrapper there."),
        (MOVED, 7, 7, "Call the wrapped model, `model(x)`, in training"),
        (TRIED, 6, 6, "Call the wrapped model, `model(x)`, in training"),
    ],
)
def test_a_network_that_was_handed_on_before_it_was_wrapped(
    tell: Any, text: str, line: int, handed: int, hint: str
) -> None:
    story = tell.Story()
    story.text = text
    story.wrap()
    for rank in range(2):
        story.ranks[rank].event("bypass", line, wrap=0, n=0)
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    (hit,) = story.observation("GRAD002").hits
    assert hit.where[0].line == handed
    assert hint in hit.hint


def test_a_method_of_the_inner_module_that_is_called_on_its_wrapper(tell: Any) -> None:
    story = tell.Story()
    story.text = (FIXTURES / "GRAD002" / "flagged_method_found_by_getattr.py").read_text()
    story.wrap()
    for rank in range(2):
        story.ranks[rank].event("bypass", 17, wrap=0, n=0)
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    (hit,) = story.observation("GRAD002").hits
    assert [p.line for p in hit.where[:3]] == [33, 21, 17]
    assert "`train.py:33` calls `training_step` on the wrapper, which has none" in hit.message
    assert "write `self.model(batch)` at `train.py:33`" in hit.hint


def test_an_inner_call_whose_gradients_are_averaged_by_hand(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.ranks[0].event("bypass", 23, wrap=0, n=0)
    story.epoch(tell.strided(96, 2))
    assert story.observation("GRAD002").state is CLEAN


def test_without_a_wrapper_there_is_nothing_to_go_around(tell: Any) -> None:
    story = tell.Story()
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    assert story.observation("GRAD002").state is UNSEEN


def test_one_rank_alone_goes_around(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.ranks[1].event("bypass", 23, wrap=0, n=0)
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    assert story.observation("GRAD002").hits[0].ranks == (1,)


# ---- GRAD003 -----------------------------------------------------------------------------------------------------


def test_data_parallel_in_place_of_ddp(tell: Any) -> None:
    story = tell.Story()
    story.wrap("data_parallel")
    story.epoch(tell.strided(96, 2), grads=own_gradients)
    look = story.observation("GRAD003")
    assert look.state is FLAGGED
    assert "knows nothing of the other ranks" in look.hits[0].message


def test_data_parallel_inside_ddp(tell: Any) -> None:
    story = tell.Story()
    story.wrap("data_parallel")
    story.wrap("ddp")
    story.epoch(tell.strided(96, 2))
    assert "inside DDP" in story.observation("GRAD003").hits[0].message


def test_ddp_alone(tell: Any) -> None:
    assert tell.honest().observation("GRAD003").state is CLEAN


def test_data_parallel_that_nobody_trained(tell: Any) -> None:
    story = tell.Story()
    story.wrap("data_parallel")
    assert story.observation("GRAD003").state is UNSEEN


# ---- GRAD007 -----------------------------------------------------------------------------------------------------


def test_equal_replicas(tell: Any) -> None:
    assert tell.honest().observation("GRAD007").state is CLEAN


def test_a_checkpoint_loaded_on_one_rank_after_the_wrap(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    for rank in range(2):
        for n in range(3):
            story.params(rank, n, (1.0 + rank, 2.0, 3.0))
    look = story.observation("GRAD007")
    assert look.state is FLAGGED
    assert "after step 0" in look.hits[0].message
    assert "3 of 3 compared steps" in look.hits[0].message


def with_drawn(tell: Any, *drawn: dict[str, float | None]) -> Any:
    """Replicas that are equal in what stands for all; of each rank what it held of the weights drawn beside."""
    story = tell.honest()
    for rank, held in enumerate(drawn):
        story.params(rank, 3, (1.0, 2.0, 3.0), held)
    return story


def test_weights_that_were_drawn_for_one_look(tell: Any) -> None:
    apart = with_drawn(tell, {"stem.weight": 0.5, "wide[0:8]": 7.0}, {"stem.weight": 0.5, "wide[0:8]": 7.5})
    look = apart.observation("GRAD007")
    assert look.state is FLAGGED
    assert "after step 3 (`wide[0:8]`: sum 7.0 against 7.5)" in look.hits[0].message
    equal = with_drawn(tell, {"stem.weight": 0.5}, {"stem.weight": 0.5})
    assert equal.observation("GRAD007").state is CLEAN


def test_weights_that_were_drawn_on_one_rank_alone_are_not_compared(tell: Any) -> None:
    # Parameters of a rank's own have other names, and what is drawn of them is another one.
    story = with_drawn(tell, {"adapter_0.weight": 0.5, "stem.weight": 0.1}, {"adapter_1.weight": 0.7})
    assert story.observation("GRAD007").state is CLEAN


def test_a_large_sum_that_was_drawn_does_not_blunt_the_others(tell: Any) -> None:
    story = tell.honest()
    for rank in range(2):
        story.params(rank, 3, (1.0, 2.0, 3.0 + 1e-3 * rank), {"scales": 1e6})
    look = story.observation("GRAD007")
    assert look.state is FLAGGED
    assert "`fc.bias`" in look.hits[0].message
    noise = with_drawn(tell, {"stem.weight": 1e-9}, {"stem.weight": 2e-9})
    assert noise.observation("GRAD007").state is CLEAN


def test_one_layer_clamped_on_one_rank(tell: Any) -> None:
    # The sampled tensors agree; another one differs at the end.
    story = tell.honest()
    for rank in range(2):
        story.ranks[rank].fields["finals"].clear()
        story.final(rank, (1.0, 2.0, 3.0, 4.0 + rank), (*tell.names, "head.weight"))
    look = story.observation("GRAD007")
    assert look.state is FLAGGED
    assert "`head.weight`" in look.hits[0].message


BY_HAND = """import torch
import torch.distributed as dist

def start_equal(model):
    for tensor in list(model.parameters()) + list(model.buffers()):
        dist.broadcast(tensor, 0)

def exchange(model):
    for p in model.parameters():
        work = dist.all_reduce(p.grad, async_op=True)
    work.wait()

model = torch.nn.Linear(2, 2)
start_equal(model)
for x, y in loader:
    model(x).sum().backward()
    exchange(model)
    optimizer.step()
"""


def test_weights_that_the_script_sends_itself(tell: Any) -> None:
    """Nobody is told to send what is sent already; what came after it is named where the text shows it."""
    story = tell.honest()
    story.ranks[0].fields["wraps"] = story.ranks[1].fields["wraps"] = []
    for rank in range(2):
        story.ranks[rank].fields["finals"].clear()
        story.final(rank, (1.0, 2.0, 3.0, 4.0 + rank), (*tell.names, "head.weight"))
    story.text = BY_HAND
    hit = story.observation("GRAD007").hits[0]
    assert "`train.py:11`, `work.wait()`, waits for one of them alone" in hit.message
    assert [place.line for place in hit.where] == [11, 10]
    story.text = BY_HAND.replace(", async_op=True", "").replace("    work.wait()\n", "")
    hit = story.observation("GRAD007").hits[0]
    assert "`train.py:6` made the replicas equal once" in hit.message
    assert "Nothing keeps the replicas equal" not in hit.message
    assert "wrap" not in hit.hint


RATE_OF_RANK = """import torch
import torch.distributed as dist
def make(model):
    lr = 0.1 * dist.get_rank()
    return torch.optim.SGD(model.parameters(), lr=lr)
"""


@pytest.mark.parametrize(("second", "named"), [((0.0,), True), ((0.1,), False)])
def test_ranks_that_step_with_rates_of_their_own(tell: Any, second: tuple[float, ...], named: bool) -> None:
    story = tell.Story()
    story.wrap()
    story.text = RATE_OF_RANK
    for rank, rates in enumerate(((0.1,), second)):
        story.step(rank, (1.0, 0.5, 1e-9), lr=rates)
        story.params(rank, 0, (1.0 + rank, 2.0, 3.0))
    (hit,) = story.observation("GRAD007").hits
    assert ("rank 0 stepped with a learning rate of 0.1 and rank 1 with 0" in hit.message) is named
    assert ("`train.py:4` makes it of the rank: `0.1 * dist.get_rank()`" in hit.message) is named
    assert (hit.where[0].line == 4) is named


def test_different_initial_weights_that_the_wrap_made_equal(tell: Any) -> None:
    # The seeds of the ranks differ, so what counts is how parameters are after the wrap.
    story = tell.Story()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    for rank in range(2):
        story.params(rank, 0, (1.0, 2.0, 3.0))
    assert story.observation("GRAD007").state is CLEAN


def test_the_best_weights_loaded_on_rank_0_when_training_is_over(tell: Any) -> None:
    story = tell.honest()
    story.ranks[0].fields["finals"].clear()
    story.final(0, (0.9, 1.8, 2.9))
    assert story.observation("GRAD007").state is CLEAN


def test_ranks_that_stopped_at_different_steps_are_not_compared(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    story.epoch({0: shards[0], 1: shards[1][:16]}, exhausted=None)
    story.ending = Ending.CRASHED
    for rank in range(2):
        story.final(rank, (1.0, 2.0, 3.0 + rank))
    assert story.observation("GRAD007").state is UNSEEN


SLOTS = """import torch
import torch.distributed as dist

flat = torch.cat([p.grad.flatten() for p in model.parameters()])
slots = [torch.empty_like(flat)] * dist.get_world_size()
dist.all_gather(slots, flat)
"""


def test_gradients_that_are_gathered_into_one_tensor(tell: Any) -> None:
    story = tell.honest(epochs=4)
    story.text = SLOTS
    random = Random(0)
    for number in range(len(story.ranks[0].fields["steps"])):
        own = [tuple(random.gauss(0, 1) for _ in range(3)) for _ in story.ranks]
        for r, mine in zip(story.ranks, own, strict=True):
            step = r.fields["steps"][number]
            r.fields["steps"][number] = replace(step, own=mine, own_last=mine, grads=own[1])
    for r in story.ranks:
        first = Collective("all_gather", tell.site(6), 1, 3, "", 0.0, 0.001)
        r.fields["collectives"] = [first, replace(first, n=len(r.fields["steps"]), t=1e6)]
    (hit,) = story.observation("GRAD001").hits
    assert "what rank 0 had computed has a share of 0%" in hit.message
    assert "`train.py:6` exchanges them with `all_gather`" in hit.message
    assert hit.hint.startswith(
        "The slots that `train.py:5` makes are all one tensor. Make a tensor for each slot"
    )
    assert [place.line for place in hit.where] == [5, 6]


# ---- GRAD001, of steps that were taken again ---------------------------------------------------------------------


def audited(tell: Any, *steps: tuple[tuple[float, ...], float]) -> Any:
    """Averaged gradients, and what taking some steps again led to: shares by rank, and what came of none."""
    story = muted(tell, lambda step, parameter: 1.0)
    fair = (0.5, 0.5)
    found = tuple(AuditedStep(4 * n, 0, shares, fair, left) for n, (shares, left) in enumerate(steps))
    story.evaluation = Evaluation(None, audited=found)
    return story


def test_samples_that_have_no_part_in_what_is_stepped_on(tell: Any) -> None:
    story = audited(tell, ((0.52, 0.48), 0.1), *[((0.97, 0.03), 0.2)] * 4)
    (hit,) = story.observation("GRAD001").hits
    assert hit.message.startswith("Of 5 steps that were taken again, ")
    assert "4 led elsewhere" in hit.message
    assert "rank 1 drew has a share of 3% at most. In an average of 2 it is 50%." in hit.message
    assert hit.ranks == (1,)


def test_ranks_that_go_alone_in_turn_are_told(tell: Any) -> None:
    story = audited(tell, ((0.0, 1.0), 0.1), ((1.0, 0.0), 0.1), ((0.0, 1.0), 0.1), ((0.5, 0.5), 0.1))
    (hit,) = story.observation("GRAD001").hits
    assert "one of the ranks drew has a share of 0% at most" in hit.message
    assert hit.ranks == (0, 1)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([((0.97, 0.03), 0.9)] * 5, id="nothing explains what is stepped on"),
        pytest.param([((0.97, 0.03), 0.1)] * 2, id="too few steps"),
        pytest.param([((0.97, 0.03), 0.1)] * 3 + [((0.5, 0.5), 0.1)] * 4, id="seldom"),
        pytest.param([((0.7, 0.3), 0.6)] * 5, id="unequal parts"),
        pytest.param([], id="none was taken again"),
    ],
)
def test_steps_that_were_taken_again_and_show_nothing(tell: Any, steps: list[Any]) -> None:
    assert audited(tell, *steps).observation("GRAD001").state is CLEAN


def test_of_steps_that_ranks_took_for_themselves_nothing_is_expected(tell: Any) -> None:
    story = audited(tell, *[((1.0, 0.0), 0.1)] * 5)
    for r in story.ranks:  # weights are averaged afterwards
        r.fields["steps"] = [replace(s, grads=s.own) for s in r.fields["steps"]]
    hits = story.observation("GRAD001").hits
    assert not any("taken again" in hit.message for hit in hits)
