"""The queue as people see it: position and expected start, what is paused, which workers there are.

Expected starts come from measured durations alone; where nothing was measured yet, none is given. Claims nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime

from sqlalchemy import Connection, Select, and_, case, delete, func, select, union_all, update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.queue.claims import EVERYTHING
from grader.store.tables import AttemptRow, GateRow, TurnRow, WorkerRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.upsert import upsert

ALIVE_S = 60.0
_MEASURED = 20
"""Attempts of a task whose mean duration says how long the next will take."""


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where an attempt stands: 1 is next; `starts_in_s` None: not known, or it is held by a pause."""

    position: int
    starts_in_s: float | None


@dataclass(frozen=True, slots=True)
class WorkerHost:
    """A worker's host as it was at the last look; None: not looked at, or not to be had there.

    Attributes:
        num_gpus: devices that are fit for use, 0 for a worker that leaves them alone.
        num_leases, num_waiting: sets of devices and cores that are handed out there, and requests that wait for some.
        num_containers: of its site, warm and in use; None where it judges without containers.
    """

    num_gpus: int | None = None
    num_leases: int | None = None
    num_waiting: int | None = None
    num_containers: int | None = None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that was seen within the last minute; `host` None: it said nothing of it."""

    name: str
    needs: tuple[str, ...]
    slots: int
    seen_at: datetime
    draining: bool
    num_running: int
    host: WorkerHost | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """What is held, since when and why."""

    gate: str
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class QueueState:
    """The queue at a glance."""

    queued: dict[Lane, int]
    running: int
    oldest_queued_s: float
    pauses: tuple[Pause, ...]
    workers: tuple[Worker, ...]

    def holding(self, lane: Lane, need: str) -> tuple[Pause, ...]:
        """The pauses that hold what waits in that lane for that need."""
        return tuple(one for one in self.pauses if one.gate in (EVERYTHING, lane.value, need))

    def takers(self, need: str) -> tuple[Worker, ...]:
        """Workers that take what has that need, sooner or later."""
        return tuple(one for one in self.workers if need in one.needs and not one.draining)


def report_worker(
    store: Store, name: str, needs: Sequence[str], slots: int, host: WorkerHost | None = None
) -> bool:
    """A worker says that it is there and what it can take; True: it is to take nothing more and end."""
    facts = None if host is None else asdict(host)
    values = {"name": name, "needs": list(needs), "slots": slots, "seen_at": database_now(), "host": facts}
    with store.write() as connection:
        update = ["needs", "slots", "seen_at", "host"]
        statement = upsert(connection, WorkerRow, ["name"], values, update=update)
        return connection.execute(statement.returning(WorkerRow.draining)).scalar_one()


def forget_worker(store: Store, name: str) -> None:
    """A worker has ended in order."""
    with store.write() as connection:
        connection.execute(delete(WorkerRow).where(WorkerRow.name == name))


def drain_worker(store: Store, name: str, *, actor_id: int | None) -> bool:
    """Tell a worker to finish what it has and take nothing more; False: there is none of that name."""
    with store.write() as connection:
        done = connection.execute(
            update(WorkerRow).where(WorkerRow.name == name).values(draining=True)
        ).rowcount
        if done:
            audit(connection, "queue", "worker_drained", actor_id=actor_id, worker=name)
        return bool(done)


def pause(store: Store, gate: str = EVERYTHING, *, reason: str, actor_id: int | None) -> None:
    """Let nothing be claimed of a lane, of a need, or (`*`) at all; what runs goes on, submissions are still taken."""
    values = {"name": gate, "since": database_now(), "actor_id": actor_id, "reason": reason}
    with store.write() as connection:
        connection.execute(upsert(connection, GateRow, ["name"], values, update=["reason"]))
        audit(connection, "queue", "paused", actor_id=actor_id, gate=gate, reason=reason)


def resume(store: Store, gate: str = EVERYTHING, *, actor_id: int | None) -> bool:
    """Open a gate again; False: it was open."""
    with store.write() as connection:
        opened = bool(connection.execute(delete(GateRow).where(GateRow.name == gate)).rowcount)
        if opened:
            audit(connection, "queue", "resumed", actor_id=actor_id, gate=gate)
        return opened


def queue_state(store: Store) -> QueueState:
    """What waits, what runs, what is paused, who works."""
    with store.read() as connection:
        now = database_now()
        counts = connection.execute(
            select(AttemptRow.lane, func.count(), func.min(AttemptRow.queued_at), now)
            .where(AttemptRow.state == AttemptState.QUEUED)
            .group_by(AttemptRow.lane)
        ).all()
        running = connection.execute(
            select(func.count()).select_from(AttemptRow).where(AttemptRow.state == AttemptState.RUNNING)
        ).scalar_one()
        gates = connection.execute(select(GateRow.name, GateRow.since, GateRow.reason).order_by(GateRow.name))
        return QueueState(
            queued=dict.fromkeys(Lane, 0) | {row[0]: row[1] for row in counts},
            running=running,
            oldest_queued_s=max(((row[3] - row[2]).total_seconds() for row in counts), default=0.0),
            pauses=tuple(Pause(*row) for row in gates),
            workers=_workers(connection),
        )


def places(store: Store) -> dict[int, QueuePlace]:
    """Position and expected start of every attempt that waits, as claims would take them one after the other.

    Only attempts that could take the same worker stand before each other. One call serves all pages for a second.
    """
    with store.read() as connection:
        queue = connection.execute(_in_order()).all()
        if not queue:
            return {}
        running = connection.execute(
            select(
                AttemptRow.worker,
                AttemptRow.course_task_id,
                AttemptRow.need,
                AttemptRow.claimed_at,
                database_now(),
            ).where(AttemptRow.state == AttemptState.RUNNING)
        ).all()
        workers = [worker for worker in _workers(connection) if not worker.draining]
        kinds = {(row.course_task_id, row.need) for row in (*queue, *running)}
        takes = _durations(connection, sorted(kinds))
        gates = set(connection.execute(select(GateRow.name)).scalars())
    held = {row.id for row in queue if EVERYTHING in gates or row.lane.value in gates or row.need in gates}
    free: dict[str, list[float | None]] = {worker.name: [] for worker in workers}
    for worker_name, task_id, need, since, now in running:
        if worker_name in free:
            whole = takes.get((task_id, need))
            spent = (now - since).total_seconds() if since is not None else 0.0
            free[worker_name].append(None if whole is None else max(0.0, whole - spent))
    return _plan([(row.id, row.course_task_id, row.need) for row in queue], held, workers, free, takes)


def _plan(
    queue: Sequence[tuple[int, int, str]],
    held: Collection[int],
    workers: Sequence[Worker],
    free: dict[str, list[float | None]],
    takes: dict[tuple[int, str], float],
) -> dict[int, QueuePlace]:
    """Deal the queue out to slots, each to the one that is free first; what a pause holds takes none."""
    groups = {need: frozenset(w.name for w in workers if need in w.needs) for _, _, need in queue}
    slots: dict[str, list[float]] = {}
    for worker in workers:
        # A slot whose end nobody knows helps no forecast.
        known = [end for end in free[worker.name] if end is not None]
        idle = max(0, worker.slots - len(free[worker.name]))
        slots[worker.name] = known + [0.0] * idle
        heapq.heapify(slots[worker.name])
    found: dict[int, QueuePlace] = {}
    ahead: dict[str, int] = {}
    for attempt_id, task_id, need in queue:
        rivals = [other for other in ahead if other == need or groups[other] & groups[need]]
        position = 1 + sum(ahead[other] for other in rivals)
        ahead[need] = ahead.get(need, 0) + 1
        able = [name for name in sorted(groups[need]) if slots[name]]
        start: float | None = None
        if able and attempt_id not in held:
            best = min(able, key=lambda name: slots[name][0])
            start = heapq.heappop(slots[best])
            takes_s = takes.get((task_id, need))
            # From a task that was never measured on, this slot's next start is not known.
            if takes_s is not None:
                heapq.heappush(slots[best], start + takes_s)
        found[attempt_id] = QueuePlace(position, start)
    return found


def _in_order() -> Select[int, int, str, Lane]:
    turn = func.coalesce(TurnRow.turn, 0)
    nth = func.row_number().over(partition_by=(AttemptRow.lane, AttemptRow.person_id), order_by=AttemptRow.id)
    return (
        select(AttemptRow.id, AttemptRow.course_task_id, AttemptRow.need, AttemptRow.lane)
        .outerjoin(TurnRow, and_(TurnRow.person_id == AttemptRow.person_id, TurnRow.lane == AttemptRow.lane))
        .where(AttemptRow.state == AttemptState.QUEUED)
        .order_by(case((AttemptRow.lane == Lane.INTERACTIVE, 0), else_=1), nth, turn, AttemptRow.id)
    )


def _workers(connection: Connection) -> tuple[Worker, ...]:
    busy = (
        select(AttemptRow.worker, func.count().label("num"))
        .where(AttemptRow.state == AttemptState.RUNNING)
        .group_by(AttemptRow.worker)
        .subquery()
    )
    rows = connection.execute(
        select(
            WorkerRow.name,
            WorkerRow.needs,
            WorkerRow.slots,
            WorkerRow.seen_at,
            WorkerRow.draining,
            func.coalesce(busy.c.num, 0),
            WorkerRow.host,
        )
        .outerjoin(busy, busy.c.worker == WorkerRow.name)
        .where(WorkerRow.seen_at > database_now(-ALIVE_S))
        .order_by(WorkerRow.name)
    )
    return tuple(
        Worker(name, tuple(needs), slots, seen_at, draining, number, _host(facts))
        for name, needs, slots, seen_at, draining, number, facts in rows
    )


def _host(facts: dict[str, int | None] | None) -> WorkerHost | None:
    # A worker of another version may say more, or less.
    return (
        None if facts is None else WorkerHost(**{one.name: facts.get(one.name) for one in fields(WorkerHost)})
    )


def _durations(connection: Connection, kinds: Sequence[tuple[int, str]]) -> dict[tuple[int, str], float]:
    """Mean seconds from claim to end of the last judged attempts, per task of a course and need."""
    recent = [
        select(AttemptRow.course_task_id, AttemptRow.need, AttemptRow.claimed_at, AttemptRow.finished_at)
        .where(
            AttemptRow.course_task_id == task_id,
            AttemptRow.need == need,
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.claimed_at.is_not(None),
            AttemptRow.finished_at.is_not(None),
        )
        .order_by(AttemptRow.finished_at.desc())
        .limit(_MEASURED)
        .subquery()
        for task_id, need in kinds
    ]
    seconds: dict[tuple[int, str], list[float]] = {}
    for task_id, need, start, end in connection.execute(union_all(*(select(one) for one in recent))):
        if start is not None and end is not None:
            seconds.setdefault((task_id, need), []).append((end - start).total_seconds())
    return {kind: sum(values) / len(values) for kind, values in seconds.items()}
