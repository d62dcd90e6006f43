"""A silent run is ended when it stands still in a collective, and never because it is merely silent."""

from __future__ import annotations

import pytest

from grader.model.run import Ending
from tests.launch.conftest import Launch

SHORT = {"silence_s": 0.7, "stack_gap_s": 0.7}
START = """
import os, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank = int(os.environ["RANK"])
"""
GROUP = START + 'dist.init_process_group("gloo")\nstore = dist.distributed_c10d._get_default_store()\n'
MODEL = GROUP + "model = DDP(torch.nn.Linear(2, 2))\nx = torch.ones(1, 2)\n"
NEVER_SENT = "if rank == 1:\n    dist.recv(torch.ones(1), 0, tag=7)\n"

# Each blocks both ranks for ever; the operations that the stacks must name, rank by rank.
BLOCKED = {
    "different collectives": (
        GROUP + "dist.broadcast(torch.ones(1), 1) if rank == 0 else dist.all_gather_object([None, None], 1)",
        ["broadcast", "all_gather_object"],
    ),
    "a new group on one rank": (
        GROUP + "dist.barrier() if rank == 0 else dist.new_group([0, 1])",
        ["barrier", "new_group"],
    ),
    "reading the store, waiting for work": (
        GROUP
        + "if rank == 0:\n    store.get('no')\nwork = dist.all_reduce(x := torch.ones(1), async_op=True)\nwork.wait()",
        ["store operation", "asynchronous collective"],
    ),
    "one rank joins the group": (
        START + "if rank == 0:\n    dist.init_process_group('gloo')\n"
        "store = dist.TCPStore('127.0.0.1', int(os.environ['MASTER_PORT']))\nstore.wait(['never'])",
        ["rendezvous (init_process_group)", "store operation"],
    ),
    "a store that nobody keeps": (
        START + "os.environ['MASTER_PORT'] = '1'\ndist.init_process_group('gloo')",
        ["rendezvous (init_process_group)", "rendezvous (init_process_group)"],
    ),
    "one rank wraps the model": (
        GROUP + "if rank == 0:\n    DDP(torch.nn.Linear(2, 2))\n" + NEVER_SENT,
        ["DDP construction", "recv"],
    ),
    "second forward pass on one rank": (
        MODEL + "for _ in range(1 + (rank == 0)):\n    model(x).sum().backward()\n" + NEVER_SENT,
        ["DDP synchronisation", "recv"],
    ),
    "one more step on one rank": (
        MODEL + "for _ in range(3 + (rank == 0)):\n    model(x).sum().backward()\n" + NEVER_SENT,
        ["DDP gradient all-reduce", "recv"],
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


# Each is silent for longer than the limits above, with another rank waiting in a collective, and then goes on.
HONEST = {
    "group while rank 0 prepares": START
    + "if rank == 0:\n    time.sleep(3)\ndist.init_process_group('gloo')\n",
    "barrier while rank 0 computes": GROUP
    + "end = time.process_time() + 2\nwhile rank == 0 and time.process_time() < end:\n    pass\ndist.barrier()\n",
    "gradients while rank 0 is slow": MODEL + "time.sleep(3 * (rank == 0)); model(x).sum().backward()\n",
    "store while rank 0 prepares": MODEL
    + "if rank == 0:\n    time.sleep(3); store.set('key', 'x')\nstore.get('key')\ndist.barrier()\n",
    "tiny collectives without a word": MODEL + "end = time.time() + 3\nmore = torch.ones(1)\n"
    "while more.item():\n    more = torch.tensor([float(time.time() < end)])\n    dist.broadcast(more, 0)\n",
}


@pytest.mark.parametrize("name", HONEST)
def test_waiting_for_a_slow_rank_is_no_deadlock_and_survives_being_looked_at(
    launch: Launch, name: str
) -> None:
    ran = launch(HONEST[name] + "print('went on')", wall_s=30.0, **SHORT)
    assert ran.record.ending is Ending.COMPLETED, (ran.record.ending_reason, ran.err(0), ran.err(1))
    assert [ran.out(0), ran.out(1)] == ["went on\n"] * 2


def test_a_rank_that_left_while_another_waits_for_it_is_told_apart_from_a_crash(launch: Launch) -> None:
    # The store stays, as torchrun's agent keeps it, so nothing tells rank 1 that nobody will come. Rank 0 waits until
    # rank 1 has the group: one that leaves while the group is being formed breaks the other's connection.
    leaves = "if rank == 0:\n    store.get('formed')\n    os._exit(0)\n"
    script = GROUP + leaves + "store.set('formed', '')\nstore.get('never')"
    ran = launch(script, wall_s=30.0, **SHORT)
    assert ran.record.ending is Ending.DEADLOCKED, (ran.record.ending_reason, ran.err(0), ran.err(1))
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
