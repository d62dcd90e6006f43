"""A script that starts its ranks itself: who joins a group is a rank, whatever started it, and nobody else is."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from grader.launch.spec import LaunchSpec
from grader.model.launch_arguments import NAMES_IN_BRACES
from grader.run.conformance.traces import SEARCH
from tests.launch.conftest import Launch, Launched

SCRIPT = """
    import os, sys
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def work(rank, world_size, method):
        torch.manual_seed(3)
        print("before")
        dist.init_process_group("gloo", rank=rank, world_size=world_size)
        print(f"rank {rank}")
        total = torch.ones(1)
        dist.all_reduce(total)
        assert total.item() == world_size
        MORE
        dist.destroy_process_group()

    def helper(queue):
        queue.put(os.getpid())

    if __name__ == "__main__":
        method, world_size = sys.argv[1], int(sys.argv[2])
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = sys.argv[3]
        context = mp.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=helper, args=(queue,))
        process.start()
        process.join()
        mp.start_processes(work, args=(world_size, method), nprocs=world_size, start_method=method)
        print("all done")
"""
ARGUMENTS = ("{nproc}", "{master_port}")


def start(launch: Launch, method: str = "fork", more: str = "pass", **options: Any) -> Launched:
    fields: dict[str, Any] = {
        "launcher": "python",
        "probe": True,
        "sealed": True,
        "argv": (method, *ARGUMENTS),
    }
    return launch(SCRIPT.replace("MORE", more), **(fields | options))


def events(ran: Launched, rank: int) -> list[dict[str, Any]]:
    lines = (ran.folder / "record" / "trace" / f"rank{rank}.trace").read_text().splitlines()
    return [json.loads(line.partition("\t")[2]) for line in lines]


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_each_process_in_the_group_is_a_rank_however_it_was_started(launch: Launch, method: str) -> None:
    ran = start(launch, method)
    assert ran.record.ending.value == "completed", ran.record.ending_reason
    assert [rank.exit_code for rank in ran.record.ranks] == [0, 0]
    for rank in (0, 1):
        told = events(ran, rank)
        kinds = [event["e"] for event in told]
        assert (kinds[0], kinds[-1], kinds.count("start")) == ("start", "end", 1)
        assert told[0]["rank"] == rank
        # What was done before the group was joined is told as well, and what helpers did is not.
        assert "seeded" in kinds[: kinds.index("group")]
        assert "all_reduce" in [event.get("name") for event in told]
    assert [(rank.foreign_lines, rank.gone_lines) for rank in ran.record.ranks] == [(0, 0), (0, 0)]
    # Streams are a rank's own from its group on; what came before is the first process's.
    assert ran.out(1) == "rank 1\n"
    assert ran.out(0).count("before") == 2
    assert "rank 0\n" in ran.out(0)
    assert ran.out(0).endswith("all done\n")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_rank_finds_no_key_and_what_it_writes_into_its_trace_is_foreign(
    launch: Launch, method: str
) -> None:
    ran = start(launch, method, f"exec({textwrap.dedent(SEARCH)!r}, {{}})")
    assert ran.record.ending.value == "completed", ran.record.ending_reason
    _rank, modules, keys, words, *_ = ran.out(1).splitlines()
    assert (modules, keys, words) == ("[]", "{False}", "set()")
    assert [(rank.foreign_lines, rank.gone_lines) for rank in ran.record.ranks] == [(1, 0), (1, 0)]


def test_a_crash_is_told_with_the_rank_and_the_line(launch: Launch) -> None:
    ran = start(launch, "spawn", "assert rank == 0, 'not mine'")
    assert ran.record.ending.value == "crashed"
    failure = ran.record.ranks[1].failure
    assert failure is not None
    assert (failure.type, failure.message) == ("AssertionError", "not mine")
    assert failure.frames[0].function == "work"
    assert "Rank 1 raised AssertionError at train.py:" in ran.record.ending_reason
    assert "exception" in [event["e"] for event in events(ran, 1)]


def test_how_a_rank_was_killed_is_told_by_the_parent_that_buried_it(launch: Launch) -> None:
    ran = start(launch, "fork", "os.kill(os.getpid(), 11) if rank == 1 else dist.barrier()")
    assert ran.record.ending.value == "crashed"
    assert ran.record.ending_reason.startswith("Rank 1 was ended by SIGSEGV")


def test_the_line_that_each_rank_waits_at_is_told(launch: Launch) -> None:
    ran = start(
        launch,
        "fork",
        "dist.barrier() if rank == 1 else dist.all_reduce(total)",
        silence_s=1.0,
        stack_gap_s=1.0,
    )
    assert ran.record.ending.value == "deadlocked"
    assert "rank 0 waits at train.py:15 (all_reduce)" in ran.record.ending_reason
    assert "rank 1 waits at train.py:15 (barrier)" in ran.record.ending_reason


def test_a_process_too_many_is_told(launch: Launch) -> None:
    ran = start(launch, argv=("fork", "3", "{master_port}"))
    assert ran.record.ending.value == "crashed"
    assert "A process joined as rank 2; the task has 2 ranks" in ran.record.ending_reason


def test_a_script_that_starts_nothing_is_one_rank(launch: Launch) -> None:
    ran = launch("import torch\nprint(torch.ones(1).sum())", launcher="python", probe=True, sealed=True)
    assert ran.record.ending.value == "completed"
    assert ran.record.ending_reason == "The script and 1 of its 2 ranks ended with exit code 0."
    assert [event["e"] for event in events(ran, 0)][:1] == ["start"]
    assert events(ran, 1) == []


def test_an_error_before_any_rank_is_the_scripts(launch: Launch) -> None:
    ran = launch("import torch\ntorch.ones(1) + 'x'", launcher="python", probe=True, sealed=True)
    assert ran.record.ending.value == "crashed"
    assert ran.record.ending_reason == "Rank 0 raised TypeError at train.py:2 (exit code 1)."


def test_an_error_after_its_ranks_is_the_scripts(launch: Launch) -> None:
    script = SCRIPT.replace("MORE", "pass").replace('print("all done")', "raise KeyError('late')")
    ran = launch(script, launcher="python", probe=True, argv=("fork", *ARGUMENTS))
    assert ran.record.ending.value == "crashed"
    assert "raised KeyError at train.py" in ran.record.ending_reason


def test_what_a_task_may_write_in_braces_is_filled_in() -> None:
    """The names that a task's author is told of are those that a run knows."""
    spec = LaunchSpec("a", "python", 2, "", (*NAMES_IN_BRACES, "{else}"), "", "", "", "", "", 9.0)
    assert [text for text in spec.arguments(29500) if "{" in text] == ["{else}"]


def test_arguments_are_the_same_under_every_launcher(launch: Launch) -> None:
    script = "import sys; print(sys.argv[1:])"
    asked = ("--epochs", "20", "--of={world_size}", "{node_rank}", "{else}")
    said = "['--epochs', '20', '--of=2', '0', '{else}']\n"
    for launcher in ("fork", "python"):
        assert launch(script, launcher=launcher, argv=asked).out() == said
