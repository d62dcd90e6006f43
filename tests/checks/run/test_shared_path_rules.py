"""IO004 and IO006 over runs: folders and files that several ranks made, on one machine and on several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Failure
from grader.model.trace import Start

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE

SAVED_LOCALLY = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
if local_rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
"""


def test_a_rank_died_because_another_had_made_the_folder(tell: Any) -> None:
    story = tell.Story()
    story.failures[1] = Failure("FileExistsError", "[Errno 17] File exists: 'logs'", (tell.frame(31),))
    story.exit_codes[1] = 1
    look = story.observation("IO004")
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert look.hits[0].ranks == (1,)
    assert look.hits[0].where[0].line == 31


def test_a_file_that_two_ranks_opened_for_writing(tell: Any) -> None:
    story = tell.Story()
    story.write(0, "log.txt")
    story.write(1, "log.txt")
    look = story.observation("IO004")
    assert look.state is FLAGGED
    assert "`log.txt`" in look.hits[0].message
    assert look.hits[0].severity is Severity.WARNING


def test_a_line_that_one_rank_alone_came_by_is_not_to_blame(tell: Any) -> None:
    story = tell.Story()
    story.write(0, "log.csv", line=7)  # rank 0 writes the heading
    for rank in (0, 1):
        story.write(rank, "log.csv", line=19)
    (hit,) = story.observation("IO004").hits
    assert [place.line for place in hit.where] == [19]


def test_checkpoints_and_files_of_one_rank_are_not_this_rule_s(tell: Any) -> None:
    story = tell.Story()
    story.write(0, "log.txt")
    story.write(0, "model.pt")
    story.write(1, "model.pt")
    story.write(0, "runs", "mkdir")
    assert story.observation("IO004").state is CLEAN
    story.write(1, "runs", "mkdir")
    assert story.observation("IO004").state is UNSEEN, "nobody lost this time"


def machines(story: Any) -> Any:
    """The same run, as if each rank had a machine of its own."""
    seen = story.evidence()
    ranks = tuple(
        replace(r, start=Start("2.6", "3.11", r.rank, 0, 2, 100 + r.rank, r.rank)) for r in seen.trace.ranks
    )
    return replace(seen, trace=replace(seen.trace, ranks=ranks))


def test_a_save_per_machine_is_an_error_on_two_machines(tell: Any) -> None:
    from grader.checks.rule import load_rules

    check = next(r for r in load_rules() if r.code == "IO006").check_run
    assert check is not None
    story = tell.Story()
    story.text = SAVED_LOCALLY
    story.save(0, "model.pt")
    assert story.observation("IO006").state is UNSEEN
    story.save(1, "model.pt")
    look = check(machines(story))
    assert look.state is FLAGGED
    assert look.hits[0].severity is Severity.ERROR
    assert look.hits[0].where[0].line == 10
    once = tell.Story()
    once.text = SAVED_LOCALLY
    once.save(0, "model.pt")
    assert check(machines(once)).state is CLEAN
