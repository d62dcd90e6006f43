"""A set of devices in this process's hands, until it is released, the process ends, or it hangs for too long.

Holding it is nothing but an open, locked file; who uses a device under it checks the token before believing a result.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError
from grader.run.devices.hardware import cpu_list
from grader.run.devices.heartbeat_file import HeartbeatFile
from grader.run.devices.lease_book import Held, open_book, read_book
from grader.run.devices.need import Need


class LeaseLostError(InfraError):
    """Others have, or may have, the devices by now: what was measured since is worth nothing."""


class Lease:
    """A set of devices; a context manager that releases it.

    Attributes:
        need: what was asked for; waited_s: how long that took, seconds.
        token: rises with every set that is handed out on this host, so of two that claim a device the lower is stale.
        gpus: UUIDs in the order of their indices, () where none were asked for.
        cpus: CPU numbers, ascending; all threads (that this process may use) of each core.
        num_cores: physical cores they make up; fewer than asked where the host has no more.
    """

    def __init__(
        self, folder: Path, number: int, held: Held, need: Need, heartbeat: HeartbeatFile, waited_s: float
    ) -> None:
        self.need = need
        self.waited_s = waited_s
        self.token = held.token
        self.gpus = held.gpus
        self.cpus = tuple(sorted(held.cpus))
        self.num_cores = held.num_cores
        self._folder = folder
        self._number = number
        self._heartbeat: HeartbeatFile | None = heartbeat
        self._pid = os.getpid()

    @property
    def cpuset(self) -> str:
        """The CPUs as the kernel and container engines write them: `0-2,5`."""
        return cpu_list(self.cpus)

    @property
    def facts(self) -> dict[str, Any]:
        """What belongs into the record of a run."""
        return {
            "token": self.token,
            "gpus": list(self.gpus),
            "cpus": self.cpuset,
            "num_cores": self.num_cores,
            "num_cores_asked": self.need.num_cores,
            "waited_s": round(self.waited_s, 4),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def check(self) -> None:
        """Make sure that it is still ours; a millisecond, to be asked before a result is believed.

        Raises:
            LeaseLostError: it was released, or this process hung beyond its wall limit and others were let in.
        """
        if self._heartbeat is None or self._pid != os.getpid():
            raise LeaseLostError(f"The lease of {self.need} (token {self.token}) was given back.")
        if not is_current(self._folder, self.token) or not self._heartbeat.in_place():
            raise LeaseLostError(
                f"The lease of {self.need} (token {self.token}) was lost: this process was over its limit of "
                f"{self.need.wall_s:g} s for so long that its devices were handed on."
            )

    def release(self) -> None:
        """Give the devices back; a second time, or in a forked child, it does nothing."""
        if self._heartbeat is not None and self._pid == os.getpid():
            line, self._heartbeat = self._heartbeat, None
            give_back(self._folder, self._number, line)


def is_current(folder: Path, token: int) -> bool:
    """Whether the set with this token is still handed out."""
    tickets = read_book(folder).tickets.values()
    return any(ticket.held is not None and ticket.held.token == token for ticket in tickets)


def give_back(folder: Path, number: int, line: HeartbeatFile) -> None:
    """Take a ticket out of the book if it is still ours, and let go of its heartbeat file; never raises for a bad book.

    Where the book can't be kept, the heartbeat file that was let go says enough: the next one that asks cleans up.
    """
    try:
        with contextlib.suppress(InfraError), open_book(folder) as book:
            if line.in_place():
                book.tickets.pop(number, None)
                line.remove()
    finally:
        line.close()
