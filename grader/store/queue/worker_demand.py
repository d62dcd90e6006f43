"""What the queue wants of workers: how many attempts wait for what, and who of those that live has something to do.

For whoever starts and ends workers by it, such as a feed of a cluster. Looks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grader.store.database import Store
from grader.store.queue.claims import EVERYTHING
from grader.store.queue.queue import queue_state
from grader.store.queue.queue_overview import waiting_counts


@dataclass(frozen=True, slots=True)
class WaitingAttempts:
    """How many attempts of one need wait, and how long the oldest of them does, seconds."""

    number: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class WorkerDemand:
    """What waits by need, and of each worker that lives whether it is busy."""

    waiting: Mapping[str, WaitingAttempts]
    busy: Mapping[str, bool]


def worker_demand(store: Store) -> WorkerDemand:
    """As it is now; what is paused is left out, since nobody could take it.

    Raises:
        StoreUnavailableError: the database is away.
    """
    state = queue_state(store)
    gates = {pause.gate for pause in state.pauses}
    waiting: dict[str, WaitingAttempts] = {}
    for one in waiting_counts(store):
        if gates.isdisjoint((EVERYTHING, one.lane.value, one.need)):
            before = waiting.get(one.need, WaitingAttempts(0, 0.0))
            waiting[one.need] = WaitingAttempts(
                before.number + one.number, max(before.oldest_s, one.oldest_s)
            )
    return WorkerDemand(waiting, {worker.name: worker.num_running > 0 for worker in state.workers})
