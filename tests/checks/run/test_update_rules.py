"""GRAD rules about what happens to gradients between backward and step, over runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.diagnosis import diagnose
from grader.checks.policy import apply_rules
from grader.checks.rule import load_rules
from grader.checks.run.models.first_difference import GRADIENTS
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.line_change import LineChange
from grader.model.run import Ending
from grader.model.trace import Collective, Wrap

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE

ACCUMULATES = """
import torch.distributed as dist

for i, (x, y) in enumerate(batches):
    optimizer.zero_grad()
    (cross_entropy(model(x), y) / 2).backward()
    if (i + 1) % 2 == 0:
        optimizer.step()
"""
DIVIDED_BY_RANKS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
world = dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(batches):
    (torch.nn.functional.cross_entropy(model(x), y) / world).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
SUMS = """
import torch
import torch.distributed as dist
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
"""


def steps(story: Any, num: int = 6, **fields: Any) -> Any:
    for rank in range(story.world_size):
        for n in range(num):
            story.step(rank, (1.0, 2.0, float(n)), **fields)
    return story


def searching(story: Any) -> Any:
    """DDP with `find_unused_parameters=True`, three tensors inside."""
    for r in story.ranks:
        inside = (1000, 3, 4000, 0, 0, 0, ("cpu",), None, True, True)
        r.add("wraps", Wrap(0, "ddp", story.tell.site(8), "Net", *inside, r.tick()))
    return story


def test_steps_that_a_graph_replays_are_not_taken_for_those_that_were_seen(tell: Any) -> None:
    """What is seen of warming up says nothing of the replays, for the script or against it."""
    rules = [rule for rule in load_rules() if rule.code in ("DATA001", "DIST001", "GRAD002")]
    story = tell.honest()
    seen = [rule.observe(story.evidence()) for rule in rules]
    assert [one and one.state for one in seen] == [CLEAN] * 3
    for rank in story.ranks:
        rank.event("captured", what="step")
    seen = [rule.observe(story.evidence()) for rule in rules]
    assert [one and one.state for one in seen] == [UNSEEN, CLEAN, UNSEEN]
    assert seen[0] is not None
    assert "CUDA graph" in seen[0].reason


# ---- GRAD004 -----------------------------------------------------------------------------------------------------


def test_every_micro_batch_exchanges(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    look = steps(story, backwards=4, unsynced=0).observation("GRAD004")
    assert look.state is FLAGGED
    assert "4 backward passes for each step in `train.py:25`" in look.hits[0].message
    assert "24 exchanges for 6 steps" in look.hits[0].message


def test_micro_batches_held_back(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    assert steps(story, backwards=4, unsynced=3).observation("GRAD004").state is CLEAN


def test_one_backward_pass_per_step(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    assert steps(story, backwards=1, unsynced=0).observation("GRAD004").state is CLEAN


def test_no_sync_entered_too_late(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.ranks[0].event("no_sync", 22, op="enter", wrap=0)
    look = steps(story, backwards=2, unsynced=0).observation("GRAD004")
    assert "too late" in look.hits[0].message


def test_two_optimizers_that_take_turns_are_not_judged(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    steps(story, 3, backwards=2, unsynced=0)
    assert steps(story, 3, backwards=2, unsynced=0, optimizer=1).observation("GRAD004").state is UNSEEN


def test_without_ddp_nothing_is_exchanged(tell: Any) -> None:
    assert steps(tell.Story(), backwards=4, unsynced=0, synced=None).observation("GRAD004").state is UNSEEN


# ---- GRAD005 -----------------------------------------------------------------------------------------------------


def test_a_search_that_finds_nothing(tell: Any) -> None:
    story = tell.Story()
    story.tell = tell
    look = steps(searching(story), num_params=3, num_missing=0).observation("GRAD005")
    assert look.state is FLAGGED
    assert "all 3 tensors had a gradient at each of the 12 steps" in look.hits[0].message


def test_a_search_that_finds_something(tell: Any) -> None:
    story = tell.Story()
    story.tell = tell
    steps(searching(story), 5, num_params=3, num_missing=0)
    assert steps(story, 1, num_params=3, num_missing=1).observation("GRAD005").state is CLEAN


def test_a_search_over_more_than_the_optimizer_holds(tell: Any) -> None:
    story = tell.Story()
    story.tell = tell
    assert steps(searching(story), num_params=2, num_missing=0).observation("GRAD005").state is UNSEEN


def test_no_search(tell: Any) -> None:
    assert tell.honest().observation("GRAD005").state is CLEAN


# ---- GRAD006 -----------------------------------------------------------------------------------------------------


def test_gradients_that_nobody_clears(tell: Any) -> None:
    look = steps(tell.Story(), empty=0, kept=("conv.weight", "fc.weight", "fc.bias")).observation("GRAD006")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert "`train.py:25` steps with sums over all batches so far" in look.hits[0].message


CLEARS_ONE_LAYER = """import torch

for x, y in batches:
    for p in model.fc.parameters():
        p.grad = None
    cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def test_gradients_of_some_layers_that_nobody_clears(tell: Any) -> None:
    story = steps(tell.Story(), empty=0, kept=("conv.weight",))
    story.text = CLEARS_ONE_LAYER
    hit = story.observation("GRAD006").hits[0]
    assert hit.severity is Severity.WARNING
    assert "found those of `conv.weight` still there" in hit.message
    assert hit.where[0].line == 4
    assert "instead of clearing some at `train.py:4`" in hit.hint


def test_zero_grad_without_parentheses(tell: Any) -> None:
    story = steps(tell.Story(), empty=0, kept=("conv.weight", "fc.weight", "fc.bias"))
    story.text = "for x, y in loader:\n    optimizer.zero_grad\n"
    hit = story.observation("GRAD006").hits[0]
    assert hit.hint.startswith("Write `optimizer.zero_grad()` at `train.py:2`: without the parentheses")
    assert hit.where[0].line == 2


def test_gradients_cleared_each_time(tell: Any) -> None:
    assert steps(tell.Story(), empty=1).observation("GRAD006").state is CLEAN


def test_the_rest_of_an_accumulation_is_not_uncleared(tell: Any) -> None:
    assert steps(tell.Story(), empty=1, backwards=4).observation("GRAD006").state is CLEAN


def test_gradients_that_are_zero_by_nature_prove_nothing(tell: Any) -> None:
    assert steps(tell.Story(), empty=0).observation("GRAD006").state is UNSEEN


def test_nobody_looked(tell: Any) -> None:
    assert steps(tell.Story()).observation("GRAD006").state is UNSEEN


CLEARS_EARLY = """import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in batches:
    cross_entropy(model(x), y).backward()
    optimizer.zero_grad()
    optimizer.step()
"""


def without_gradients(tell: Any, text: str, own: tuple[float, ...] | None, grads: Any = (None,) * 3) -> Any:
    story = tell.Story()
    story.text = text
    for rank in range(2):
        for _ in range(5):
            story.step(rank, grads, own=own, backwards=1, num_params=3, num_missing=3)
    return story


@pytest.mark.parametrize("grads", [(None, None, None), (0.0, 0.0, 0.0)])
def test_steps_on_what_was_cleared(tell: Any, grads: Any) -> None:
    story = without_gradients(tell, CLEARS_EARLY, (1.0, 2.0, 3.0), grads)
    hit = story.observation("GRAD006").hits[0]
    assert hit.severity is Severity.ERROR
    assert [place.line for place in hit.where] == [6, 7, 25]
    assert "`train.py:6` clears the gradients after the backward pass" in hit.message
    assert hit.fix is not None
    assert story.observation("GRAD011").state is UNSEEN


def test_steps_on_what_was_cleared_where_only_the_text_can_tell(tell: Any) -> None:
    assert without_gradients(tell, CLEARS_EARLY, None).observation("GRAD006").state is FLAGGED
    assert without_gradients(tell, CLEARS_ONE_LAYER, None).observation("GRAD006").state is UNSEEN


def test_an_optimizer_that_takes_gradients_from_elsewhere(tell: Any) -> None:
    story = without_gradients(tell, CLEARS_ONE_LAYER, (1.0, 2.0, 3.0))
    for rank in range(2):
        for n in range(5):
            story.params(rank, n, (1.0, 2.0, float(n)))
    # Of the first step nobody knows what the weights were before it.
    assert story.observation("GRAD006").state is UNSEEN


SCALED_BY_HAND = """import torch
import torch.distributed as dist

for x, y in loader:
    optimizer.zero_grad()
    (criterion(model(x), y) * 1024).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for p in model.parameters():
        p.grad /= 1024
    optimizer.step()
"""


@pytest.mark.parametrize(("factor", "state"), [(1024.0, FLAGGED), (1.0, CLEAN)])
def test_a_clip_of_what_the_script_scaled_itself(tell: Any, factor: float, state: State) -> None:
    """That gradients were cleared in time says nothing of it; how large the loss went backward does."""
    story = steps(tell.Story(), empty=True)
    story.text = SCALED_BY_HAND
    for rank in story.ranks:
        rank.event("backward", 6, function="NllLoss", reduction="mean", factor=factor)
    look = story.observation("GRAD006")
    assert look.state is state
    if state is FLAGGED:
        assert [place.line for place in look.hits[0].where] == [7, 9]
        assert "1,024 times the mean of `NllLoss`" in look.hits[0].message


# ---- GRAD008 -----------------------------------------------------------------------------------------------------


SHARDS = """import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

fully_shard(model)
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad.to_local(), op=dist.ReduceOp.AVG)
    optimizer.step()
"""


def test_shards_that_are_added_up(tell: Any) -> None:
    story = steps(tell.Story())
    story.text = SHARDS
    assert story.observation("GRAD008").state is UNSEEN
    for rank in (0, 1):
        story.collective(rank, "all_reduce", 9)
    (hit,) = story.observation("GRAD008").hits
    assert (hit.where[0].line, hit.severity) == (9, Severity.ERROR)
    assert "numbers of different weights are mixed" in hit.message


def test_a_sum_of_gradients_that_is_called(tell: Any) -> None:
    story = steps(tell.Story())
    story.text = SUMS
    for r in story.ranks:
        r.add("collectives", Collective("all_reduce", tell.site(12), 12, 16, "SUM", r.tick(), 0.001))
    look = story.observation("GRAD008")
    assert look.state is FLAGGED
    assert "nothing divides by their number" in look.hits[0].message
    assert "called it at least 12 times in 6 steps" in look.hits[0].message


def test_a_sum_of_gradients_that_never_runs(tell: Any) -> None:
    story = steps(tell.Story())
    story.text = SUMS
    assert story.observation("GRAD008").state is UNSEEN


@pytest.mark.parametrize(("factor", "state"), [(1.0, CLEAN), (2.0, FLAGGED)])
def test_a_second_look_at_what_was_stepped_on_outweighs_the_text(
    tell: Any, factor: float, state: State
) -> None:
    story, again = steps(tell.Story()), tell.Story()
    story.text = SUMS
    for r in (*story.ranks, *again.ranks):
        r.add("collectives", Collective("all_reduce", tell.site(12), 12, 16, "SUM", r.tick(), 0.001))
    for r in again.ranks:
        own = (1.0 + 2 * r.rank, 4.0)
        for line, sums in ((10, own), (12, (2.0 * factor, 4.0 * factor))):
            told = LineChange(0, GRADIENTS, 0, tell.site(line), (), ("weight", "bias"), sums, r.tick())
            r.add("line_changes", told)
    check = next(rule for rule in load_rules() if rule.code == "GRAD008").check_run
    assert check is not None
    assert check(replace(story.evidence(), second_look=again.trace())).state is state


def test_ddp_alone_averages(tell: Any) -> None:
    assert tell.honest().observation("GRAD008").state is CLEAN


@pytest.mark.parametrize(
    ("hook", "state"),
    [
        ("__main__.half_bytes", UNSEEN),
        ("torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook", CLEAN),
    ],
)
def test_what_a_hook_of_the_scripts_own_makes_is_no_average_by_ddp(
    tell: Any, hook: str, state: State
) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.event("comm_hook", 9, hook=hook)
    assert story.observation("GRAD008").state is state


SUMMED_LOSS = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
world_size = dist.get_world_size()
model = DDP(torch.nn.Linear(4, 2))
for images, labels in loader:
    total = torch.nn.functional.cross_entropy(model(images), labels, reduction="sum")
    ({loss}).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "factor", "advice"),
    [
        (
            "total / (len(labels) * world_size)",
            1 / 16,
            "Write `len(labels)` instead of `len(labels) * world_size`",
        ),
        ("total / len(labels) * world_size", 2 / 8, "Write `total / len(labels)` instead of"),
        ("total * world_size / (len(labels) * world_size)", 1 / 8, ""),
    ],
)
def test_a_sum_that_is_divided_by_samples_and_ranks(tell: Any, loss: str, factor: float, advice: str) -> None:
    story = tell.Story()
    story.text = SUMMED_LOSS.format(loss=loss)
    story.group()
    story.wrap("ddp")
    for r in story.ranks:
        for _ in range(4):
            r.event("backward", 10, function="NllLoss", reduction="sum", factor=factor)
            story.step(r.rank, (1.0, 2.0), samples=8, backwards=1)
    look = story.observation("GRAD008")
    if not advice:
        assert look.state is CLEAN
        return
    assert look.state is FLAGGED
    assert look.hits[0].where[0].line == 10
    assert look.hits[0].hint.startswith(advice)


@pytest.mark.parametrize(
    ("divisor", "factor", "state"),
    [("4 * world", 1 / 8, FLAGGED), ("4", 1 / 4, CLEAN), ("world", 1 / 2, CLEAN)],
)
def test_micro_batches_that_are_divided_by_the_ranks_as_well(
    tell: Any, divisor: str, factor: float, state: State
) -> None:
    story = tell.Story()
    story.text = DIVIDED_BY_RANKS.replace("/ world)", f"/ ({divisor}))")
    story.group()
    story.wrap("ddp")
    for r in story.ranks:
        for _ in range(4):
            r.event("backward", 9, function="NllLoss", reduction="mean", factor=factor)
            story.step(r.rank, (1.0, 2.0), samples=32, backwards=4)
    look = story.observation("GRAD008")
    assert look.state is state
    if state is FLAGGED:
        assert "went backward as 0.5 times the mean over its batch" in look.hits[0].message


WEIGHED_LOSS = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
loader = torch.utils.data.DataLoader(train_set, batch_size=16 // dist.get_world_size())
for images, labels in loader:
    size = torch.tensor(float(len(labels)))
    dist.all_reduce(size)
    (torch.nn.functional.cross_entropy(model(images), labels, reduction="sum") / size).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    optimizer.step()
"""


def test_a_sum_that_all_ranks_samples_divide_is_averaged_once(tell: Any) -> None:
    story = tell.Story()
    story.text = WEIGHED_LOSS
    story.group()
    for r in story.ranks:
        for _ in range(4):
            r.event("backward", 9, function="NllLoss", reduction="sum", factor=1 / 16)
            story.step(r.rank, (1.0, 2.0), samples=8, backwards=1)
    assert story.observation("GRAD008").state is not FLAGGED


SUM_OVER_ALL_TOKENS = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(net)
for inputs, targets in loader:
    total = torch.nn.functional.cross_entropy(model(inputs), targets, reduction="sum")
    tokens = torch.tensor(targets.numel())
    dist.all_reduce(tokens)
    (total{times} / tokens).backward()
    optimizer.step()
"""


def summed_over_tokens(tell: Any, tokens: tuple[int, int], times: int, kind: str) -> Any:
    """Ranks with so many labels each, of eight samples."""
    story = tell.Story()
    story.text = SUM_OVER_ALL_TOKENS.format(times=" * 2" if times > 1 else "")
    story.group()
    story.wrap("ddp")
    for r in story.ranks:
        for n in range(40):
            factor, mean = times / sum(tokens), 4.0 + r.rank
            r.event("cross_entropies", 0, n=n, means=[mean])
            r.event("backward", 11, function="NllLoss", reduction="sum", factor=factor)
            r.add(
                "collectives", Collective("all_reduce", tell.site(10), n + 1, 1, "SUM", r.tick(), named=True)
            )
            loss = mean * tokens[r.rank] * factor
            story.step(r.rank, (1.0, 2.0), samples=8, backwards=1, loss=loss, kind=kind)
    return story


@pytest.mark.parametrize("tokens", [(512, 512), (300, 512)])
def test_a_sum_over_tokens_that_all_ranks_tokens_and_ddp_divide(tell: Any, tokens: tuple[int, int]) -> None:
    look = summed_over_tokens(tell, tokens, 1, "SGD").observation("GRAD008")
    assert look.state is FLAGGED
    assert look.hits[0].where[0].line == 11
    assert look.hits[0].severity is None
    assert "`total * dist.get_world_size() / tokens`" in look.hits[0].hint
    assert summed_over_tokens(tell, tokens, 2, "SGD").observation("GRAD008").state is CLEAN


def test_an_optimizer_that_adapts_makes_it_a_hint(tell: Any) -> None:
    look = summed_over_tokens(tell, (512, 512), 1, "AdamW").observation("GRAD008")
    assert look.hits[0].severity is Severity.HINT


def test_numbers_that_the_loss_is_divided_by_are_needed_in_each_step(tell: Any) -> None:
    assert summed_over_tokens(tell, (512, 512), 2, "SGD").observation("PERF001").state is not FLAGGED


ADDED_UP_LOSS = """\
import torch
import torch.distributed.nn.functional as collectives
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
for images, labels in loader:
    loss = collectives.all_reduce(torch.nn.functional.cross_entropy(model(images), labels))
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("factor", "state"), [(1.0, FLAGGED), (0.5, CLEAN)])
def test_a_loss_that_gradients_add_up_over_the_ranks(tell: Any, factor: float, state: State) -> None:
    """Where the loss was divided by the number of ranks, the average of gradients leaves their mean."""
    story = tell.Story()
    story.text = ADDED_UP_LOSS
    story.group()
    story.wrap("ddp")
    for r in story.ranks:
        for _ in range(4):
            r.event("backward", 8, function="NllLoss", reduction="mean", factor=factor, summed=2)
            story.step(r.rank, (1.0, 2.0), samples=8, backwards=1)
    look = story.observation("GRAD008")
    assert look.state is state
    if state is FLAGGED:
        assert [place.line for place in look.hits[0].where] == [7, 8]
        assert "adds up the loss over 2 ranks on its way" in look.hits[0].message
        assert "`torch.nn.functional.cross_entropy(model(images), labels)`" in look.hits[0].hint


# ---- GRAD009 -----------------------------------------------------------------------------------------------------


def test_a_layer_that_came_after_the_wrap(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.event("changed", 0, wrap=0, added=["head.weight", "head.bias"], frozen=[], removed=2)
    look = story.observation("GRAD009")
    assert look.state is FLAGGED
    assert "`head.weight` and `head.bias` came later" in look.hits[0].message
    assert "2 tensors that DDP holds were gone" in look.hits[0].message
    assert look.hits[0].where[0].line == 8


def test_a_layer_frozen_after_the_wrap(tell: Any) -> None:
    story = tell.honest()
    story.ranks[0].event("changed", 0, wrap=0, added=[], frozen=["stem.weight"], removed=0)
    assert "`stem.weight` no longer required a gradient" in story.observation("GRAD009").hits[0].message


THAWED = """from torch.nn.parallel import DistributedDataParallel

net.stem.requires_grad_(False)
ctx.model = DistributedDataParallel(net)
for epoch in range(9):
    if epoch == 3:
        net.stem.requires_grad_(True)
    train_one_epoch(ctx)
"""


def test_a_layer_thawed_after_the_wrap(tell: Any) -> None:
    story = tell.honest()
    story.text = THAWED
    story.ranks[0].event(
        "changed", 0, wrap=0, added=["stem.weight"], thawed=["stem.weight"], frozen=[], removed=0
    )
    (hit,) = story.observation("GRAD009").hits
    assert "`stem.weight` required no gradient when it was wrapped, and requires one now" in hit.message
    assert "came later" not in hit.message
    assert "anew right after" in hit.hint
    assert hit.where[0].line == 7


HALVED = """import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = nn.Linear(8, 2)
model = DistributedDataParallel(net)
for epoch in range(9):
    for x, y in batches:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(net.half().state_dict(), "half.pt")
        net.float()
"""


def test_a_model_that_one_rank_converted_to_save_it(tell: Any, only: Any) -> None:
    story = tell.honest()
    story.text = HALVED
    assert story.observation("GRAD009").state is UNSEEN
    story.wait(0, "DDP buffer broadcast", 11)
    story.wait(1, "DDP gradient all-reduce", 11)
    (hit,) = story.observation("GRAD009").hits
    assert [p.line for p in hit.where] == [14]
    assert "those ranks send no gradients, and the others wait for them" in hit.message
    assert "`{name: value.half() for name, value in net.state_dict().items()}`" in hit.hint
    findings, _ = apply_rules(story.evidence(), only("GRAD009", "DIST008", "DIST009"))
    assert [f.code for f in findings if f.severity is Severity.ERROR] == ["GRAD009"]
    told, _ = diagnose(story.evidence(), findings)
    assert told is not None
    assert told.hint == hit.hint


def test_a_model_that_stays_as_it_was_wrapped(tell: Any) -> None:
    assert tell.honest().observation("GRAD009").state is CLEAN


# ---- GRAD010, GRAD015, GRAD017: what DDP says when it stops ------------------------------------------------------


def stopped(tell: Any, kind: str, message: str) -> Any:
    story = tell.Story()
    story.wrap()
    steps(story, 1, num_params=3, num_missing=1, missing=("aux.weight",))
    for r in story.ranks:
        r.event("exception", 0, type=kind, message=message, frames=[["train.py", 23, "main"]])
    story.ending = Ending.CRASHED
    return story


def test_a_gradient_that_never_came(tell: Any) -> None:
    story = stopped(
        tell,
        "RuntimeError",
        "Expected to have finished reduction in the prior iteration before starting a new one. "
        "Parameter indices which did not receive grad for rank 0: 2\n",
    )
    look = story.observation("GRAD010")
    assert look.state is FLAGGED
    assert "`aux.weight` took no part in the loss" in look.hits[0].message
    assert look.hits[0].where[0].line == 23
    assert story.observation("GRAD015").state is UNSEEN


def test_an_attribute_of_the_network(tell: Any) -> None:
    story = stopped(tell, "AttributeError", "'DistributedDataParallel' object has no attribute 'head'")
    look = story.observation("GRAD015")
    assert look.state is FLAGGED
    assert "`model.module.head`" in look.hits[0].hint
    assert story.observation("GRAD010").state is UNSEEN


def test_a_parameter_that_came_twice(tell: Any) -> None:
    story = stopped(
        tell, "RuntimeError", "Expected to mark a variable ready only once. This error is caused by"
    )
    assert story.observation("GRAD017").state is FLAGGED


def test_runs_that_end_well_had_none_of_these(tell: Any) -> None:
    story = tell.honest()
    assert {story.observation(c).state for c in ("GRAD010", "GRAD015", "GRAD017")} == {CLEAN}


# ---- GRAD011 -----------------------------------------------------------------------------------------------------


def test_an_optimizer_that_never_meets_a_gradient(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        for _ in range(4):
            story.step(rank, None, num_params=3, num_missing=3, backwards=1)
    look = story.observation("GRAD011")
    assert look.state is FLAGGED
    assert "stepped 4 times over parameters without a gradient" in look.hits[0].message


BEFORE_SHARDING = """import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = build_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fully_shard(model)
for x, y in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("text", [BEFORE_SHARDING, ""])
def test_an_optimizer_that_was_built_before_the_model_was_sharded(tell: Any, text: str) -> None:
    """The order is told, and no advice is given that the script follows already."""
    story = tell.Story()
    story.text = text
    story.wrap("fsdp2")
    for rank in range(2):
        for _ in range(4):
            story.step(rank, None, num_params=3, num_missing=3, backwards=1)
    hit = story.observation("GRAD011").hits[0]
    assert "shards" in hit.message
    assert "the model that you train" not in hit.hint
    assert "build the optimizer from the result" in hit.hint
    if text:
        assert "`train.py:8` then replaces the model's parameters by shards" in hit.message
        assert "`train.py:7`, which builds the optimizer, below `train.py:8`" in hit.hint
        assert hit.where[0].line == 7


def test_an_optimizer_with_some_frozen_parameters(tell: Any) -> None:
    assert steps(tell.Story(), num_params=5, num_missing=4, backwards=1).observation("GRAD011").state is CLEAN


def test_an_optimizer_whose_model_thaws_later(tell: Any) -> None:
    story = tell.Story()
    steps(story, 4, num_params=3, num_missing=3, backwards=1, optimizer=1)
    assert steps(story, 4, num_params=3, num_missing=0, backwards=1).observation("GRAD011").state is CLEAN


FILTERED = """import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
kept = [p for n, p in model.named_parameters() if p.ndim > 1]
optimizer = torch.optim.SGD(kept, lr=0.1)
"""


def left_out(tell: Any, names: list[str]) -> Any:
    story = steps(tell.honest(), num_params=2, num_missing=0, backwards=1)
    story.text = FILTERED
    for rank in story.ranks:
        rank.event("unheld", wrap=0, names=names)
    return story


def test_parameters_that_an_optimizer_was_not_given(tell: Any) -> None:
    hit = left_out(tell, ["fc.bias"]).observation("GRAD011").hits[0]
    assert hit.message.startswith("1 of the 3 parameters of `Net` gets gradients and is in no group")
    assert hit.severity is Severity.WARNING
    assert [place.line for place in hit.where] == [5, 6]


GROUPED = """import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
slow, fast = [], []
for name, p in model.named_parameters():
    if name.startswith("module.fc"):
        fast.append(p)
    elif name.startswith(("conv", "stem")):
        slow.append(p)
optimizer = torch.optim.SGD([{"params": fast}, {"params": slow, "lr": 0.01}], lr=0.1)
"""


def test_names_that_the_wrapper_has_put_a_word_before(tell: Any) -> None:
    story = left_out(tell, ["conv.weight", "stem.weight"])
    story.text = GROUPED
    hit = story.observation("GRAD011").hits[0]
    assert hit.where[0].line == 9
    assert (
        "holds for none of them: the names of `model.named_parameters()` begin with `module.`" in hit.message
    )
    assert "`name.startswith(('module.conv', 'module.stem'))` at `train.py:9`" in hit.hint
    story.text = GROUPED.replace("in model.named", "in net.named")
    assert "module." not in story.observation("GRAD011").hits[0].hint


REPLACED = """import torch
from torch.nn.parallel import DistributedDataParallel

optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.fc = torch.nn.Linear(8, 2)
model = DistributedDataParallel(net)
"""


def test_a_layer_that_was_replaced_when_the_optimizer_was_built(tell: Any) -> None:
    """What is left of the old one differs from rank to rank and is no replica."""
    names = ("conv.weight", "parameter 1", "parameter 2")
    story = left_out(tell, ["fc.weight", "fc.bias"])
    story.text = REPLACED
    for r in story.ranks:
        r.fields["steps"] = [replace(s, grads=(1.0, None, None), grad_names=names) for s in r.fields["steps"]]
        for n in range(4):
            story.params(r.rank, n, (1.0, 2.0 + r.rank, 3.0 + r.rank))
        r.fields["params"] = [replace(p, names=names) for p in r.fields["params"]]
    assert story.observation("GRAD007").state is CLEAN
    hit = story.observation("GRAD011").hits[0]
    assert [place.line for place in hit.where] == [4, 5]
    assert "holds tensors in their place that no layer has any more" in hit.message
    assert hit.hint.startswith("Build the optimizer below `net.fc = torch.nn.Linear(8, 2)` (`train.py:5`)")


def test_tensors_of_the_scripts_own_are_replicas(tell: Any) -> None:
    names = ("conv.weight", "parameter 1", "parameter 2")
    story = steps(tell.Story())
    for r in story.ranks:
        r.fields["steps"] = [replace(s, grad_names=names) for s in r.fields["steps"]]
        for n in range(4):
            story.params(r.rank, n, (1.0, 2.0 + r.rank, 3.0 + r.rank))
        r.fields["params"] = [replace(p, names=names) for p in r.fields["params"]]
    assert story.observation("GRAD007").state is FLAGGED


def test_loaded_layers_may_be_meant_to_stay_as_they_are(tell: Any) -> None:
    story = left_out(tell, ["conv.weight"])
    assert story.observation("GRAD011").hits[0].severity is Severity.WARNING
    story.ranks[0].event("load", path="resnet.pt", devices=["cpu"])
    assert story.observation("GRAD011").hits[0].severity is Severity.HINT


# ---- GRAD012 -----------------------------------------------------------------------------------------------------


def test_each_micro_batch_begins_from_nothing(tell: Any) -> None:
    story = steps(tell.Story(), empty=2, backwards=2)
    story.text = ACCUMULATES
    look = story.observation("GRAD012")
    assert look.state is FLAGGED
    assert "only the last micro-batch" in look.hits[0].message


def test_an_attack_that_clears_is_not_judged(tell: Any) -> None:
    assert steps(tell.Story(), empty=2, backwards=2).observation("GRAD012").state is UNSEEN


PLAIN = """
import torch
import torch.distributed as dist
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
for x, y in batches:
    torch.nn.functional.cross_entropy(model(x), y).backward()
    {used}
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("lost", "made", "used", "state"),
    [
        (1, "", "", FLAGGED),
        (0, "", "", UNSEEN),  # weights had changed in between: the gradients served for that
        (1, "delta = torch.zeros(8, requires_grad=True)", "", UNSEEN),
        (1, "", "norms.append(model.weight.grad.norm())", UNSEEN),
        (1, "model.weight.register_hook(print)", "", UNSEEN),
        (1, "for p in model.parameters(): p.requires_grad_(True)", "", FLAGGED),
    ],
)
def test_gradients_that_no_step_has_used(tell: Any, lost: int, made: str, used: str, state: State) -> None:
    story = steps(tell.Story(), empty=2, backwards=2, lost=lost)
    story.text = PLAIN.format(made=made, used=used)
    look = story.observation("GRAD012")
    assert look.state is state
    if state is FLAGGED:
        assert "the others were computed for nothing" in look.hits[0].message


def test_batches_that_are_skipped_now_and_then_are_thrown_away_on_purpose(tell: Any) -> None:
    story = steps(steps(tell.Story(), empty=1, backwards=1), num=4, empty=2, backwards=2, lost=1)
    story.text = PLAIN.format(made="", used="")
    assert story.observation("GRAD012").state is UNSEEN


def test_the_text_was_misread(tell: Any) -> None:
    story = steps(tell.Story(), empty=1, backwards=2)
    story.text = ACCUMULATES
    assert story.observation("GRAD012").state is CLEAN


@pytest.mark.parametrize(("factor", "state"), [(0.5, FLAGGED), (0.25, CLEAN)])
def test_micro_batches_divided_by_the_number_of_ranks(tell: Any, factor: float, state: State) -> None:
    # With as many ranks as micro-batches it is the mean.
    story = tell.Story()
    story.text = DIVIDED_BY_RANKS
    story.group()
    story.wrap()
    for rank in story.ranks:
        story.epoch({rank.rank: range(64)}, every=4)
        rank.fields["steps"][:] = [replace(s, empty=1, backwards=4) for s in rank.fields["steps"]]
        rank.event("backward", 9, function="NllLoss", reduction="mean", factor=factor)
    look = story.observation("GRAD012")
    assert look.state is state
    if state is FLAGGED:
        assert "`train.py:9` divides the loss of each micro-batch by `world`" in look.hits[0].message
        assert "went backward as 0.5 of its mean, 2 together" in look.hits[0].message
        assert look.hits[0].hint == "Divide by 4, the number of micro-batches of a step, instead of `world`."


# ---- GRAD018 -----------------------------------------------------------------------------------------------------


def unequal(tell: Any, small: int, num: int = 6) -> Any:
    story = tell.Story()
    for rank in range(2):
        for n in range(num):
            story.step(rank, (1.0, 2.0, float(n)), 64 if rank == 0 else small)
    return story


def test_ranks_with_unequal_batches(tell: Any) -> None:
    look = unequal(tell, 32).observation("GRAD018")
    assert look.state is FLAGGED
    assert "rank 0 on 64, rank 1 on 32" in look.hits[0].message


def test_ranks_with_nearly_equal_batches(tell: Any) -> None:
    assert unequal(tell, 63).observation("GRAD018").state is CLEAN


def test_unequal_batches_that_the_script_weighs(tell: Any) -> None:
    story = unequal(tell, 32)
    story.text = (
        "import torch.distributed as dist\nfor x, y in batches:\n    dist.all_reduce(total)\n"
        "    (loss_of(model(x), y) * len(x) * dist.get_world_size() / total).backward()\n    optimizer.step()\n"
    )
    assert story.observation("GRAD018").state is UNSEEN


def test_a_short_last_batch(tell: Any) -> None:
    story = unequal(tell, 64, 5)
    story.step(0, (1.0, 2.0, 9.0), 60)
    story.step(1, (1.0, 2.0, 9.0), 8)
    assert story.observation("GRAD018").state is CLEAN


# ---- GRAD019 -----------------------------------------------------------------------------------------------------


def with_batchnorm(tell: Any, samples: int, device: str = "cuda") -> Any:
    story = tell.Story()
    story.wrap(devices=(f"{device}:0", f"{device}:1"), num_batchnorm=5)
    for rank in range(2):
        for n in range(4):
            story.step(rank, (1.0, 2.0, float(n)), samples, backwards=1)
    return story


def test_batchnorm_over_two_samples(tell: Any) -> None:
    look = with_batchnorm(tell, 2).observation("GRAD019")
    assert look.state is FLAGGED
    assert "5 BatchNorm layers" in look.hits[0].message


def test_batchnorm_over_many_samples(tell: Any) -> None:
    assert with_batchnorm(tell, 32).observation("GRAD019").state is CLEAN


def kept_to_each_rank(tell: Any, broadcast: bool, text: str = "", reduce: str = "all_reduce") -> Any:
    story = with_batchnorm(tell, 32, "cpu")
    story.text = text or "import torch.distributed as dist\n"
    for r in story.ranks:
        r.fields["wraps"][:] = [replace(w, broadcast_buffers=broadcast) for w in r.fields["wraps"]]
    story.validate(tell.strided(story.num_validation, 2, shuffle=False), reduce=reduce)
    return story.observation("GRAD019")


def test_running_statistics_that_never_meet(tell: Any) -> None:
    look = kept_to_each_rank(tell, False)
    assert look.state is FLAGGED
    [hit] = look.hits
    assert "wraps 5 BatchNorm layers with `broadcast_buffers=False`" in hit.message
    assert "Ranks 0 and 1 scored each part of the validation set with other ones" in hit.message
    assert "for buffer in model.buffers(): dist.broadcast(buffer, src=0)" in hit.hint
    assert kept_to_each_rank(tell, True).state is UNSEEN
    assert kept_to_each_rank(tell, False, reduce="").state is UNSEEN, "no metric of all parts"
    sent = "import torch.distributed as dist\nfor b in net.buffers():\n    dist.broadcast(b, 0)\n"
    assert kept_to_each_rank(tell, False, sent).state is UNSEEN


def test_batchnorm_on_cpus_has_no_cure(tell: Any) -> None:
    assert with_batchnorm(tell, 2, "cpu").observation("GRAD019").state is UNSEEN
