"""Leases of devices between the processes of one host: all or nothing, in turn, and back when a holder dies.

    with Devices(state_dir).lease(Need(wall_s=90, num_gpus=2, num_cores=2, owner="attempt-7")) as lease:
        ...lease.gpus, lease.cpus, lease.token...

All graders of a host have to share one state folder. Never starts or ends what runs on a device: whoever does that
says how to clean up after a dead holder (`reclaim`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from grader.errors import GraderError, InfraError
from grader.launch.system.processes import usage
from grader.run.devices.abandoned_leases import AbandonedLease, LeaseTakeover, silent, take_over_abandoned
from grader.run.devices.allocator import (
    AllocationPlan,
    AllocationRequest,
    AllocationStart,
    DeviceHost,
    DevicesInUse,
    plan,
)
from grader.run.devices.hardware import Gpu, Inventory, cpu_list, parse_cpu_list
from grader.run.devices.heartbeat_file import HeartbeatFile
from grader.run.devices.inventory import take_inventory
from grader.run.devices.lease import Lease, give_back
from grader.run.devices.lease_book import Held, LeaseBook, Ticket, heartbeat_path, open_book, read_book
from grader.run.devices.lease_status import LeaseStatus, lease_statuses
from grader.run.devices.need import Need, check_possible
from grader.run.devices.quarantine import quarantine
from grader.run.devices.stock import Stock
from grader.run.devices.torch_build import TorchBuild

_LOOK_S = 0.1
_LONGEST_LOOK_S = 1.0
_STOCK_S = 10.0
"""Who waits takes stock this often, in case a device fell ill meanwhile."""
_RETRY_S = 2.0


@dataclass(frozen=True, slots=True)
class Wait:
    """How things stand for one that waits.

    Attributes:
        ahead: requests before it; waited_s: seconds so far.
        expected_s: seconds until it starts if everybody uses their whole time, None where nobody can tell.
        trouble: what keeps devices of a dead holder from being handed on, "" where nothing does.
    """

    ahead: int
    waited_s: float
    expected_s: float | None
    trouble: str = ""


class Devices:
    """The devices of this host, shared with every process that uses the same state folder; `folder`: of their book."""

    def __init__(
        self,
        state_dir: Path,
        *,
        reclaim: Callable[[AbandonedLease], None] | None = None,
        overdue_s: float = 60.0,
        torch_build: Callable[[], TorchBuild | None] = lambda: None,
        inventory: Callable[[bool], Inventory] | None = None,
    ) -> None:
        """Touches nothing yet.

        Args:
            state_dir: the site's state folder; leases are kept in `devices` below it.
            reclaim: ends what a dead or hung holder left running under a token, before its devices are handed on;
                may be called for what other processes held. Where it raises OSError or a GraderError, the devices
                stay out and it is called again later.
            overdue_s: seconds over its wall limit after which a living holder loses its lease to those who wait.
            torch_build: tells what the GPUs are to be fit for, None where nobody knows; asked where there are some.
            inventory: takes stock, of GPUs where its argument says so; default: of this host.
        """
        self.folder = folder = state_dir / "devices"
        self._reclaim = reclaim
        self._overdue_s = overdue_s
        self._stock = Stock(
            folder, inventory or (lambda gpus: take_inventory(folder, gpus=gpus)), torch_build
        )

    def inventory(self, *, gpus: bool = True) -> Inventory:
        """What this host has right now, whoever holds it; cores alone, and no driver asked, where `gpus` is False."""
        return self._stock.take(gpus=gpus)

    def quarantine(self, uuid: str, reason: str) -> None:
        """Hand this GPU out to nobody any more, see `grader.run.devices.quarantine`."""
        quarantine(self.folder, uuid, reason)

    def listing(self) -> tuple[LeaseStatus, ...]:
        """Who holds and who waits, first come first; looks only, changes nothing."""
        return lease_statuses(self.folder)

    def lease(
        self, need: Need, timeout_s: float | None = None, on_wait: Callable[[Wait], None] | None = None
    ) -> Lease:
        """Wait for a whole set and hold it until the lease is released or this process ends.

        Args:
            need: what is asked for.
            timeout_s: longest wait in seconds, 0: only if it is free now, None: as long as it takes.
            on_wait: called about once a second or more often while waiting.

        Raises:
            InfraError: this host has not that many GPUs, some of them are unfit, the time is over, or the leases
                can't be kept in the state folder.
        """
        request = _LeaseRequest(self, need)
        try:
            return request.wait(timeout_s, on_wait)
        except BaseException:
            request.leave()
            raise


class _LeaseRequest:
    """One request on its way from drawing a ticket to holding a set."""

    def __init__(self, devices: Devices, need: Need) -> None:
        self._devices = devices
        self._folder = devices.folder
        self._need = need
        self._heartbeat: HeartbeatFile | None = None
        self._number = 0
        self._began_s = self._stock_s = time.monotonic()
        self._stock = devices.inventory(gpus=need.num_gpus > 0)
        self._trouble = ""
        self._leave_until: dict[int, float] = {}
        check_possible(need, self._stock)

    def wait(self, timeout_s: float | None, on_wait: Callable[[Wait], None] | None) -> Lease:
        while True:
            now_s = time.monotonic()
            if now_s > self._stock_s + _STOCK_S:
                self._stock, self._stock_s = self._devices.inventory(gpus=self._need.num_gpus > 0), now_s
                check_possible(self._need, self._stock)
            outcome = self._look(now_s)
            if isinstance(outcome, Lease):
                return outcome
            if isinstance(outcome, list):
                self._settle(outcome)
                continue
            waited_s = time.monotonic() - self._began_s
            if timeout_s is not None and waited_s >= timeout_s:
                raise InfraError(self._too_long(waited_s))
            if on_wait is not None:
                on_wait(outcome)
            pause_s = min(_LOOK_S * (1 + outcome.ahead), _LONGEST_LOOK_S)
            time.sleep(pause_s if timeout_s is None else min(pause_s, timeout_s - waited_s))

    def _look(self, now_s: float) -> Lease | Wait | list[LeaseTakeover]:
        """One look at the book: our set if it is our turn, how things stand, or what has to be settled first."""
        with open_book(self._folder) as book:
            self._leave_until = {n: until for n, until in self._leave_until.items() if until > now_s}
            takeovers = take_over_abandoned(
                book, now_s, self._devices._overdue_s, {*self._leave_until, self._number}
            )
            if self._heartbeat is None:
                self._join(book, now_s)
            elif self._number not in book.tickets:
                raise InfraError("The ticket of this request is gone from the book of devices.")
            else:
                self._heartbeat.beat(now_s)
                gpus, cpus = self._sight()
                book.tickets[self._number] = replace(
                    book.tickets[self._number], sees_gpus=gpus, sees_cpus=cpus
                )
            if takeovers and self._devices._reclaim is not None:
                return takeovers
            for takeover in takeovers:
                del book.tickets[takeover.ticket.number]
                takeover.heartbeat.remove()
            planned = self._plan(book, now_s)
            for start in planned.starts:
                if start.ticket == self._number:
                    return self._take(book, start, now_s)
            promise = planned.promises.get(self._number)
            return Wait(
                sum(t.held is None and t.number < self._number for t in book.tickets.values()),
                now_s - self._began_s,
                None if promise is None else promise - now_s,
                self._trouble,
            )

    def _join(self, book: LeaseBook, now_s: float) -> None:
        self._number = book.next_number()
        self._heartbeat = HeartbeatFile.create(book.heartbeat(self._number), now_s)
        pid, process, need = os.getpid(), usage(os.getpid()), self._need
        book.tickets[self._number] = Ticket(
            self._number,
            need.owner,
            need.num_gpus,
            need.num_cores,
            need.wall_s,
            pid,
            process.started if process is not None else 0,
            time.time(),
            *self._sight(),
        )

    def _sight(self) -> tuple[tuple[str, ...], str]:
        cpus = [cpu for core in self._stock.cores for cpu in core.cpus]
        return tuple(gpu.uuid for gpu in self._stock.offered), cpu_list(cpus)

    def _plan(self, book: LeaseBook, now_s: float) -> AllocationPlan:
        gpus, cores = self._gpus(book), self._stock.cores
        held = [ticket.held for ticket in book.tickets.values() if ticket.held is not None]
        running = tuple(DevicesInUse(one.gpus, one.cpus, one.until_s) for one in held)
        waiting = []
        for _number, ticket in sorted(book.tickets.items()):
            if ticket.held is None and (ticket.number == self._number or not silent(book, ticket, now_s)):
                # Others may see another part of the host: what they want of ours is what both see, at most.
                theirs = set(parse_cpu_list(ticket.sees_cpus))
                num_gpus = sum(gpu.uuid in ticket.sees_gpus for gpu in gpus)
                num_cores = sum(not theirs.isdisjoint(core.cpus) for core in cores)
                needed = min(ticket.num_gpus, num_gpus), min(ticket.num_cores, num_cores)
                waiting.append(AllocationRequest(ticket.number, *needed, ticket.wall_s))
        return plan([DeviceHost(gpus, cores, running)], waiting, now_s)

    def _gpus(self, book: LeaseBook) -> tuple[Gpu, ...]:
        """Those that a plan is made with."""
        if self._need.num_gpus:
            # Stock was taken a while ago.
            return tuple(gpu for gpu in self._stock.offered if gpu.uuid not in book.quarantined)
        # The driver was not asked. Those before us that wait for GPUs say which they see: none must seem to start, and
        # to need its cores, while in truth it goes on waiting for these.
        seen = sorted({uuid for ticket in book.tickets.values() for uuid in ticket.sees_gpus})
        return tuple(Gpu(uuid, index) for index, uuid in enumerate(seen))

    def _take(self, book: LeaseBook, start: AllocationStart, now_s: float) -> Lease:
        held = Held(
            token=book.next_number(),
            gpus=tuple(gpu.uuid for gpu in start.gpus),
            cpus=tuple(cpu for core in start.cores for cpu in core.cpus),
            num_cores=len(start.cores),
            until_s=now_s + self._need.wall_s,
            since_unix_s=time.time(),
        )
        book.tickets[self._number] = replace(book.tickets[self._number], held=held)
        assert self._heartbeat is not None
        return Lease(self._folder, self._number, held, self._need, self._heartbeat, now_s - self._began_s)

    def _settle(self, takeovers: list[LeaseTakeover]) -> None:
        """Clean up after dead holders, one by one, with the book open to others meanwhile."""
        reclaim = self._devices._reclaim
        assert reclaim is not None
        self._trouble = ""
        try:
            while takeovers:
                takeover = takeovers[0]
                number = takeover.ticket.number
                try:
                    reclaim(takeover.abandoned)
                except (OSError, GraderError) as error:
                    self._trouble = (
                        f"what {takeover.ticket.owner or 'a dead holder'} left can't be ended: {error}"
                    )
                    self._leave_until[number] = time.monotonic() + _RETRY_S
                else:
                    with open_book(self._folder) as book:
                        book.tickets.pop(number, None)
                    heartbeat_path(self._folder, number).unlink(missing_ok=True)
                finally:
                    takeover.heartbeat.close()
                takeovers.pop(0)
        finally:
            for takeover in takeovers:
                takeover.heartbeat.close()

    def _too_long(self, waited_s: float) -> str:
        others = [t for t in read_book(self._folder).tickets.values() if t.number != self._number]
        holders = ", ".join(f"{t.owner or '?'} (process {t.pid})" for t in others if t.held is not None)
        num_waiting = sum(t.held is None and t.number < self._number for t in others)
        return (
            f"{self._need} did not come free within {waited_s:.1f} s. "
            f"In use by: {holders or 'nobody'}; {num_waiting} waited before."
            + (f" {self._trouble[0].upper()}{self._trouble[1:]}." if self._trouble else "")
        )

    def leave(self) -> None:
        """Give the ticket, and whatever it has got, back."""
        if self._heartbeat is not None:
            give_back(self._folder, self._number, self._heartbeat)
