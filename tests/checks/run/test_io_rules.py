"""IO rules over runs: who saved, printed and downloaded."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.evaluation import Answer, Evaluation
from grader.model.finding import EvidenceKind, Severity
from grader.model.grade import State
from grader.model.run import Ending
from grader.model.trace import Group

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
LOG = "".join(f"epoch {n}/5: loss {1 / (n + 1):.3f}\n" for n in range(5))


# ---- IO001 -------------------------------------------------------------------------------------------------------


def test_every_rank_saves_to_one_path(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.save(rank, "model.pt")
    look = story.observation("IO001")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert "Ranks 0 and 1 all wrote `model.pt`" in look.hits[0].message
    assert look.hits[0].where[0].line == 40


def test_every_rank_saves_through_a_temporary_file(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.save(rank, f"tmp{rank}.pt")
        story.write(rank, "model.pt", op="rename")
    assert story.observation("IO001").hits[0].severity is Severity.ERROR


def test_who_renames_overwrites_no_bytes(tell: Any) -> None:
    story = tell.Story()
    story.text = "import os\nimport torch.distributed as dist\n" + "\n" * 41 + "os.replace(own, path)\n"
    for rank in range(2):
        story.write(rank, "model.pt", op="rename")
    (hit,) = story.observation("IO001").hits
    assert "`train.py:44` puts a file of its own in its place on every rank" in hit.message
    assert "bytes" not in hit.message
    assert "around `os.replace(own, path)` and what writes that file" in hit.hint


GONE = """import torch
import torch.distributed as dist

def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0

def save():
    if is_main():
        torch.save(net.state_dict(), "model.pt")

dist.init_process_group("gloo")
train()
{}
"""


@pytest.mark.parametrize("late", [True, False])
def test_a_save_under_a_test_that_no_group_answers_any_more(tell: Any, late: bool) -> None:
    story = tell.Story()
    ends = ["dist.destroy_process_group()", "save()"]
    story.text = GONE.format("\n".join(ends if late else reversed(ends)))
    for r in story.ranks:
        r.add("groups", Group("init", "gloo", r.rank, 2, 1800.0, None, tell.site(11), r.tick()))
        if late:
            r.add("groups", Group("destroy", "gloo", r.rank, 2, None, None, tell.site(13), r.tick()))
        story.save(r.rank, "model.pt", line=9)
    (hit,) = story.observation("IO001").hits
    assert "around" not in hit.hint, "a test stands there already"
    if late:
        assert "`train.py:13` had taken the process group down before" in hit.message
        assert "Move `save()` from `train.py:14` above `dist.destroy_process_group()`" in hit.hint
        assert {9, 13, 14} <= {p.line for p in hit.where}
    else:
        assert "lets all ranks through" in hit.hint


def test_every_rank_saves_a_copy_of_its_own(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    for rank in range(2):
        story.save(rank, f"model-{rank}.pt")
    look = story.observation("IO001")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.WARNING


def test_every_rank_writes_the_metrics(tell: Any) -> None:
    story = tell.Story()
    story.save(0, "model.pt")
    for rank in range(2):
        story.write(rank, "metrics.json")
    assert story.observation("IO001").hits[0].severity is Severity.WARNING


APPENDING = """import csv
import torch.distributed as dist
dist.init_process_group("gloo")
def add(row):
    with open("out/rows.csv", "a") as file:
        csv.writer(file).writerow(row)
for turn in range(dist.get_world_size()):
    TEST add((turn, dist.get_rank()))
"""


@pytest.mark.parametrize(
    ("test", "state"),
    [
        ("if samples:", FLAGGED),
        ("if dist.get_rank() < turn:", FLAGGED),
        ("if dist.get_rank() == turn:", CLEAN),
    ],
)
def test_every_rank_adds_to_a_file_that_the_task_asks_for(tell: Any, test: str, state: State) -> None:
    story = tell.Story()
    story.text = APPENDING.replace("TEST", test)
    story.evaluation = Evaluation(None, answers={"rows": Answer(1.0, "Right.", "rows.csv")})
    story.save(0, "model.pt")
    for rank in range(2):
        story.write(rank, "rows.csv", line=5)
    look = story.observation("IO001")
    assert look.state is state
    if state is FLAGGED:
        assert [p.line for p in look.hits[0].where] == [5, 8]
        assert "dist.all_gather_object(rows, row)" in look.hits[0].hint
    story.evaluation = Evaluation(None)
    assert story.observation("IO001").state is CLEAN, "a file that nobody asks for"


def test_rank_0_saves_alone(tell: Any) -> None:
    story = tell.honest()
    story.save(0, "best.pt")
    look = story.observation("IO001")
    assert look.state is CLEAN
    assert "Rank 0 alone wrote `best.pt` and `model.pt`" in look.reason


def test_a_distributed_checkpoint_is_written_by_all(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.save(rank, "checkpoint", api="dcp")
        story.write(rank, f"checkpoint/__{rank}_0.pt")
    story.save(0, "model.pt")
    assert story.observation("IO001").state is CLEAN


def test_sharded_saves(tell: Any) -> None:
    story = tell.Story()
    story.wrap("fsdp2")
    for rank in range(2):
        story.save(rank, f"shard-{rank}.pt")
    assert story.observation("IO001").state is CLEAN


def test_the_state_of_each_rank_s_generators(tell: Any) -> None:
    story = tell.Story()
    story.wrap()
    story.save(0, "model.pt")
    for rank in range(2):
        story.save(rank, f"generators-{rank}.pt", num_tensors=2)
    assert story.observation("IO001").state is CLEAN


def test_nothing_saved(tell: Any) -> None:
    story = tell.Story()
    assert story.observation("IO001").state is CLEAN
    story.ending = Ending.CRASHED
    assert story.observation("IO001").state is UNSEEN


# ---- IO002 -------------------------------------------------------------------------------------------------------


def test_every_rank_prints_the_same_lines(tell: Any) -> None:
    story = tell.Story()
    story.logs = ((LOG, ""), (LOG, ""))
    look = story.observation("IO002")
    assert look.state is FLAGGED
    assert look.hits[0].evidence is EvidenceKind.OUTSIDE
    assert "5 of rank 1's 5 lines" in look.hits[0].message


def test_every_rank_prints_its_own_numbers(tell: Any) -> None:
    story = tell.Story()
    other = "".join(f"epoch {n}/5: loss {1 / (n + 2):.3f}\n" for n in range(5))
    story.logs = ((LOG + "saved model.pt\n", ""), (other, ""))
    assert story.observation("IO002").state is FLAGGED


def test_the_line_that_prints_is_named(tell: Any) -> None:
    story = tell.Story()
    story.text = 'print("hello")\nfor n in range(5):\n    print(f"epoch {n}/5: loss {loss(n):.3f}")\n'
    story.logs = ((LOG, ""), (LOG, ""))
    assert [p.line for p in story.observation("IO002").hits[0].where] == [3]


@pytest.mark.parametrize(
    "tag",
    [
        "[rank {}] ",
        "[{}] ",
        "rank={}, ",
        "(gpu {}) ",
        "{}: ",
        "[{}/2] ",
        "cuda:{} ",
        "Rank{} | ",
        "r{} ",
        "<{}> ",
    ],
)
def test_lines_that_name_their_rank(tell: Any, tag: str) -> None:
    story = tell.Story()
    story.logs = tuple(
        ("".join(tag.format(r) + line + "\n" for line in LOG.splitlines()), "") for r in range(2)
    )
    assert story.observation("IO002").state is CLEAN


def test_rank_0_prints_alone(tell: Any) -> None:
    story = tell.Story()
    story.logs = ((LOG, ""), ("hello\n", ""))
    assert story.observation("IO002").state is CLEAN


def test_a_rank_with_something_of_its_own_to_say(tell: Any) -> None:
    story = tell.Story()
    story.logs = ((LOG, ""), ("serving\nloading shards\nqueue is empty\ndone\n", ""))
    assert story.observation("IO002").state is CLEAN


STOPPING = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(net)
for epoch in range(10):
    loss = train(model)
    loss.backward()
    if evaluate(model) > 0.9:
        print(f"Early stopping after epoch {epoch}")
        break
"""


def test_one_line_that_every_rank_prints_at_the_end_is_named_as_a_hint(tell: Any) -> None:
    story = tell.Story()
    story.text = STOPPING
    story.logs = ((LOG + "Early stopping after epoch 4\n", ""), ("Early stopping after epoch 4\n", ""))
    (hit,) = story.observation("IO002").hits
    assert hit.severity is Severity.HINT
    assert hit.message.startswith("`train.py:10` was printed by all 2 ranks: “Early stopping after epoch 4”.")
    assert [place.line for place in hit.where] == [10]
    # What one rank alone printed, or what its text gives to one rank, is not.
    story.logs = ((LOG + "Early stopping after epoch 4\n", ""), ("hello\n", ""))
    assert story.observation("IO002").state is CLEAN


# ---- IO003 -------------------------------------------------------------------------------------------------------


def ask(story: Any, rank: int, line: int = 15) -> None:
    story.ranks[rank].event(
        "download", line, dataset="FashionMNIST", root="data", guarded=None, started=False
    )


def test_all_ranks_download_at_once(tell: Any) -> None:
    story = tell.Story()
    story.group()
    for rank in range(2):
        ask(story, rank)
    look = story.observation("IO003")
    assert look.state is FLAGGED
    assert "Ranks 0 and 1 asked to download `FashionMNIST`" in look.hits[0].message
    assert "in place this time" in look.hits[0].message


def test_downloads_under_a_lock_come_one_after_the_other(tell: Any) -> None:
    story = tell.Story()
    story.group()
    for rank in range(2):
        ask(story, rank)
    line = story.observation("IO003").hits[0].where[0].line
    data = "FashionMNIST(root, download=True)"
    for guard, state in (("FileLock(path)", CLEAN), ("open(path)", FLAGGED)):
        story.text = "\n" * (line - 1) + f"with {guard}: train_set = {data}"
        assert story.observation("IO003").state is state


def test_a_barrier_that_comes_too_late(tell: Any) -> None:
    story = tell.Story()
    story.group()
    for rank in range(2):
        ask(story, rank)
        story.collective(rank, "barrier", 16)
    assert story.observation("IO003").state is FLAGGED


def test_two_branches_around_a_barrier(tell: Any) -> None:
    story = tell.Story()
    story.group()
    ask(story, 0)
    story.collective(0, "barrier", 17)
    story.collective(1, "barrier", 14)
    ask(story, 1)
    ask(story, 0, 20)
    assert story.observation("IO003").state is CLEAN


def test_rank_0_downloads_before_the_group_begins(tell: Any) -> None:
    story = tell.Story(world_size=3)
    ask(story, 0)
    story.group()
    for rank in (1, 2):
        ask(story, rank)
    assert story.observation("IO003").state is CLEAN


def test_rank_0_alone_downloads(tell: Any) -> None:
    story = tell.Story()
    story.group()
    ask(story, 0)
    assert "Rank 0 alone" in story.observation("IO003").reason


def test_rank_0_alone_downloads_and_nobody_waits(tell: Any) -> None:
    """With the files in place a run goes well: it is no proof against what the text shows."""
    story = tell.Story()
    story.group()
    ask(story, 0)
    story.text = (
        "from torchvision import datasets; import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"
        "if dist.get_rank() == 0: datasets.FashionMNIST('data', download=True)\n"
        "train_set = datasets.FashionMNIST('data')\n"
    )
    assert story.observation("IO003").state is UNSEEN


def test_no_download_at_all(tell: Any) -> None:
    assert tell.honest().observation("IO003").state is CLEAN


# ---- IO005 -------------------------------------------------------------------------------------------------------


def test_the_scorer_finds_the_prefix(tell: Any) -> None:
    story = tell.Story()
    story.save(0, "model.pt", prefix="module.")
    story.evaluation = Evaluation(None, artifact="model.pt", prefix="module.")
    look = story.observation("IO005")
    assert look.state is FLAGGED
    assert look.hits[0].evidence is EvidenceKind.EVALUATION
    assert look.hits[0].where[0].line == 40


def test_a_prefix_in_a_run_that_was_not_scored(tell: Any) -> None:
    story = tell.Story()
    story.save(0, "model.pt", prefix="module.")
    assert story.observation("IO005").hits[0].evidence is EvidenceKind.TRACE


def test_bare_names(tell: Any) -> None:
    story = tell.honest()
    assert story.observation("IO005").state is CLEAN
    story.evaluation = Evaluation(None, artifact="model.pt")
    assert story.observation("IO005").evidence == (EvidenceKind.EVALUATION,)
