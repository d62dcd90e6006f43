"""Rules about launching, devices and leaving early, over runs that really show the fault and over honest ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.checks.diagnosis import diagnose
from grader.checks.policy import apply_rules
from grader.model.drawn_data import Batch, Pass
from grader.model.finding import EvidenceKind, Severity
from grader.model.grade import State
from grader.model.run import Ending, Failure

FIXTURES = Path(__file__).parents[1] / "diagnoses/fixtures"
CLEAN, FLAGGED, UNSEEN = State.VERIFIED, State.CONTRADICTED, State.NOT_OBSERVABLE

EARLY_STOP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(network)
for epoch in range(9):
    for x, y in loader:
        model(x).sum().backward()
    if dist.get_rank() == 0:
        if score(model.module) > 0.9:
            break
dist.barrier()
"""
TABLE = """\
import torch.distributed as dist
results = {"loss": loss}
if dist.get_rank() == 0:
    results["rate"] = rate
for value in results.values():
    dist.all_reduce(value)
dist.barrier()
"""
PORT = """\
import os
import torch.distributed as dist
os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "12355"
dist.init_process_group("gloo")
"""
FOUR = """\
import torch.distributed as dist
dist.init_process_group("gloo", world_size=4, rank=my_rank())
"""
ARGUMENT = """\
import argparse
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, required=True)
args = parser.parse_args()
dist.init_process_group("gloo")
train(args.local_rank)
"""
NEXT = """\
import torch.distributed as dist
from torch.utils.data import DataLoader
dist.init_process_group("gloo")
batches = iter(DataLoader(train_set, batch_size=8))
x, y = batches.next()
"""
WRAP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(network, device_ids=[0])
"""
EARLY = """\
from dataclasses import dataclass, field
import torch.distributed as dist

@dataclass
class World:
    rank: int = field(default_factory=lambda: dist.get_rank() if dist.is_initialized() else 0)

def main():
    world = World()
    dist.init_process_group("gloo")
    if world.rank == 0:
        print("begun")

main()
"""
SPAWN = """\
import torch.multiprocessing as mp
def worker(rank, size):
    print(rank, size)
if __name__ == "__main__":
    mp.spawn(worker, args=(2), nprocs=2)
"""


# ---- DIST008 -----------------------------------------------------------------------------------------------------


def test_ranks_that_stay_together(tell: Any) -> None:
    look = tell.honest().observation("DIST008")
    assert look.state is CLEAN
    assert "12 steps" in look.reason


def test_a_rank_that_has_left_the_epochs_while_another_waits_in_the_next_one(tell: Any) -> None:
    story = tell.Story()
    story.text = EARLY_STOP
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    story.epoch({1: range(1)}, every=9, exhausted=None)
    story.wait(0, "barrier", 11)
    story.wait(1, "DDP gradient all-reduce", 7)
    look = story.observation("DIST008")
    assert look.state is FLAGGED
    hit = look.hits[0]
    assert hit.ranks == (0,)
    assert "had left the loop that begins at `train.py:5`" in hit.message
    assert "rank 1 waits in `DDP gradient all-reduce` at `train.py:7`" in hit.message
    assert hit.where[0].line == 10, "the exit that the rank took comes first"


def test_a_rank_that_broke_out_of_its_batches(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(24), 1: range(32)}, exhausted={0: False, 1: None})
    story.wait(0, "all_reduce", 30)
    story.wait(1, "DDP gradient all-reduce", 24)
    look = story.observation("DIST008")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (0,)
    assert "left the training loop in epoch 0 after 3 batches, before it had run dry" in look.hits[0].message


def test_a_rank_that_ended_in_good_order_before_the_others(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2))
    story.epoch({1: range(8)}, every=9, exhausted=None)
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 0, 1: 1}
    words = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:42"
    story.failures[1] = Failure("RuntimeError", words, (tell.frame(700, "torch/x.py", False), tell.frame(24)))
    look = story.observation("DIST008")
    assert look.state is FLAGGED
    assert look.evidence == (EvidenceKind.OUTSIDE,)
    assert "Rank 0 had ended without an error" in look.hits[0].message
    assert "rank 1 lost its partner at `train.py:24`" in look.hits[0].message


@pytest.mark.parametrize("told", [True, False])
def test_ranks_that_part_by_a_sum_which_one_of_them_has(tell: Any, told: bool) -> None:
    story = tell.Story()
    story.text = (FIXTURES / "early_stop/reduced_to_one_rank.py").read_text()
    story.text = story.text.replace(
        '{"right": right.item()}', f"right.item(){' if rank == 0 else None' * (not told)}"
    )
    story.group()
    story.epoch(tell.strided(96, 2))
    story.epoch({1: range(8)}, every=9, exhausted=None)
    story.wait(1, "DDP gradient all-reduce", 33)
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 0, 1: 1}
    (hit,) = story.observation("DIST008").hits
    assert (
        "`dist.reduce(right, dst=0)` at `train.py:36` leaves the sum on rank 0 alone" in hit.message
    ) is told
    assert ("Write `dist.all_reduce(right)`" in hit.hint) is told


@pytest.mark.parametrize("ending", [Ending.COMPLETED, Ending.DEADLOCKED])
def test_a_batch_without_its_step(tell: Any, ending: Ending) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(16), 1: range(16)}, exhausted=None)
    story.epoch({0: range(8)}, exhausted=None)
    story.epoch({1: range(8)}, every=9, exhausted=None)
    story.epoch({0: range(8), 1: range(8)}, exhausted=None)
    if ending is Ending.DEADLOCKED:
        story.wait(0, "DDP gradient all-reduce", 24)
        story.wait(1, "all_reduce", 40)
    look = story.observation("DIST008")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (1,)
    assert "drew batch 1 of epoch 1 and took no step on it, while rank 0 did" in look.hits[0].message


SKIPS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 2))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    if loss.item() > 3:
        continue
    loss.backward()
    optimizer.step()
dist.all_reduce(total)
"""


def skipping(tell: Any, *skipped: set[int], exchanges: bool = True, kept: bool = False) -> Any:
    """Ranks that go through five batches and take no step on some; `kept`: they come to the exchange all the same."""
    story = tell.Story()
    story.group()
    for rank, left_out in zip(story.ranks, skipped, strict=True):
        loader, missed = story.loader(rank.rank, "train"), 0
        for n in range(5):
            rank.add("batches", Batch(loader.id, 0, n, 8, tuple(range(8)), 0.001, rank.steps, rank.tick()))
            if n in left_out:
                missed += 1
                continue
            num = 1 + missed if kept else 1
            missed = 0
            story.step(rank.rank, (1.0, float(n)), backwards=num, exchanges=num if exchanges else None)
        rank.add("passes", Pass(loader.id, 0, 0, tell.site(10), 1.0, rank.tick(), True))
    return story


def test_the_first_step_that_one_rank_left_out_is_told(tell: Any) -> None:
    look = skipping(tell, {2, 3}, {1}).observation("DIST008")
    assert look.state is FLAGGED
    assert "Rank 1 drew batch 2 of epoch 0 and took no step on it, while rank 0 did" in look.hits[0].message


def test_a_step_left_out_by_one_rank_that_missed_no_collective_is_no_exit(tell: Any) -> None:
    story = skipping(tell, {1, 2}, {1}, kept=True)
    look = story.observation("DIST008")
    assert look.state is CLEAN
    assert "came to every collective, although rank 0 drew batch 3 of epoch 0" in look.reason
    look = story.observation("DATA005")
    assert look.state is CLEAN
    assert "took no step on it" in look.reason


@pytest.mark.parametrize("part", [True, False])
def test_weights_that_were_equal_before_a_step_was_left_out_say_nothing_of_later(
    tell: Any, part: bool
) -> None:
    """Steps of equal numbers are other moments from there on; whether replicas came apart, the ends tell."""
    story = skipping(tell, {2}, set(), kept=True)
    story.text = SKIPS
    for rank in story.ranks:
        for n in range(3):
            rank.add(
                "batches",
                Batch(rank.loaders["train"].id, 1, n, 8, tuple(range(8)), 0.001, rank.steps, rank.tick()),
            )
            story.step(rank.rank, (1.0, float(n)), backwards=1, exchanges=1)
        for n in (0, 1, 6):
            story.params(rank.rank, n, (1.0, 2.0, n + 0.5 * rank.rank * (n > 1)))
        story.final(rank.rank, (1.0, 2.0, 9.0 + 0.5 * rank.rank * part))
    look = story.observation("GRAD007")
    assert look.state is (FLAGGED if part else CLEAN)
    if part:
        assert (
            "Rank 0 drew batch 3 of epoch 0 and took no step on it, while rank 1 did" in look.hits[0].message
        )


@pytest.mark.parametrize(("text", "state"), [(SKIPS, FLAGGED), ("print()", CLEAN)])
def test_as_many_steps_left_out_on_all_ranks_but_others(tell: Any, text: str, state: State) -> None:
    story = skipping(tell, {3}, {1})
    story.text = text
    look = story.observation("DIST008")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].where[0].line == 13
    assert skipping(tell, {1}, {1}).observation("DIST008").state is CLEAN


def left_the_last(tell: Any) -> Any:
    """Rank 1 skips its last batch, in whose backward pass rank 0 waits; their next collectives do not fit together."""
    story = skipping(tell, {4}, {4})
    story.text = SKIPS
    passes = story.ranks[0].fields["passes"]
    passes[:] = [replace(p, ended_t=None, exhausted=None) for p in passes]
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    words = "[enforce fail at pair.cc:464] op.preamble.length <= op.nbytes. 76452 vs 8. Received data size"
    story.failures[1] = Failure("RuntimeError", words, (tell.frame(16),))
    story.failures[0] = Failure("RuntimeError", "Connection closed by peer", (tell.frame(14),))
    return story


def test_the_last_batch_without_its_step(tell: Any) -> None:
    look = left_the_last(tell).observation("DIST008")
    assert look.state is FLAGGED
    (hit,) = look.hits
    assert hit.ranks == (1,)
    assert (
        "drew batch 5 of epoch 0, the last one, and took no step on it; rank 0 lost its partner"
        in hit.message
    )
    assert hit.where[0].line == 13


def test_ranks_with_equal_numbers_of_batches_are_not_told_to_have_unequal_ones(tell: Any, only: Any) -> None:
    evidence = left_the_last(tell).evidence()
    findings, _ = apply_rules(evidence, only("DIST008", "DIST009", "DATA005"))
    assert [f.code for f in findings] == ["DIST008"]
    found, _ = diagnose(evidence, findings)
    assert found is not None
    assert found.id == "mismatched_tensors"
    assert found.where[0].line == 13
    assert "`stop = torch.tensor(" in found.hint


def test_a_rank_that_is_a_batch_ahead_of_a_waiting_one(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch(tell.strided(96, 2))
    story.epoch({0: range(24), 1: range(8)}, every=9, exhausted=None)
    story.wait(0, "all_reduce", 40)
    story.wait(1, "DDP gradient all-reduce", 24)
    look = story.observation("DIST008")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (0,)
    assert "without the step in which rank 1 waits in batch 1" in look.hits[0].message


def test_shards_of_unequal_length_are_not_an_exit(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(24), 1: range(32)}, exhausted={0: True, 1: None})
    story.wait(0, "all_reduce", 40)
    story.wait(1, "DDP gradient all-reduce", 24)
    assert story.observation("DIST008").state is UNSEEN
    assert story.observation("DATA005").state is FLAGGED


def test_a_barrier_under_a_rank_test_is_not_an_exit(tell: Any) -> None:
    story = tell.honest()
    story.text = "import torch.distributed as dist\nif dist.get_rank() == 0:\n    dist.barrier()\n"
    story.wait(0, "barrier", 3)
    assert story.observation("DIST008").state is UNSEEN
    assert story.observation("DIST003").state is FLAGGED


def test_all_ranks_that_break_together_and_hang_later(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(24), 1: range(24)}, exhausted=False)
    story.wait(0, "all_reduce", 40)
    story.wait(1, "broadcast", 41)
    assert story.observation("DIST008").state is UNSEEN
    assert story.observation("DIST009").state is FLAGGED


def test_a_table_that_is_longer_on_one_rank_is_not_an_exit(tell: Any) -> None:
    story = tell.honest()
    story.text = TABLE
    story.wait(0, "all_reduce", 6)
    story.wait(1, "barrier", 7)
    assert story.observation("DIST008").state is UNSEEN
    assert story.observation("DIST009").state is FLAGGED


def test_a_crash_of_one_rank_is_not_an_exit(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({0: range(24), 1: range(32)}, exhausted=None)
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    story.failures[0] = Failure("IndexError", "list index out of range", (tell.frame(20),))
    story.failures[1] = Failure("RuntimeError", "Connection closed by peer", (tell.frame(24),))
    assert story.observation("DIST008").state is UNSEEN


def test_one_rank_has_nobody_to_leave(tell: Any) -> None:
    assert tell.honest(world_size=1).observation("DIST008").state is UNSEEN


# ---- DIST004 and DIST005 -----------------------------------------------------------------------------------------


def test_a_sampler_for_four_ranks_of_which_two_are_there(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.epoch({r: range(r, 96, 4) for r in range(2)}, num_replicas=4)
    look = story.observation("DIST004")
    assert look.state is FLAGGED
    assert (
        "2 ranks trained, but the sampler of the loader at `train.py:11` deals the data out to 4"
        in look.hits[0].message
    )
    assert look.hits[0].severity is None


def test_a_rank_that_is_asked_for_before_there_is_a_group(tell: Any) -> None:
    story = tell.honest()
    story.text = EARLY
    look = story.observation("DIST004")
    assert look.state is FLAGGED
    assert [p.line for p in look.hits[0].where] == [6, 10]
    assert "`train.py:6` asked before `train.py:10` joins the group: each of 2 ranks" in look.hits[0].message
    assert look.hits[0].hint.endswith('`int(os.environ["RANK"])`.')


def test_what_every_rank_does_for_such_a_rank_is_told_as_one_finding(tell: Any, task: Any) -> None:
    story = tell.Story()
    story.group()
    story.text = EARLY
    story.epoch({r: range(96) for r in range(2)}, num_replicas=1)
    findings, _ = apply_rules(story.evidence(), task)
    assert [f.code for f in findings if f.severity is Severity.ERROR] == ["DIST004"]
    assert "DATA001" in findings[0].details["explains"]


def test_a_rank_that_is_asked_for_inside_the_group(tell: Any) -> None:
    story = tell.honest()
    story.text = EARLY.replace(
        '    world = World()\n    dist.init_process_group("gloo")\n',
        '    dist.init_process_group("gloo")\n    world = World()\n',
    )
    assert story.observation("DIST004").state is CLEAN


def test_samplers_that_count_the_ranks(tell: Any) -> None:
    assert tell.honest(world_size=4).observation("DIST004").state is CLEAN


def test_a_sampler_for_the_ranks_that_train_while_one_serves(tell: Any) -> None:
    story = tell.Story(world_size=3)
    story.group()
    story.epoch({r: range(r - 1, 96, 2) for r in (1, 2)}, num_replicas=2)
    assert story.observation("DIST004").state is CLEAN


def test_a_group_of_another_size(tell: Any) -> None:
    story = tell.honest()
    for r in story.ranks:
        r.fields["groups"][0] = replace(r.fields["groups"][0], world_size=1)
    look = story.observation("DIST004")
    assert look.state is FLAGGED
    assert "2 ranks were asked for, but `train.py:5` made a group of 1" in look.hits[0].message


CACHED = """
import functools
import torch.distributed as dist

@functools.cache
def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0

def log(text):
    if is_main():
        print(text)

log("hello")
dist.init_process_group("gloo")
log("there")
"""


def test_a_rank_that_is_cached_before_there_is_one(tell: Any) -> None:
    story = tell.honest()
    story.text = CACHED
    (hit,) = story.observation("DIST004").hits
    assert [place.line for place in hit.where] == [13, 5, 7, 14]
    assert "Take `@functools.cache` off `is_main`" in hit.hint
    story.text = CACHED.replace('log("hello")\n', "")
    assert story.observation("DIST004").state is CLEAN


def test_a_number_that_happens_to_fit_is_not_refuted(tell: Any) -> None:
    story = tell.honest(world_size=4)
    story.text = FOUR
    assert story.observation("DIST004").state is UNSEEN


def test_a_group_that_waits_for_ranks_that_were_never_started(tell: Any) -> None:
    story = tell.Story()
    story.text = FOUR
    for rank in range(2):
        story.wait(rank, "rendezvous (init_process_group)", 2)
    look = story.observation("DIST004")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert "asks for 4 processes" in look.hits[0].message
    assert "2 were started" in look.hits[0].message


def test_ranks_that_wait_at_a_port_of_their_own(tell: Any) -> None:
    story = tell.Story()
    story.text = PORT
    for rank in range(2):
        story.wait(rank, "rendezvous (init_process_group)", 5)
    look = story.observation("DIST005")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert [p.line for p in look.hits[0].where] == [3, 4, 5]


def test_a_port_that_was_taken(tell: Any) -> None:
    story = tell.Story()
    story.text = PORT
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    words = "The server socket has failed to listen on any local network address. port: 12355, EADDRINUSE"
    story.failures[0] = Failure("DistNetworkError", words, (tell.frame(5),))
    look = story.observation("DIST005")
    assert look.state is FLAGGED
    assert "found the port taken" in look.hits[0].message


def test_a_fixed_port_at_which_the_ranks_met(tell: Any) -> None:
    story = tell.honest()
    story.text = PORT
    assert story.observation("DIST005").state is UNSEEN
    story.text = "print('nothing fixed')\n"
    assert story.observation("DIST005").state is CLEAN


# ---- DIST007 and DIST011 -----------------------------------------------------------------------------------------


def test_an_argument_that_nobody_passes(tell: Any) -> None:
    story = tell.Story()
    story.text = ARGUMENT
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 2, 1: 2}
    usage = "usage: train.py [-h]\ntrain.py: error: the following arguments are required: --local_rank\n"
    story.logs = (("", usage), ("", usage))
    look = story.observation("DIST007")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert look.hits[0].ranks == (0, 1)
    assert [p.line for p in look.hits[0].where] == [4]


def test_a_name_that_torch_no_longer_has(tell: Any) -> None:
    story = tell.Story()
    story.text = NEXT
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    for rank in range(2):
        words = "'_SingleProcessDataLoaderIter' object has no attribute 'next'"
        story.failures[rank] = Failure("AttributeError", words, (tell.frame(5),))
    look = story.observation("DIST007")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert "Ranks 0 and 1 stopped at `train.py:5`" in look.hits[0].message
    assert "next(iterator)" in look.hits[0].hint


def test_another_missing_attribute_is_not_torchs(tell: Any) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1}
    story.failures[0] = Failure("AttributeError", "'Net' object has no attribute 'fc'", (tell.frame(5),))
    assert story.observation("DIST007").state is UNSEEN


def test_a_number_where_a_tuple_is_asked_for(tell: Any) -> None:
    story = tell.Story()
    story.text = SPAWN
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    for rank in range(2):
        story.ranks[rank].event("process", 5, op="spawn", target="worker", by="torch")
        words = "Process 0 terminated:\nTypeError: argument after * must be an iterable, not int"
        story.failures[rank] = Failure("ProcessRaisedException", words, (tell.frame(5),))
    look = story.observation("DIST011")
    assert look.state is FLAGGED
    assert "must be an iterable, not int" in look.hits[0].message
    assert look.hits[0].where[0].line == 5


def test_a_script_that_starts_nothing(tell: Any) -> None:
    assert tell.honest().observation("DIST011").state is CLEAN


# ---- DEV003, DEV004 and DEV005 -----------------------------------------------------------------------------------


def test_a_wrapper_that_refuses_where_the_parameters_are(tell: Any) -> None:
    story = tell.Story()
    story.text = WRAP
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    words = (
        "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
        "GPU modules or CPU modules, but got device_ids [0], output_device 0, and module parameters {device('cpu')}."
    )
    for rank in range(2):
        story.failures[rank] = Failure(
            "ValueError", words, (tell.frame(700, "torch/x.py", False), tell.frame(4))
        )
    look = story.observation("DEV003")
    assert look.state is FLAGGED
    assert "Ranks 0 and 1 stopped at `train.py:4`" in look.hits[0].message


def test_models_that_were_on_their_gpu_when_wrapped(tell: Any) -> None:
    story = tell.Story()
    story.profile = "gpu"
    story.wrap(devices=("cuda:0", "cuda:1"))
    assert story.observation("DEV003").state is CLEAN
    story.wrap(devices=("cuda:0", "cpu"))
    assert story.observation("DEV003").hits[0].ranks == (1,)


def test_moves_on_the_cpu_change_nothing(tell: Any) -> None:
    assert tell.honest().observation("DEV003").state is UNSEEN


@pytest.mark.parametrize(
    ("devices", "state"), [(("cuda:0", "cuda:0"), FLAGGED), (("cuda:0", "cuda:1"), CLEAN)]
)
def test_where_loaded_checkpoints_came_to_lie(tell: Any, devices: tuple[str, ...], state: State) -> None:
    story = tell.Story()
    story.profile = "gpu"
    story.wrap(devices=("cuda:0", "cuda:1"))
    for r, device in zip(story.ranks, devices, strict=True):
        r.event("load", 30, path="last.pt", out=True, map_location="", devices=(device,))
    look = story.observation("DEV004")
    assert look.state is state
    if state is FLAGGED:
        assert look.hits[0].ranks == (1,)
        assert "`last.pt` at `train.py:30` onto cuda:0" in look.hits[0].message


def test_checkpoints_that_stay_on_the_cpu(tell: Any) -> None:
    story = tell.honest()
    assert story.observation("DEV004").state is UNSEEN
    story.ranks[0].event("load", 30, path="last.pt", out=True, map_location="", devices=("cpu",))
    assert story.observation("DEV004").state is UNSEEN
    story = tell.honest()
    story.ranks[0].event("load", 30, path="last.pt", out=True, map_location="cpu", devices=("cpu",))
    assert story.observation("DEV004").state is CLEAN


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("No backend type associated with device type cpu", "a tensor that lies on the CPU"),
        (
            "Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
            "something that is no tensor",
        ),
    ],
)
def test_collectives_that_refuse_what_they_are_given(tell: Any, words: str, what: str) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    inside = tell.frame(2900, "torch/distributed/distributed_c10d.py", False)
    story.failures[1] = Failure("RuntimeError", words, (inside, tell.frame(33)))
    look = story.observation("DEV005")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert f"Rank 1 stopped at `train.py:33`: the collective was given {what}" in look.hits[0].message


def test_gloo_for_models_on_gpus_is_advice(tell: Any) -> None:
    story = tell.Story()
    story.profile = "gpu"
    story.group()
    story.wrap(devices=("cuda:0", "cuda:1"))
    look = story.observation("DEV005")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.HINT


def test_gloo_on_the_cpu_says_nothing_about_nccl(tell: Any) -> None:
    assert tell.honest().observation("DEV005").state is UNSEEN


@pytest.mark.parametrize(("profile", "severity"), [("gpu", Severity.ERROR), ("cpu", Severity.HINT)])
def test_the_profile_decides_about_a_tensor_on_the_cpu_but_not_about_gloo(
    tell: Any, only: Any, profile: str, severity: Severity
) -> None:
    story = tell.Story()
    story.profile = profile
    story.text = (
        "import torch\n"
        "import torch.distributed as dist\n"
        'dist.init_process_group("nccl")\n'
        "dist.all_reduce(torch.tensor([correct, seen]))\n"
    )
    findings, _ = apply_rules(story.evidence(), only("DEV005"))
    assert [f.severity for f in findings if f.code == "DEV005"] == [severity]
    story.text = (
        "import torch.distributed as dist\n"
        "from torch.nn.parallel import DistributedDataParallel\n"
        'dist.init_process_group("gloo")\n'
        "model = DistributedDataParallel(network.cuda(), device_ids=[local_rank])\n"
    )
    findings, _ = apply_rules(story.evidence(), only("DEV005"))
    assert [f.severity for f in findings if f.code == "DEV005"] == [Severity.HINT]
