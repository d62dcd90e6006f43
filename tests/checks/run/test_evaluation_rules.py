"""EVAL002 and EVAL004 to EVAL006 over runs: who evaluated, through what, in which mode, over which shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE

AVERAGED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(4, 2))
loader = DataLoader(Subset(val_set, range(rank, len(val_set), world)), batch_size=8)
model.eval()
correct = total = 0
with torch.no_grad():
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
        total += len(y)
accuracy = torch.tensor(correct / total)
dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
"""
GUARDED = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for epoch in range(2):
    train(model)
    if dist.get_rank() == 0:
        for x, y in val_loader:
            model(x)
    dist.barrier()
"""


def trained(tell: Any, num_buffers: int = 0, num_batchnorm: int = 0, num_validation: int = 30) -> Any:
    story = tell.Story(num_validation=num_validation)
    story.group()
    story.wrap()
    for rank in story.ranks:
        told = rank.fields["wraps"][0]
        rank.fields["wraps"][0] = replace(told, num_buffers=num_buffers, num_batchnorm=num_batchnorm)
    story.epoch(tell.strided(96, 2))
    return story


def evaluations(story: Any, **fields: Any) -> None:
    """Says more about the evaluations that were told so far."""
    for rank in story.ranks:
        told = rank.fields.get("others", [])
        rank.fields["others"] = [
            replace(e, fields=e.fields | fields) if e.kind == "evaluation" else e for e in told
        ]


# ---- EVAL002 -----------------------------------------------------------------------------------------------------


def test_an_average_over_shares_of_different_size(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    story.text = AVERAGED
    story.validate(tell.strided(31, 2, shuffle=False, pad=False), reduce="all_reduce")
    look = story.observation("EVAL002")
    assert look.state is FLAGGED
    assert "rank 0: 16, rank 1: 15" in look.hits[0].message
    assert look.hits[0].where[0].line == 17
    assert look.hits[0].severity is None, "measured: no longer a guess"


def test_an_average_over_equal_shares_is_exact(tell: Any) -> None:
    story = trained(tell)
    story.text = AVERAGED
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    assert story.observation("EVAL002").state is CLEAN


def test_an_average_of_roots_is_none_over_equal_shares_either(tell: Any) -> None:
    story = tell.Story(num_validation=30)
    story.text = AVERAGED.replace(
        "torch.tensor(correct / total)", "100 * torch.tensor(correct / total).sqrt()"
    )
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    look = story.observation("EVAL002")
    assert [hit.severity for hit in look.hits] == [Severity.HINT]
    assert "averages `torch.tensor(correct / total).sqrt()` over the ranks" in look.hits[0].message


def test_unequal_shares_without_an_average_in_the_text_prove_nothing(tell: Any) -> None:
    story = trained(tell, num_validation=31)
    story.validate(tell.strided(31, 2, shuffle=False, pad=False))
    assert story.observation("EVAL002").state is UNSEEN


# ---- EVAL004 -----------------------------------------------------------------------------------------------------


def test_the_whole_set_on_every_rank(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(30), 1: range(30)}, num_replicas=None, sampler="SequentialSampler")
    look = story.observation("EVAL004")
    assert look.state is FLAGGED
    assert "30 samples" in look.hits[0].message
    assert look.hits[0].ranks == (0, 1)


def test_the_whole_set_on_one_rank_and_shares_on_all_are_no_waste(tell: Any) -> None:
    story = trained(tell)
    story.validate({0: range(30)}, num_replicas=None, sampler="SequentialSampler")
    assert story.observation("EVAL004").state is CLEAN
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    assert story.observation("EVAL004").state is CLEAN


# ---- EVAL005 -----------------------------------------------------------------------------------------------------


def test_rank_zero_alone_went_through_a_wrapper_with_buffers(tell: Any) -> None:
    story = trained(tell, num_buffers=6)
    story.ranks[0].event("evaluation", 30, op="begin", wrap=0, through_wrapper=True)
    look = story.observation("EVAL005")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.WARNING, "it got through, by luck"
    assert look.hits[0].where[0].line == 30
    story.ending = Ending.CRASHED
    assert story.observation("EVAL005").hits[0].severity is Severity.ERROR


def test_without_buffers_or_with_all_ranks_nobody_waits(tell: Any) -> None:
    story = trained(tell)
    story.ranks[0].event("evaluation", 30, op="begin", wrap=0, through_wrapper=True)
    assert story.observation("EVAL005").state is CLEAN
    story = trained(tell, num_buffers=6)
    for rank in story.ranks:
        rank.event("evaluation", 30, op="begin", wrap=0, through_wrapper=True)
    assert story.observation("EVAL005").state is CLEAN


def test_the_network_inside_may_be_evaluated_by_one_rank(tell: Any) -> None:
    story = trained(tell, num_buffers=6)
    story.ranks[0].event("evaluation", 30, op="begin", wrap=0, through_wrapper=False)
    assert story.observation("EVAL005").state is CLEAN
    assert trained(tell, num_buffers=6).observation("EVAL005").state is UNSEEN


def test_a_rank_that_is_still_training_has_not_stayed_away(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for rank in story.ranks:
        rank.fields["wraps"][0] = replace(rank.fields["wraps"][0], num_buffers=6)
    shares = tell.strided(96, 2)
    story.epoch({0: shares[0][:40], 1: shares[1]}, exhausted={0: True, 1: None})
    story.ranks[0].event("evaluation", 30, op="begin", wrap=0, through_wrapper=True)
    story.ending = Ending.DEADLOCKED
    assert story.observation("EVAL005").state is CLEAN


def test_a_run_that_stood_still_in_the_wrapper_under_a_rank_test(tell: Any) -> None:
    story = trained(tell, num_buffers=6)
    story.text = GUARDED
    story.wait(0, "DDP buffer broadcast", 9)
    story.wait(1, "barrier", 10)
    look = story.observation("EVAL005")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (0,)
    assert look.hits[0].where[0].line == 9
    assert "`barrier` at `train.py:10`" in look.hits[0].message


# ---- EVAL006 -----------------------------------------------------------------------------------------------------


def test_a_validation_in_training_mode(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=True, grad_enabled=False)
    look = story.observation("EVAL006")
    assert look.state is FLAGGED
    assert look.hits[0].severity is None
    assert "3 BatchNorm layers" in look.hits[0].message
    assert look.hits[0].where[0].line == 30


def test_training_mode_is_a_hint_where_no_layer_minds(tell: Any) -> None:
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=True, grad_enabled=False)
    assert story.observation("EVAL006").hits[0].severity is Severity.HINT


EVALUATED_BY_ONE = """import torch
import torch.distributed as dist


def evaluate(model, loader):
    if dist.get_rank() == 0:
        print("validating ...")
        model.eval()
    for images, labels in loader:
        model(images)
"""


def test_a_mode_that_one_rank_alone_switches(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    story.text = EVALUATED_BY_ONE
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=True, grad_enabled=False)
    story.ranks[0].fields["others"] = [
        replace(e, fields=e.fields | {"training_mode": False}) for e in story.ranks[0].fields["others"]
    ]
    story.save(0, "model.pt")
    hit = story.observation("EVAL006").hits[0]
    assert "checkpoint" not in hit.message  # rank 0 saves, and its statistics are right
    assert "`train.py:8` switches the mode on some ranks only (`dist.get_rank() == 0`)" in hit.message
    assert hit.hint.startswith(
        "Take `model.eval()` at `train.py:8` out of the test of the rank at `train.py:6`"
    )
    assert [w.line for w in hit.where] == [8, 6, 30]
    story.save(1, "model.pt")
    assert "data what then goes into the checkpoint" in story.observation("EVAL006").hits[0].message


def test_gradients_in_validation_are_a_hint(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=False, grad_enabled=True)
    look = story.observation("EVAL006")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.HINT


def test_a_proper_validation_is_verified(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=False, grad_enabled=False)
    assert story.observation("EVAL006").state is CLEAN


def test_statistics_learned_anew_from_training_data_are_no_validation(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    for rank in story.ranks:
        rank.event("evaluation", 40, op="begin", training_mode=True, grad_enabled=False)
    assert story.observation("EVAL006").state is UNSEEN


def settle(story: Any, shards: Any, name: str = "train", **loader: Any) -> None:
    """A pass over training samples in training mode, which is told before any other evaluation."""
    story.validate(shards, name=name, split="train", **loader)
    evaluations(story, training_mode=True, grad_enabled=False)


def validate_rightly(story: Any, ranks: int = 2) -> None:
    told = {r: shard for r, shard in tell_shards(30).items() if r < ranks}
    before = {r.rank: len(r.fields.get("others", [])) for r in story.ranks}
    story.validate(told, reduce="all_reduce")
    for rank in story.ranks:
        events = rank.fields["others"]
        fresh = [replace(e, fields=e.fields | {"training_mode": False}) for e in events[before[rank.rank] :]]
        rank.fields["others"] = [*events[: before[rank.rank]], *fresh]


def tell_shards(total: int) -> dict[int, list[int]]:
    return {rank: list(range(rank, total, 2)) for rank in range(2)}


@pytest.mark.parametrize("name", ["train", "of its own"])
def test_statistics_that_settle_on_training_samples_of_a_loader(tell: Any, name: str) -> None:
    story = trained(tell, num_batchnorm=3)
    settle(story, tell.strided(96, 2), name)
    validate_rightly(story, ranks=1)
    assert story.observation("EVAL006").state is CLEAN
    assert story.observation("EVAL014").state is CLEAN
    assert [s.kind for s in story.evidence().ledger.streams] == ["training", "validation", "settling"]


def test_training_samples_in_training_mode_and_nothing_else_are_a_validation(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    settle(story, tell.strided(96, 2))
    assert story.observation("EVAL006").state is FLAGGED
    assert story.observation("EVAL014").state is FLAGGED


def test_a_held_out_part_of_the_training_set_in_training_mode(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap(num_batchnorm=3)
    story.epoch({rank: range(rank, 60, 2) for rank in range(2)})
    settle(story, {rank: range(60 + rank, 96, 2) for rank in range(2)}, "held out")
    validate_rightly(story)
    assert story.observation("EVAL006").state is FLAGGED


@pytest.mark.parametrize(("samples", "state"), [(30, FLAGGED), (15, FLAGGED), (96, UNSEEN)])
def test_statistics_learned_anew_from_validation_data(tell: Any, samples: int, state: State) -> None:
    story = trained(tell)
    story.text = "net = torch.nn.Sequential(torch.nn.BatchNorm1d(4))\n"
    story.save(0, "model.pt")
    for rank in story.ranks:
        for op, number in (("begin", 0), ("end", samples)):
            told = {"op": op, "num_samples": number, "training_mode": True, "grad_enabled": False}
            rank.event("evaluation", 40, **told)
    look = story.observation("EVAL006")
    assert look.state is state
    if state is FLAGGED:
        (hit,) = look.hits
        assert "ran validation samples through the network in training mode" in hit.message
        assert "learned from the validation data what then goes into the checkpoint" in hit.message
        assert "take training samples" in hit.hint
        assert hit.severity is None


def test_a_validation_that_looks_like_training(tell: Any) -> None:
    story = trained(tell, num_batchnorm=3)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    for rank in story.ranks:
        rank.fields["others"] = [e for e in rank.fields["others"] if e.kind != "evaluation"]
        rank.event("end", forwards=8)  # 6 batches of training, 2 of validation
    look = story.observation("EVAL006")
    assert look.state is FLAGGED
    assert "2 validation batches" in look.hits[0].message
    # Data that were only looked at ran through no network.
    for rank in story.ranks:
        rank.fields["others"] = []
        rank.event("end", forwards=6)
    assert story.observation("EVAL006").state is UNSEEN


def asleep(tell: Any, first: int, **told: Any) -> Any:
    """A run whose steps from that one on were in evaluation mode."""
    story = trained(tell)
    story.validate(tell.strided(30, 2, shuffle=False), reduce="all_reduce")
    evaluations(story, training_mode=False, grad_enabled=False)
    for rank in story.ranks:
        rank.fields["steps"] = [replace(s, evaluation_mode=s.n >= first) for s in rank.fields["steps"]]
        fields = {
            "num_batchnorm": 0,
            "num_dropout": 0,
            "untracked": False,
            "left": ["train.py", 50, "validate"],
        }
        rank.event("trained_in_evaluation", 21, n=first, **(fields | told))
    return story


def test_training_that_goes_on_in_evaluation_mode(tell: Any) -> None:
    hit = asleep(tell, 4, num_batchnorm=3, num_dropout=1).observation("EVAL006").hits[0]
    assert hit.severity is None
    assert "2 of 6 steps (the first being step 4, in epoch 0)" in hit.message
    assert "3 BatchNorm layers" in hit.message
    assert "1 layer with dropout" in hit.message
    assert "`train.py:50` called `eval`" in hit.message
    assert [place.line for place in hit.where] == [50, 21]
    assert hit.ranks == (0, 1)


ROUNDS = """import torch
from torch import nn
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(range(9))
{before}
for epoch in range(3):
    {within}
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
    model.eval()
{after}
"""


@pytest.mark.parametrize(
    ("place", "call", "says"),
    [
        ("before", "model.train()", "`model.train()` at `train.py:6` runs before the rounds only."),
        ("after", "model.train()", "runs after the rounds only."),
        ("within", "if epoch == 0: model.train()", "runs only where `epoch == 0` decides so."),
        ("within", "pass", ""),
        ("before", "model.train(False)", ""),
    ],
)
def test_a_call_of_train_in_the_wrong_place_is_named(tell: Any, place: str, call: str, says: str) -> None:
    story = asleep(tell, 4, num_batchnorm=3)
    story.text = ROUNDS.format(**{"before": "", "within": "pass", "after": ""} | {place: call}) + "\n" * 50
    hit = story.observation("EVAL006").hits[0]
    assert says in hit.message
    named = next(line for line, text in enumerate(story.text.splitlines(), 1) if call in text)
    assert (hit.where[0].line == named) is bool(says)
    assert (
        "Put `model.train()` at the start of each round of the loop at `train.py:7`." in hit.hint
    ) is bool(says)


def test_it_is_a_hint_where_no_layer_minds(tell: Any) -> None:
    assert asleep(tell, 4).observation("EVAL006").hits[0].severity is Severity.HINT


def test_evaluation_mode_from_the_first_step_on(tell: Any) -> None:
    fresh = asleep(tell, 0, num_batchnorm=3, untracked=True).observation("EVAL006").hits[0]
    assert fresh.severity is None
    assert "all 6 steps" in fresh.message
    assert "those of a new network" in fresh.message
    # Trained statistics that are to stay as they are.
    assert asleep(tell, 0, num_batchnorm=3).observation("EVAL006").hits[0].severity is Severity.HINT


def test_one_rank_that_trains_in_evaluation_mode(tell: Any) -> None:
    story = asleep(tell, 4, num_batchnorm=3)
    other = story.ranks[1]
    other.fields["steps"] = [replace(s, evaluation_mode=False) for s in other.fields["steps"]]
    hit = story.observation("EVAL006").hits[0]
    assert hit.ranks == (0,)
    assert "Rank 1 trained in training mode" in hit.message
