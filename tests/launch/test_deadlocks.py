"""A silent run is ended when it stands still in a collective, and never because it is merely silent."""

from __future__ import annotations

import pytest

from grader.model.run import Ending
from tests.launch.conftest import Launch

SHORT = {"silence_s": 1.0, "stack_gap_s": 1.0}
START = """
import os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank = int(os.environ["RANK"])
"""
GROUP = START + 'dist.init_process_group("gloo")\n'
MODEL = GROUP + "model = DDP(torch.nn.Linear(2, 2))\nx = torch.ones(1, 2)\n"

# Each blocks both ranks for ever; the operations that the stacks must name, rank by rank.
BLOCKED = {
    "collectives that do not match": (
        GROUP
        + "dist.barrier() if rank == 0 else dist.all_reduce(torch.ones(1), group=dist.new_group([0, 1]))",
        ["barrier", "new_group"],
    ),
    "rank 1 never calls": (
        GROUP + "if rank == 0: dist.broadcast(torch.ones(1), 1)\nelse: dist.barrier()",
        ["broadcast", "barrier"],
    ),
    "objects": (
        GROUP
        + "if rank == 0: dist.all_gather_object([None, None], 1)\nelse: dist.recv(torch.ones(1), 0, tag=7)",
        ["all_gather_object", "recv"],
    ),
    "reading the store": (
        GROUP
        + "if rank == 0: dist.barrier()\nelse: store = dist.distributed_c10d._get_default_store(); store.get('no')",
        ["barrier", "store operation"],
    ),
    "one rank joins the group": (
        START
        + 'if rank == 0: dist.init_process_group("gloo")\nelse: dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]))'
        '.wait(["never"])',
        ["rendezvous (init_process_group)", "asynchronous collective"],
    ),
    "one rank wraps the model": (
        GROUP + "if rank == 0: DDP(torch.nn.Linear(2, 2))\nelse: dist.recv(torch.ones(1), 0, tag=7)",
        ["DDP construction", "recv"],
    ),
    "first forward pass on one rank": (
        MODEL
        + "for _ in range(2): model(x).sum().backward() if rank == 0 or _ == 0 else dist.barrier(dist.new_group([1]))\n"
        "if rank == 1: dist.recv(torch.ones(1), 0, tag=7)",
        ["DDP synchronisation", "recv"],
    ),
    "one more step on rank 0": (
        MODEL
        + "for _ in range(3 + (rank == 0)): model(x).sum().backward()\nif rank == 1: dist.recv(torch.ones(1), 0, tag=7)",
        ["DDP gradient all-reduce", "recv"],
    ),
    "buffers": (
        GROUP
        + "model = DDP(torch.nn.BatchNorm1d(2))\nfor _ in range(3): model(torch.rand(4, 2)).sum().backward()\n"
        "dist.recv(torch.ones(1), 0, tag=7) if rank else dist.recv(torch.ones(1), 1, tag=8)",
        ["recv", "recv"],
    ),
}


@pytest.mark.parametrize("name", BLOCKED)
def test_every_kind_of_blocked_collective_is_recognised(launch: Launch, name: str) -> None:
    script, operations = BLOCKED[name]
    ran = launch(script, wall_s=30.0, **SHORT)
    seen = [rank.waiting.operation if rank.waiting else None for rank in ran.record.ranks]
    assert (ran.record.ending, seen) == (Ending.DEADLOCKED, operations), (
        ran.record.ending_reason,
        ran.err(0),
        ran.err(1),
    )


# Each is silent for longer than the limit of silence, with all others waiting in a collective, and then goes on.
HONEST = {
    "barrier while rank 0 prepares": "if rank == 0: time.sleep(4)\ndist.barrier()",
    "group while rank 0 prepares": "",
    "gradients while rank 0 is slow": "time.sleep(4 * (rank == 0)); model(x).sum().backward()",
    "rank 0 computes": "end = time.process_time() + 3\nwhile rank == 0 and time.process_time() < end: pass\ndist.barrier()",
    "store while rank 0 prepares": "store = dist.distributed_c10d._get_default_store()\n"
    "if rank == 0: time.sleep(4); store.set('key', 'x')\nelse: store.get('key')\ndist.barrier()",
    "tiny collectives without a word": "end = time.time() + 4\nmore = torch.ones(1)\n"
    "while more.item(): more = torch.tensor([float(time.time() < end)]); dist.broadcast(more, 0)",
}


@pytest.mark.parametrize("name", HONEST)
def test_waiting_for_a_slow_rank_is_no_deadlock_and_survives_being_looked_at(
    launch: Launch, name: str
) -> None:
    if name == "group while rank 0 prepares":
        script = START + 'if rank == 0: time.sleep(4)\ndist.init_process_group("gloo")\n'
    else:
        script = MODEL + HONEST[name]
    ran = launch(script + "\nprint('went on')", wall_s=30.0, **SHORT)
    assert ran.record.ending is Ending.COMPLETED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    assert [ran.out(0), ran.out(1)] == ["went on\n"] * 2


def test_a_rank_that_left_while_another_waits_for_it_is_told_apart_from_a_crash(launch: Launch) -> None:
    # The store stays, as torchrun's agent keeps it, so nothing tells rank 1 that nobody will come.
    script = GROUP + "if rank: dist.distributed_c10d._get_default_store().get('never')\nelse: os._exit(0)"
    ran = launch(script, wall_s=30.0, **SHORT)
    assert ran.record.ending is Ending.DEADLOCKED
    first, second = ran.record.ranks
    assert (first.exit_code, first.waiting) == (0, None)
    assert second.waiting is not None
    assert second.killed_by_judge


def test_a_rank_that_closes_every_descriptor_can_still_be_ended_in_time(launch: Launch) -> None:
    ran = launch("import os, time\nos.closerange(3, 4096)\ntime.sleep(60)", wall_s=2.0, **SHORT)
    assert ran.record.ending is Ending.TIMED_OUT
    assert ran.record.wall_s < 7


def test_spawned_children_that_all_stand_still_are_a_deadlock(launch: Launch) -> None:
    ran = launch(
        """
        import os, time
        import torch.multiprocessing as mp

        def child(index):
            time.sleep(100)

        if __name__ == "__main__":
            mp.start_processes(child, nprocs=2, start_method="fork")
        """,
        wall_s=30.0,
        **SHORT,
    )
    assert ran.record.ending is Ending.DEADLOCKED
    assert [rank.waiting.operation for rank in ran.record.ranks if rank.waiting] == [
        "child processes (mp.spawn)"
    ] * 2
