"""All that ranks exchange is counted, call by call and byte by byte, for each line of the script."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.evaluate.scorer.run_accounts import _gaps
from tests.probe.warm_ranks import Ran

START = "dist.init_process_group('gloo')\nrank = dist.get_rank()\nworld = dist.get_world_size()\n"
RING = (
    START
    + """\
chunk = torch.ones(25)
for _ in range(100):
    sent = dist.isend(chunk, (rank + 1) % world)
    dist.recv(torch.empty(25), (rank - 1) % world)
    sent.wait()
dist.barrier()
dist.destroy_process_group()
"""
)


def told(ran: Ran, rank: int = 0) -> set[tuple[str, int | None, int, int | None]]:
    """(name, other rank, calls, bytes) of each line."""
    return {(one.name, one.peer, one.calls, one.bytes) for one in ran.ranks[rank].traffic}


def test_a_ring_by_hand(ranks: Callable[..., Ran]) -> None:
    """Of a hundred rounds every one counts, though only some are told as they are made."""
    ran = ranks(RING, nproc=3)
    for rank in range(3):
        ahead, behind = (rank + 1) % 3, (rank - 1) % 3
        assert told(ran, rank) == {
            ("isend", ahead, 100, 10_000),
            ("recv", behind, 100, 10_000),
            ("barrier", None, 1, 0),
        }
        (send,) = (one for one in ran.ranks[rank].traffic if one.name == "isend")
        assert send.site is not None
        assert (send.site.path, send.site.line, send.ranks) == ("train.py", 7, None)


# What two ranks write → what rank 0 tells of it.
WAYS: dict[str, tuple[str, set[tuple[str, int | None, int, int | None]]]] = {
    "a batch of messages": (
        """\
ops = [dist.P2POp(dist.isend, torch.ones(4), 1 - rank), dist.P2POp(dist.irecv, torch.empty(4), 1 - rank)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
""",
        {("isend", 1, 1, 16), ("irecv", 1, 1, 16)},
    ),
    "whoever sent": (
        "dist.send(torch.ones(4), group_dst=0) if rank else dist.recv(torch.empty(4))",
        {("recv", 1, 1, 16)},
    ),
    "what a rank puts in, wherever it stands": (
        """\
x = torch.ones(4, dtype=torch.float64)
dist.all_gather([torch.empty(4, dtype=torch.float64) for _ in range(2)], x)
dist.all_to_all_single(output=torch.empty(4, dtype=torch.float64), input=x)
dist.all_reduce(op=dist.ReduceOp.MAX, tensor=x)
""",
        {("all_gather", None, 1, 32), ("all_to_all_single", None, 1, 32), ("all_reduce", None, 1, 32)},
    ),
    "objects, whose size nobody knows": (
        "dist.broadcast_object_list([rank], src=0)",
        {("broadcast_object_list", None, 1, None)},
    ),
    "below all names": (
        """\
from torch.distributed import _functional_collectives as funcol
funcol.wait_tensor(funcol.all_reduce(torch.ones(4), 'sum', dist.group.WORLD))
""",
        {("all_reduce", None, 1, 16)},
    ),
    "through the store": (
        "dist.distributed_c10d._get_default_store().set(f'mine{rank}', 'x')",
        {("store.set", None, 1, None)},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_to_exchange(ranks: Callable[..., Ran], way: str) -> None:
    script, expected = WAYS[way]
    assert told(ranks(START + script + "\ndist.barrier()")) == {*expected, ("barrier", None, 1, 0)}


def test_what_ddp_sends_for_itself_is_nobodys_line(ranks: Callable[..., Ran]) -> None:
    ran = ranks(START + "DDP(nn.Linear(4, 2))(torch.ones(1, 4)).sum().backward()")
    assert told(ran) == set()


def test_a_group_of_some_ranks_is_told(ranks: Callable[..., Ran]) -> None:
    ran = ranks(
        START + "pair = dist.new_group([0, 2])\nif rank != 1: dist.all_reduce(torch.ones(1), group=pair)",
        nproc=3,
    )
    (one,) = ran.ranks[2].traffic
    assert (one.name, one.ranks, one.calls) == ("all_reduce", (0, 2), 1)


# What two ranks write → how many collectives nobody was seen to call.
HIDDEN = {
    "everything in sight": (
        """\
x = torch.ones(4)
dist.all_reduce(x), dist.broadcast(x, 0), dist.reduce(x, 0), dist.barrier()
dist.all_gather_object([None, None], rank), dist.broadcast_object_list([rank], 0)
dist.gather_object(rank, [None, None] if rank == 0 else None)
dist.scatter_object_list([None], [1, 2] if rank == 0 else None)
dist.send_object_list([1], 1) if rank == 0 else dist.recv_object_list([None], 0)
dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
dist.all_reduce(x, group=dist.new_group([0, 1]))
""",
        0,
    ),
    "past the group, at its backend": (
        "dist.barrier()\ndist.group.WORLD._get_backend(torch.device('cpu')).allreduce([torch.ones(4)]).wait()",
        1,
    ),
    "in a wrapper, which exchanges on its own": (
        "DDP(nn.Linear(4, 2))(torch.ones(1, 4)).sum().backward()",
        0,
    ),
}


@pytest.mark.parametrize("way", HIDDEN)
def test_what_is_given_to_the_backend_directly_is_missed(ranks: Callable[..., Ran], way: str) -> None:
    script, unseen = HIDDEN[way]
    ran = ranks(START + script + "\ndist.destroy_process_group()")
    for rank in ran.ranks:
        gaps = list(_gaps(rank))
        assert gaps == (
            [f"Rank {rank.rank}'s process group ran more collectives than were seen to be called: {unseen}."]
            if unseen
            else []
        )


BROUGHT = """\
part = torch.zeros(4) if rank else torch.tensor([1.0, -3.0, 2.0, 0.5], requires_grad=True)
dist.all_reduce(part.detach())
dist.broadcast(torch.full((2,), 7.0 * rank), src=1)
dist.all_gather([torch.empty(3, dtype=torch.int64) for _ in range(2)], torch.arange(3) * rank)
dist.send(torch.ones(1), 1) if rank == 0 else dist.recv(torch.ones(1), 0)
dist.all_reduce(torch.ones(100_000))
dist.barrier()
dist.destroy_process_group()
"""


def test_the_largest_number_that_a_rank_puts_in(ranks: Callable[..., Ran]) -> None:
    """Before the sum takes its place; unknown of what comes from others, and of what takes time to look at."""
    ran = ranks(START + BROUGHT)
    told = [[(one.name, one.largest) for one in rank.traffic] for rank in ran.ranks]
    both = ("all_reduce", None), ("barrier", None)
    assert told[0] == [("all_reduce", 3.0), ("broadcast", None), ("all_gather", 0.0), ("send", 1.0), *both]
    assert told[1] == [("all_reduce", 0.0), ("broadcast", None), ("all_gather", 2.0), ("recv", None), *both]
