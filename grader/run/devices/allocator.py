"""Who of the waiting starts now, and with which devices: first come first served, with holes filled.

Each waiting request in turn is promised the earliest time at which its whole set is free, given what runs, what was
promised to those before it, and everybody's wall limit (conservative backfilling). Who is promised now, starts. So a
request overtakes another only where it is done by then, or needs other devices than those kept for the other: no
promise is ever put off by a later arrival. The first in line is promised a start within the longest wall limit W of
what runs, which nothing can put off; by induction a request that finds n others waiting starts within (n + 1)·W,
however many narrow ones keep arriving.

Pure: no clock, no files, no state; the same arguments give the same plan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from grader.run.devices.hardware import Core, Gpu
from grader.run.devices.placement import nearest_cores, nearest_gpus

SOON_S = 1.0
"""When a set is expected back whose holder is over its wall limit: any moment."""


@dataclass(frozen=True, slots=True)
class AllocationRequest:
    """Somebody who waits: a set of devices on one host, all or nothing, for at most `wall_s` seconds."""

    ticket: int
    num_gpus: int
    num_cores: int
    wall_s: float


@dataclass(frozen=True, slots=True)
class DevicesInUse:
    """Devices in use: UUIDs of GPUs, CPU numbers, and the clock's reading when they are due back."""

    gpus: tuple[str, ...]
    cpus: tuple[int, ...]
    until_s: float


@dataclass(frozen=True, slots=True)
class DeviceHost:
    """One host: the devices it offers, and what is in use of them (or of others, which is ignored)."""

    gpus: tuple[Gpu, ...]
    cores: tuple[Core, ...]
    running: tuple[DevicesInUse, ...] = ()

    def free(self) -> tuple[list[Gpu], list[Core]]:
        """Devices that nothing runs on; a core of which one thread is in use is not free."""
        gpus = {uuid for one in self.running for uuid in one.gpus}
        cpus = {cpu for one in self.running for cpu in one.cpus}
        return (
            [gpu for gpu in self.gpus if gpu.uuid not in gpus],
            [core for core in self.cores if cpus.isdisjoint(core.cpus)],
        )


@dataclass(frozen=True, slots=True)
class AllocationStart:
    """A request that starts now: which host (its place in the list), which devices."""

    ticket: int
    host: int
    gpus: tuple[Gpu, ...]
    cores: tuple[Core, ...]


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """What happens now, in order of the waiting, and when the others are promised to start (ticket → clock)."""

    starts: tuple[AllocationStart, ...]
    promises: dict[int, float]


def plan(hosts: Sequence[DeviceHost], waiting: Sequence[AllocationRequest], now_s: float) -> AllocationPlan:
    """Decide who starts now.

    Args:
        hosts: the hosts, with what runs on them.
        waiting: requests, first come first; wall limits positive. One that no host could ever satisfy gets no promise
            and holds nobody up.
        now_s: the clock.

    Returns:
        The plan; every set in it is free, and no device is in two of them.
    """
    timelines = [_Timeline(host, now_s) for host in hosts]
    free = [host.free() for host in hosts]
    starts: list[AllocationStart] = []
    promises: dict[int, float] = {}
    for request in waiting:
        offers = [offer for place, line in enumerate(timelines) if (offer := line.offer(request, place))]
        if not offers:
            continue
        at_s, _left, place = min(offers)
        timelines[place].reserve(request, at_s)
        promises[request.ticket] = at_s
        if at_s == now_s:
            gpus, cores = free[place]
            some_gpus = nearest_gpus(gpus, request.num_gpus)
            some_cores = nearest_cores(cores, request.num_cores, some_gpus)
            free[place] = (
                [gpu for gpu in gpus if gpu not in some_gpus],
                [core for core in cores if core not in some_cores],
            )
            starts.append(AllocationStart(request.ticket, place, some_gpus, some_cores))
    return AllocationPlan(tuple(starts), promises)


class _Timeline:
    """How many GPUs and cores of one host are free from now on, as a step function of time.

    Numbers are enough: sets that never exceed them at any time can always be picked when their time comes.
    """

    def __init__(self, host: DeviceHost, now_s: float) -> None:
        ours = {gpu.uuid for gpu in host.gpus}
        gpus, cores = host.free()
        self._times = [now_s]
        self._gpus = [len(gpus)]
        self._cores = [len(cores)]
        back = {gpu.uuid: now_s for gpu in host.gpus}
        due: dict[int, float] = {}
        for one in host.running:
            until_s = max(one.until_s, now_s + SOON_S)
            back |= {uuid: until_s for uuid in one.gpus if uuid in ours}
            due |= dict.fromkeys(one.cpus, until_s)
        for until_s in back.values():
            if until_s > now_s:
                self._add_from(until_s, 1, 0)
        for core in host.cores:
            until_s = max((due.get(cpu, now_s) for cpu in core.cpus), default=now_s)
            if until_s > now_s:
                self._add_from(until_s, 0, 1)

    def offer(self, request: AllocationRequest, place: int) -> tuple[float, int, int] | None:
        """When it could start here, GPUs left beside it then, and the place; None: never."""
        at = self._earliest(request)
        if at is None:
            return None
        return self._times[at], self._gpus[at] - request.num_gpus, place

    def _earliest(self, request: AllocationRequest) -> int | None:
        times, start = self._times, 0
        for step in range(len(times)):
            if self._gpus[step] < request.num_gpus or self._cores[step] < request.num_cores:
                start = step + 1
            elif step + 1 == len(times) or times[step + 1] >= times[start] + request.wall_s:
                return start
        return None

    def reserve(self, request: AllocationRequest, at_s: float) -> None:
        """Keep a set for a request from a time that was offered, for its wall limit."""
        self._add_from(at_s, -request.num_gpus, -request.num_cores)
        self._add_from(at_s + request.wall_s, request.num_gpus, request.num_cores)

    def _add_from(self, time_s: float, gpus: int, cores: int) -> None:
        at = bisect_left(self._times, time_s)
        if at == len(self._times) or self._times[at] != time_s:
            self._times.insert(at, time_s)
            self._gpus.insert(at, self._gpus[at - 1])
            self._cores.insert(at, self._cores[at - 1])
        for step in range(at, len(self._times)):
            self._gpus[step] += gpus
            self._cores[step] += cores
