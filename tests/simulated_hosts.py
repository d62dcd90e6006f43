"""Hosts that exist only as numbers, on which the real allocator places attempts that only pass simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from grader.run.devices.allocator import AllocationRequest, DeviceHost, DevicesInUse, plan
from grader.run.devices.hardware import Core, Gpu


@dataclass(frozen=True, slots=True)
class Arrival:
    """An attempt: when it comes, what it needs, its wall limit, and the seconds that it really takes."""

    at_s: float
    num_gpus: int
    num_cores: int
    wall_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of an arrival: its set and times, and how many waited when it came."""

    arrival: Arrival
    start_s: float
    host: int
    devices: frozenset[str | int]
    num_ahead: int

    @property
    def end_s(self) -> float:
        return self.start_s + self.arrival.seconds


def simulated_host(name: str, num_gpus: int = 8, num_cores: int = 64, num_nodes: int = 2) -> DeviceHost:
    """A host with its GPUs and cores spread evenly over its memory nodes."""
    return DeviceHost(
        tuple(Gpu(f"GPU-{name}-{i}", i, numa_node=i * num_nodes // num_gpus) for i in range(num_gpus)),
        tuple(Core((i,), i * num_nodes // num_cores) for i in range(num_cores)),
    )


def simulate(
    hosts: Sequence[DeviceHost], arrivals: Sequence[Arrival], *, overtaking: bool = True
) -> list[Placed]:
    """Let all arrivals pass, in the order of their coming; returns them in that order.

    Without overtaking, nobody starts before all who came earlier have.
    """
    hosts = list(hosts)
    coming = sorted(range(len(arrivals)), key=lambda number: arrivals[number].at_s)
    waiting: list[int] = []
    ahead: dict[int, int] = {}
    placed: dict[int, Placed] = {}
    ends: list[tuple[float, int, int, DevicesInUse]] = []
    while coming or ends:
        now_s = min([arrivals[n].at_s for n in coming[:1]] + [end[0] for end in ends[:1]])
        while ends and ends[0][0] <= now_s:
            _end, _number, place, running = heapq.heappop(ends)
            left = tuple(one for one in hosts[place].running if one is not running)
            hosts[place] = replace(hosts[place], running=left)
        while coming and arrivals[coming[0]].at_s <= now_s:
            ahead[coming[0]] = len(waiting)
            waiting.append(coming.pop(0))
        requests = [
            AllocationRequest(n, arrivals[n].num_gpus, arrivals[n].num_cores, arrivals[n].wall_s)
            for n in waiting
        ]
        starts = plan(hosts, requests, now_s).starts
        if not overtaking:
            in_line = zip(starts, tuple(waiting), strict=False)
            starts = tuple(start for start, _n in takewhile(lambda pair: pair[0].ticket == pair[1], in_line))
        for start in starts:
            arrival = arrivals[start.ticket]
            gpus = tuple(gpu.uuid for gpu in start.gpus)
            cpus = tuple(cpu for core in start.cores for cpu in core.cpus)
            running = DevicesInUse(gpus, cpus, now_s + arrival.wall_s)
            host = hosts[start.host]
            hosts[start.host] = replace(host, running=(*host.running, running))
            heapq.heappush(ends, (now_s + arrival.seconds, start.ticket, start.host, running))
            waiting.remove(start.ticket)
            placed[start.ticket] = Placed(
                arrival, now_s, start.host, frozenset((*gpus, *cpus)), ahead[start.ticket]
            )
    assert not waiting, "somebody waits for ever"
    assert not any(host.running for host in hosts)
    return [placed[number] for number in range(len(arrivals))]
