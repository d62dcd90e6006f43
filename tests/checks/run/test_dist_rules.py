"""DIST and DEV rules over runs: groups, deadlocks and devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.checks.diagnosis import diagnose
from grader.checks.policy import apply_rules
from grader.model.finding import EvidenceKind, Severity
from grader.model.grade import State
from grader.model.run import Ending, Failure, Waiting

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE

GUARDED = """
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
train()
if rank == 0:
    dist.barrier()
train()
dist.destroy_process_group()
"""
BRANCHES = """
import torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.all_reduce(value)
else:
    dist.broadcast(value, src=0)
dist.destroy_process_group()
"""
HELPER = """
import torch.distributed as dist

def summarise(value):
    dist.all_reduce(value)
    print(value)

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    summarise(value)
dist.destroy_process_group()
"""


# ---- DIST001 -----------------------------------------------------------------------------------------------------


def test_every_rank_joins(tell: Any) -> None:
    look = tell.honest().observation("DIST001")
    assert look.state is CLEAN
    assert "All 2 ranks" in look.reason


def test_nobody_joins(tell: Any) -> None:
    story = tell.Story()
    story.epoch(tell.strided(96, 2))
    look = story.observation("DIST001")
    assert look.state is FLAGGED
    assert "Ranks 0 and 1 of 2 never joined a process group" in look.hits[0].message


def test_one_rank_stays_away_and_ends(tell: Any) -> None:
    story = tell.Story()
    story.wait(0, "rendezvous (init_process_group)", 5)
    look = story.observation("DIST001")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == (1,)


def test_ranks_that_crash_before_they_could_join(tell: Any) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    story.exit_codes = {0: 1, 1: 1}
    assert story.observation("DIST001").state is UNSEEN


def test_a_wrap_that_finds_no_group(tell: Any) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    for rank in range(2):
        words = "Default process group has not been initialized, please make sure to call init_process_group."
        story.failures[rank] = Failure(
            "ValueError", words, (tell.frame(900, "torch/x.py", False), tell.frame(12))
        )
        story.exit_codes[rank] = 1
    look = story.observation("DIST001")
    assert look.state is FLAGGED
    assert "Ranks 0 and 1 stopped at `train.py:12`" in look.hits[0].message


def test_one_rank_needs_no_group(tell: Any) -> None:
    story = tell.Story(world_size=1)
    story.epoch({0: range(96)})
    assert story.observation("DIST001").state is UNSEEN


# ---- DIST002 -----------------------------------------------------------------------------------------------------


BY_CLOCK = """import time

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(net)
begun = time.monotonic()
while {test}:
    criterion(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("test", "lines"), [("time.monotonic() - begun < 3", [9]), ("len(losses) < 3", [])])
def test_clocks_that_agreed_this_time(tell: Any, test: str, lines: list[int]) -> None:
    story = tell.honest()
    story.text = BY_CLOCK.format(test=test)
    look = story.observation("DIST008")
    assert [place.line for hit in look.hits for place in hit.where] == lines
    assert {hit.severity for hit in look.hits} <= {Severity.HINT}


def test_a_group_that_is_destroyed(tell: Any) -> None:
    assert tell.honest().observation("DIST002").state is CLEAN


@pytest.mark.parametrize("ranks", [(0, 1), (1,)])
def test_a_group_that_is_left_behind(tell: Any, ranks: tuple[int, ...]) -> None:
    story = tell.Story()
    story.group()
    for rank in {0, 1} - set(ranks):
        story.group([rank], destroy=True)
    for r in story.ranks:
        r.event("end", group_destroyed=None)
    look = story.observation("DIST002")
    assert look.state is FLAGGED
    assert look.hits[0].ranks == ranks
    assert look.hits[0].where[0].line == 5


ENDED_EARLY = """import contextlib
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@contextlib.contextmanager
def process_group():
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def train(model):
    for x, y in batches:
        loss_of(model(x), y).backward()
        optimizer.step()


with process_group():
    model = DistributedDataParallel(net)
train(model)
"""


def test_a_group_that_is_taken_down_before_the_steps(tell: Any) -> None:
    story = tell.Story()
    story.text = ENDED_EARLY
    story.group()
    story.group(destroy=True, line=12)
    for rank in range(2):
        for _ in range(5):
            story.step(rank, (1.0, 2.0, 3.0))
        story.ranks[rank].event("end", group_destroyed=True)
    (hit,) = story.observation("DIST002").hits
    assert hit.severity is Severity.WARNING
    assert [place.line for place in hit.where] == [21, 23, 12]
    assert "took the process group down at `train.py:12`, and 5 of 5 steps came after that" in hit.message
    assert "Move `train(model)` from `train.py:23` into the `with` block of `train.py:21`" in hit.hint


def test_steps_without_a_wrapper_after_the_end(tell: Any) -> None:
    story = tell.honest()
    for rank in range(2):
        story.step(rank, None, synced=None)
    assert story.observation("DIST002").state is CLEAN


def test_a_run_that_did_not_reach_its_end(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.ending = Ending.CRASHED
    assert story.observation("DIST002").state is UNSEEN


AFTER_THE_END = """import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(total)
dist.destroy_process_group()
dist.barrier()
"""


def test_a_rank_that_needs_its_group_when_it_is_over(tell: Any) -> None:
    story = tell.Story()
    story.text = AFTER_THE_END
    story.group()
    story.group(destroy=True)
    for rank in (0, 1):
        words = "Default process group has not been initialized, please make sure to call init_process_group."
        story.failures[rank] = Failure("ValueError", words, (tell.frame(6),))
        story.exit_codes[rank] = 1
    story.ending = Ending.CRASHED
    (hit,) = story.observation("DIST002").hits
    assert hit.severity is Severity.ERROR
    assert [place.line for place in hit.where] == [6, 5]
    assert "Move `dist.barrier()` from `train.py:6` above `dist.destroy_process_group()`" in hit.hint
    found, _ = diagnose(story.evidence())
    assert found is not None
    assert found.title == "The process group was over already"
    assert found.hint == hit.hint


# ---- DIST003 and DIST009 -----------------------------------------------------------------------------------------


FORMED = """import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    log_group = dist.new_group([0])
"""


def test_a_group_that_one_rank_formed_alone_is_not_refuted_by_a_run_that_ended(tell: Any, only: Any) -> None:
    story = tell.honest()
    story.text = FORMED
    (finding,), _ = apply_rules(story.evidence(), only("DIST003"))
    assert (finding.severity, finding.refuted) == (Severity.HINT, "")
    assert "stands still" not in finding.message
    assert "the next one does not come together" in finding.message
    story.text = FORMED.replace("log_group = dist.new_group([0])", "dist.barrier()")
    (finding,), _ = apply_rules(story.evidence(), only("DIST003"))
    assert finding.refuted


def test_a_barrier_that_rank_0_alone_calls(tell: Any) -> None:
    story = tell.Story()
    story.text = GUARDED
    story.wait(0, "barrier", 7)
    story.wait(1, "DDP gradient all-reduce", 8)
    look = story.observation("DIST003")
    assert look.state is FLAGGED
    hit = look.hits[0]
    assert hit.evidence is EvidenceKind.OUTSIDE
    assert "`train.py:7` calls `barrier`" in hit.message
    assert "the test at `train.py:6` lets only rank 0 reach it" in hit.message
    assert [p.line for p in hit.where] == [7, 8, 6]
    assert story.observation("DIST009").state is UNSEEN


POLLED = """import os, time
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.barrier()
    open("done", "w").close()
else:
    while not os.path.exists("done"):
        time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("text", "state", "finding"),
    [
        (POLLED, FLAGGED, "DIST003"),
        (POLLED.replace("time.sleep(0.1)", "time.sleep(9); dist.barrier()"), UNSEEN, ""),
    ],
)
def test_a_barrier_that_rank_0_alone_calls_until_the_time_limit(
    tell: Any, only: Any, text: str, state: State, finding: str
) -> None:
    story = tell.Story()
    story.text = text
    story.group()
    story.wait(0, "barrier", 6)
    story.waiting[1] = Waiting((tell.frame(10),), "", tell.frame(10))
    story.killed.add(1)
    story.ending = Ending.TIMED_OUT
    assert story.observation("DIST003").state is state
    findings, _ = apply_rules(story.evidence(), only("DIST003", "DIST009"))
    assert [(f.code, f.severity) for f in findings] == [(finding, Severity.ERROR)] * bool(finding)
    told, _ = diagnose(story.evidence(), findings)
    assert (told is not None and told.id == "guarded_collective") == bool(finding)


def test_a_collective_in_a_helper_under_a_rank_test_while_the_others_have_ended(tell: Any) -> None:
    story = tell.Story()
    story.text = HELPER
    story.wait(0, "all_reduce", 5, 10)
    look = story.observation("DIST003")
    assert look.state is FLAGGED
    assert look.hits[0].details["waiting"]["1"] == "ended"
    assert story.observation("DIST009").state is UNSEEN


WITHIN_A_LINE = """
import torch.distributed as dist

def evaluate():
    dist.all_reduce(counts)

dist.init_process_group("gloo")
for epoch in range(10):
    good = dist.get_rank() == 0 and evaluate()
    train()
"""


def test_a_rank_test_within_the_line_that_calls(tell: Any) -> None:
    story = tell.Story()
    story.text = WITHIN_A_LINE
    story.wait(0, "all_reduce", 5, 9)
    story.wait(1, "DDP gradient all-reduce", 10)
    (hit,) = story.observation("DIST003").hits
    assert "the test at `train.py:9` lets only rank 0 reach it" in hit.message
    assert story.observation("DIST009").state is UNSEEN


ONCE_MORE = """
import torch.distributed as dist

def evaluate():
    dist.all_reduce(counts)

dist.init_process_group("gloo")
for epoch in range(10):
    if dist.get_rank() == 0:
        evaluate()
    evaluate()
    train()
"""


def test_a_rank_that_waits_in_the_next_call_because_it_made_one_more(tell: Any, only: Any) -> None:
    """The extra call met the others' only one."""
    story = tell.Story()
    story.text = ONCE_MORE
    story.group()
    story.wait(0, "all_reduce", 5, 11)
    story.wait(1, "DDP gradient all-reduce", 12)
    findings, _ = apply_rules(story.evidence(), only("DIST003", "DIST009"))
    (finding,) = findings
    assert finding.code == "DIST003"
    assert "`train.py:10` calls `evaluate()`" in finding.message
    told, _ = diagnose(story.evidence(), findings)
    assert told is not None
    assert told.where[0].line == 10


PRINTED = """
import torch.distributed as dist

class Meter:
    @property
    def average(self):
        dist.all_reduce(self.both)
        return self.both[0] / self.both[1]

    def __str__(self):
        return f"{self.average:.3f}"

def show(meters):
    print(*[str(meter) for meter in meters])

dist.init_process_group("gloo")
for epoch in range(10):
    loss, accuracy = (Meter() for _ in range(2))
    train()
    if dist.get_rank() == 0:
        show([loss, accuracy])
    history.append(loss.average)
"""


def test_a_collective_that_one_rank_comes_to_by_printing(tell: Any) -> None:
    """No line calls it by its name: a property, read by what turns the object into text."""
    story = tell.Story()
    story.text = PRINTED
    story.group()
    story.wait(0, "all_reduce", 7, 22)
    story.wait(1, "DDP gradient all-reduce", 19)
    (hit,) = story.observation("DIST003").hits
    assert hit.where[0].line == 21
    assert "which runs `all_reduce` at `train.py:7` whenever `average` is read" in hit.message
    assert story.observation("DIST009").state is UNSEEN


COIN = """
import random
import torch.distributed as dist

def wanted():
    return random.random() < 0.1

class Log:
    def write(self, loss):
        dist.all_reduce(loss)

def train(model, log):
    for x in loader:
        loss = model(x)
        if wanted():
            log.write(loss)

dist.init_process_group("gloo")
random.seed(dist.get_rank())
train(model, Log())
"""


def test_a_collective_that_each_rank_throws_a_coin_for(tell: Any) -> None:
    story = tell.Story()
    story.text = COIN
    story.group()
    story.wait(0, "all_reduce", 10, 16)
    story.wait(1, "DDP buffer broadcast", 14)
    (hit,) = story.observation("DIST009").hits
    assert [place.line for place in hit.where[:3]] == [6, 16, 10], "what the others follow from stands first"
    assert "each rank seeds it with another number at `train.py:19`" in hit.message
    assert "`coin = random.Random(0)`" in hit.hint
    assert story.observation("DIST003").state is UNSEEN


def test_ranks_that_the_test_leaves_out_made_no_call_too_many(tell: Any) -> None:
    story = tell.Story()
    story.text = ONCE_MORE
    story.wait(0, "DDP gradient all-reduce", 12)
    story.wait(1, "all_reduce", 5, 11)
    assert story.observation("DIST009").state is FLAGGED
    assert story.observation("DIST003").state is UNSEEN


def test_branches_that_meet_in_different_collectives(tell: Any) -> None:
    story = tell.Story()
    story.text = BRANCHES
    story.wait(0, "all_reduce", 5)
    story.wait(1, "broadcast", 7)
    look = story.observation("DIST009")
    assert look.state is FLAGGED
    assert (
        "`all_reduce` at `train.py:5` on rank 0 and `broadcast` at `train.py:7` on rank 1"
        in look.hits[0].message
    )
    assert story.observation("DIST003").state is UNSEEN


def test_a_deadlock_without_a_rank_test(tell: Any) -> None:
    story = tell.Story()
    story.text = "\n" * 80
    story.wait(0, "DDP gradient all-reduce", 24)
    story.wait(1, "barrier", 50)
    assert story.observation("DIST009").state is FLAGGED
    assert story.observation("DIST003").state is UNSEEN


@pytest.mark.parametrize(
    "words",
    [
        "[enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 128 vs 4",
        "Detected mismatch between collectives on ranks. Rank 0 is running collective: ALLREDUCE",
    ],
)
def test_a_crash_in_which_the_backend_names_the_mismatch(tell: Any, words: str) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    story.failures[1] = Failure("RuntimeError", words, (tell.frame(24),))
    look = story.observation("DIST009")
    assert look.state is FLAGGED
    assert "`train.py:24`" in look.hits[0].message


@pytest.mark.parametrize(
    ("lines", "apart"),
    [
        ([7, 9], True),  # rank 0 in its own call, the other one in what all ranks make
        ([9, 9], False),
    ],
)
def test_a_crash_of_a_rank_that_made_one_call_more(
    tell: Any, only: Any, lines: list[int], apart: bool
) -> None:
    story = tell.Story()
    story.text = GUARDED.replace("train()\ndist.d", "dist.all_reduce(total)\ndist.d").replace(
        "barrier()", "reduce(x, 0)"
    )
    story.ending = Ending.CRASHED
    words = "[enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 128 vs 4"
    for rank, line in enumerate(lines):
        lost = "Connection closed by peer [127.0.0.1]:1234"
        story.failures[rank] = Failure("RuntimeError", words if rank else lost, (tell.frame(line),))
        story.exit_codes[rank] = 1
    assert (story.observation("DIST003").state is FLAGGED) is apart
    assert (story.observation("DIST009").state is FLAGGED) is not apart
    if apart:
        found, _ = diagnose(story.evidence(), apply_rules(story.evidence(), only("DIST003", "DIST009"))[0])
        assert found is not None
        assert found.where[0].line == 7


def test_a_crash_for_another_reason(tell: Any) -> None:
    story = tell.Story()
    story.ending = Ending.CRASHED
    story.failures[1] = Failure(
        "RuntimeError", "Connection closed by peer [127.0.0.1]:1234", (tell.frame(24),)
    )
    assert {story.observation(c).state for c in ("DIST003", "DIST009")} == {UNSEEN}


def test_a_run_that_came_to_its_end(tell: Any) -> None:
    story = tell.honest()
    story.text = GUARDED
    assert {story.observation(c).state for c in ("DIST003", "DIST009")} == {CLEAN}


# ---- DIST006 -----------------------------------------------------------------------------------------------------


def test_ranks_that_start_ranks(tell: Any) -> None:
    story = tell.Story()
    for r in story.ranks:
        r.event("process", 60, op="spawn", target="worker", by="torch")
    look = story.observation("DIST006")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert "started `worker` in new processes at `train.py:60`" in look.hits[0].message


def test_a_process_made_by_hand(tell: Any) -> None:
    story = tell.Story()
    story.ranks[0].event("process", 60, op="fork", target="worker", by="")
    assert story.observation("DIST006").hits[0].ranks == (0,)


def test_a_helper_process_of_a_rank_that_trains(tell: Any) -> None:
    story = tell.honest()
    story.ranks[0].event("process", 60, op="spawn", target="upload", by="")
    assert story.observation("DIST006").state is CLEAN


def test_a_library_s_helper_and_a_shell_command(tell: Any) -> None:
    story = tell.Story()
    story.ranks[0].event("process", 60, op="subprocess", target="nvidia-smi", by="")
    story.ranks[0].event("process", 61, op="fork", target="", by="wandb")
    assert story.observation("DIST006").state is UNSEEN


# ---- DEV001 ------------------------------------------------------------------------------------------------------


def gpu_run(tell: Any, *devices: str) -> Any:
    story = tell.Story(world_size=len(devices))
    story.profile = "gpu"
    story.wrap(devices=devices)
    return story


def test_all_ranks_on_one_gpu(tell: Any) -> None:
    look = gpu_run(tell, "cuda:0", "cuda:0").observation("DEV001")
    assert look.state is FLAGGED
    assert "same device, `cuda:0`" in look.hits[0].message


def test_two_of_three_ranks_on_one_gpu(tell: Any) -> None:
    assert gpu_run(tell, "cuda:0", "cuda:1", "cuda:1").observation("DEV001").hits[0].ranks == (1, 2)


def test_a_gpu_for_each_rank(tell: Any) -> None:
    assert gpu_run(tell, "cuda:0", "cuda:1").observation("DEV001").state is CLEAN


def test_a_script_that_narrows_what_a_rank_can_see(tell: Any) -> None:
    story = gpu_run(tell, "cuda:0", "cuda:0")
    story.text = 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]\n'
    assert story.observation("DEV001").state is UNSEEN


def test_equal_device_numbers_on_different_nodes(tell: Any) -> None:
    story = gpu_run(tell, "cuda:0", "cuda:1", "cuda:0", "cuda:1")
    seen = story.evidence()
    ranks = tuple(
        replace(r, start=replace(r.start, local_rank=r.rank % 2))
        for r in seen.trace.ranks
        if r.start is not None
    )
    seen = replace(seen, trace=replace(seen.trace, ranks=ranks))
    from grader.checks.rule import load_rules

    rule = next(r for r in load_rules() if r.code == "DEV001")
    assert rule.check_run is not None
    assert rule.check_run(seen).state is CLEAN


def test_the_cpu_has_no_devices_to_choose(tell: Any) -> None:
    assert tell.honest().observation("DEV001").state is UNSEEN
