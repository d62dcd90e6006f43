"""Coordinates the supervisors of one run, one per node: a common start, a failure told to all, one end.

A supervisor sees its own ranks only, and supervisors do not talk with each other: everything passes through here, where
no rank has a say. With one node this only listens. Orders and reports are in `launch.coordinator_orders`.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from grader.errors import InfraError
from grader.launch.endings.flight_records import FlightRecord, read_groups, stuck, tell
from grader.run.container_connection import ConnectionLostError
from grader.run.device_reports import DeviceReports
from grader.run.engine.attached_connection import AttachedConnection
from grader.run.progress_events import read_progress
from grader.run.runtime import PrintedText, Progress

_LEAD_S = 0.05
"""So long before its ranks start a node is told; by then every node knows."""
_TOGETHER_S = 2.5
"""All nodes must have stood still together for so long. A word that is on its way between them takes far less."""
_READ_S = 0.002
"""Enough to take in what has come."""


class NodeCoordinator:
    """Follows one run from the start of its nodes to the end of the last.

    Attributes:
        ending: the first ending that a node, or this class, decided upon, with its reason; None where none did and how
            the ranks ended says it all.
        reports: what the nodes told of their GPUs.
    """

    def __init__(self, connections: list[AttachedConnection], nproc_per_node: int) -> None:
        self._connections = connections
        self._alone = len(connections) == 1
        self._running = set(range(len(connections)))
        self._prepared: dict[int, float] = {}
        self._standing: dict[int, tuple[float, float, dict[str, Any]]] = {}
        self._all_ran_since = 0.0
        self._steps = [(0,) * nproc_per_node for _ in connections]
        self._first = Progress("run", 0.0)
        self._printed: list[PrintedText] = []
        self.ending: tuple[str, str] | None = None
        self.reports = DeviceReports()

    def run(
        self, requests: list[dict[str, Any]], deadline: float, on_progress: Callable[[Progress], None]
    ) -> bool:
        """Give every node its job and listen until all have ended.

        Args:
            requests: one per node; deadline: on the monotonic clock; on_progress: is given signs of life.

        Returns:
            False where a node gave no answer until the deadline.

        Raises:
            ConnectionLostError: a container ended by itself; DeviceFaultError: a GPU failed; InfraError: a supervisor
                failed.
        """
        for connection, request in zip(self._connections, requests, strict=True):
            connection.send(request)
        for node, event in self._events(deadline):
            self.reports.take(event, node)
            match event.get("event"):
                case "progress":
                    self._pass_on(node, event, on_progress)
                case "prepared":
                    self._start(node, float(event["clock_s"]))
                case "rank_failed":
                    self._order({"failed": True}, but=node)
                case "ending":
                    self._end(str(event["ending"]), str(event["reason"]), but=node)
                case "standing":
                    self._judge_standstill(node, event)
                case "ended":
                    self._running.discard(node)
                    self._standing.pop(node, None)
                    self._all_ran_since = time.monotonic()
                case "failed":
                    words = self._connections[node].last_words()
                    raise InfraError(
                        f"{self._whose(node)} could not be supervised: {event.get('reason')}.{words}"
                    )
        return not self._running

    def _events(self, deadline: float) -> Iterator[tuple[int, dict[str, Any]]]:
        """What the nodes say, until none of them runs or the time is over."""
        ready = set(self._running)
        while self._running and (left_s := deadline - time.monotonic()) > 0:
            for node in sorted(ready & self._running):
                with self._named(node):
                    event = self._connections[node].event(time.monotonic() + _READ_S)
                if event is None:
                    ready.discard(node)
                else:
                    yield node, event
            if self._running and not ready & self._running:
                waiting = {self._connections[node].fileno(): node for node in self._running}
                readable = select.select(list(waiting), [], [], left_s)[0]
                ready = {waiting[descriptor] for descriptor in readable}

    def _pass_on(self, node: int, event: dict[str, Any], on_progress: Callable[[Progress], None]) -> None:
        sign = read_progress(event)
        self._steps[node] = sign.steps
        self._printed += sign.printed
        if node == 0:
            self._first = sign
        if node == min(self._running):
            steps = tuple(count for counts in self._steps for count in counts)
            printed, self._printed = tuple(self._printed), []
            on_progress(replace(self._first, elapsed_s=sign.elapsed_s, steps=steps, printed=printed))

    def _start(self, node: int, clock_s: float) -> None:
        """Once all are ready, name the instant at which all start.

        Containers of one host read the same monotonic clock, so one number does for all. Across hosts each node would
        be told the instant on its own clock: its offset is `clock_s` against the middle of a question and its answer,
        wrong by half the time between these at most.
        """
        self._prepared[node] = clock_s
        if len(self._prepared) == len(self._connections):
            self._order({"go": {"origin": max(self._prepared.values()) + _LEAD_S}})

    def _judge_standstill(self, node: int, event: dict[str, Any]) -> None:
        """End the run as a deadlock when the ranks of all nodes have stood still during the same time."""
        now = time.monotonic()
        self._standing.pop(node, None)
        if event["stood_s"]:
            # Counted back from now, so that the clocks of the nodes need not agree.
            self._standing[node] = (now - float(event["stood_s"]), now, event)
        if self._standing.keys() != self._running:
            return
        since = max(self._all_ran_since, *(since for since, _until, _event in self._standing.values()))
        until = min(until for _since, until, _event in self._standing.values())
        records: dict[int, FlightRecord | None] = {}
        awake, names = [], {}
        for one, (_since, _until, report) in sorted(self._standing.items()):
            awake += report["awake"]
            for rank, groups in report["records"].items():
                records[int(rank)] = read_groups(groups) if groups is not None else None
                names[int(rank)] = f"rank {rank} on node {one}"
        # Each node knows its own ranks alone: what they wait for may be on its way on all the others.
        if until - since >= _TOGETHER_S and all(stuck(rank, records) for rank in awake):
            silent_s = min(
                now - until + report["silent_s"] for _since, until, report in self._standing.values()
            )
            where = ", ".join(self._standing[one][2]["where"] for one in sorted(self._standing))
            told = tell(records, names)
            self._end("deadlocked", f"Nothing moved for {silent_s:.0f} s: {where}. {told}".rstrip())

    def _end(self, ending: str, reason: str, but: int | None = None) -> None:
        if self.ending is None:
            self.ending = ending, reason
            self._order({"end": {"ending": ending, "reason": reason}}, but)

    def _order(self, order: dict[str, Any], but: int | None = None) -> None:
        if self._alone:
            return
        for node in self._running - {but}:
            # One that cannot hear has ended, and says so or is found lost when it is listened to.
            with contextlib.suppress(ConnectionLostError):
                self._connections[node].send(order)

    def _whose(self, node: int) -> str:
        return "The run" if self._alone else f"The part of the run on node {node}"

    @contextlib.contextmanager
    def _named(self, node: int) -> Iterator[None]:
        try:
            yield
        except ConnectionLostError as error:
            if self._alone:
                raise
            raise ConnectionLostError(f"Node {node} was lost in the middle of the run: {error}") from error
