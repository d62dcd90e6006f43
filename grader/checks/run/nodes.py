"""Which ranks ran on one machine: what the launcher told each of them, put together."""

from __future__ import annotations

from grader.model.trace import Trace


def ranks_by_node(trace: Trace) -> tuple[tuple[int, ...], ...]:
    """Ranks of each machine, in order; empty where a rank did not tell its local rank."""
    found: list[list[int]] = []
    for rank in trace.ranks:
        if rank.start is None:
            return ()
        # The launcher numbers machine by machine, so the local rank starts over on each.
        if rank.start.local_rank == 0 or not found:
            found.append([])
        found[-1].append(rank.rank)
    return tuple(tuple(ranks) for ranks in found)
