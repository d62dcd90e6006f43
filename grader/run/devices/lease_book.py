"""The book of this host's devices: who waits, who holds what, what is in quarantine. One small file, under one lock.

A reader needs no lock, because the file is only ever replaced whole. Keeps what it is told; decides nothing and does
not know who lives.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from grader.errors import InfraError
from grader.files import clear_halves, write_whole
from grader.json_reader import read_value
from grader.run.devices.heartbeat_file import HeartbeatFile, last_heartbeat, lives

_SCHEMA = 1
_PATIENCE_S = 30.0
_PAUSE_S = 0.005


@dataclass(frozen=True, slots=True)
class Held:
    """A set that was handed out.

    Attributes:
        token: rises with every set that is handed out; gpus: UUIDs; cpus: CPU numbers; num_cores: cores they make up.
        until_s: the monotonic clock's reading at its wall limit; since_unix_s: when it was handed out.
    """

    token: int
    gpus: tuple[str, ...]
    cpus: tuple[int, ...]
    num_cores: int
    until_s: float
    since_unix_s: float


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request, waiting or holding its set.

    Attributes:
        number: its place: lower numbers came first. owner, num_gpus, num_cores, wall_s: what was asked, for whom.
        pid, started: the process that asked and its start in clock ticks since boot, which name it for good.
        since_unix_s: when it was drawn.
        sees_gpus, sees_cpus: what its process may use: UUIDs, and CPU numbers as `0-2,5`.
        held: its set, None while it waits.
    """

    number: int
    owner: str
    num_gpus: int
    num_cores: int
    wall_s: float
    pid: int
    started: int
    since_unix_s: float
    sees_gpus: tuple[str, ...]
    sees_cpus: str
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a GPU is kept from everybody, and since when."""

    reason: str
    since_unix_s: float


@dataclass(slots=True)
class LeaseBook:
    """The book while its lock is held; changes are kept when `open_book` is left without an exception.

    Attributes:
        counter: last number given. A new book starts it at the time in milliseconds, faster than which none are given,
            so that a lost book repeats none.
        tickets: by number, which is first come first.
        quarantined: by UUID, GPUs that are handed out to nobody.
    """

    folder: Path
    counter: int = field(default_factory=lambda: int(time.time() * 1000))
    tickets: dict[int, Ticket] = field(default_factory=dict)
    quarantined: dict[str, Quarantine] = field(default_factory=dict)

    def next_number(self) -> int:
        """A number that was never given before."""
        self.counter += 1
        return self.counter

    @property
    def held_gpus(self) -> frozenset[str]:
        """UUIDs of what is handed out."""
        held = (ticket.held for ticket in self.tickets.values())
        return frozenset(uuid for one in held if one is not None for uuid in one.gpus)

    def heartbeat(self, number: int) -> Path:
        """Where the heartbeat file of a ticket is."""
        return heartbeat_path(self.folder, number)


def heartbeat_path(folder: Path, number: int) -> Path:
    """Where the heartbeat file of a ticket is."""
    return folder / f"{number}.alive"


def read_book(folder: Path) -> LeaseBook:
    """The book as it is now, for looking only; empty where there is none.

    Raises:
        InfraError: it can't be read, or belongs to another host.
    """
    try:
        text = (folder / "book.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return LeaseBook(folder)
    except OSError as error:
        raise InfraError(f"The book of devices can't be read: {error}.") from error
    try:
        return _parse(folder, text)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return _fresh(folder, f"is damaged ({error})")


@contextlib.contextmanager
def open_book(folder: Path) -> Iterator[LeaseBook]:
    """The book, to be changed by nobody else meanwhile. Hold it for milliseconds.

    Raises:
        InfraError: the folder can't be written, another process sits on the lock, or the book is damaged in use.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _locked(folder / "lock")
    except OSError as error:
        raise InfraError(
            f"Leases of devices are kept in {folder}, which can't be written: {error}."
        ) from error
    try:
        book = read_book(folder)
        before = _text(book)
        yield book
        if (after := _text(book)) != before:
            clear_halves(folder / "book.json")
            write_whole(folder / "book.json", after)
    except OSError as error:
        raise InfraError(f"The book of devices in {folder} can't be kept: {error}.") from error
    finally:
        lock.close()


def _locked(path: Path) -> HeartbeatFile:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with contextlib.suppress(BlockingIOError):
            line = HeartbeatFile.create(path, time.monotonic())
            if line.in_place():
                return line
            line.close()
        if time.monotonic() > deadline:
            sign = last_heartbeat(path)
            raise InfraError(
                f"Process {sign[1] if sign else '?'} has kept {path} locked for {_PATIENCE_S:.0f} s, which takes "
                "milliseconds otherwise. Is it stopped? Let it go on, or end it."
            )
        time.sleep(_PAUSE_S)


@functools.cache
def boot_id() -> str:
    """Names this host since its last start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _parse(folder: Path, text: str) -> LeaseBook:
    value: dict[str, Any] = json.loads(text)
    if value["schema"] != _SCHEMA:
        return _fresh(folder, f"has schema {value['schema']}, not {_SCHEMA}")
    counter = int(value["counter"])
    if value["boot"] != boot_id():
        book = _fresh(folder, "was written on another host (each needs a GRADER_STATE_DIR of its own)")
        book.counter = max(counter, book.counter)
        return book
    tickets = read_value(tuple[Ticket, ...], value["tickets"])
    kept_back = read_value(dict[str, Quarantine], value.get("quarantined", {}))
    return LeaseBook(folder, counter, {ticket.number: ticket for ticket in tickets}, kept_back)


def _fresh(folder: Path, trouble: str) -> LeaseBook:
    """A new book in the place of one that is of no use; refused while somebody still relies on the old one."""
    strays = sorted(folder.glob("*.alive"))
    if any(map(lives, strays)):
        raise InfraError(f"The book of devices in {folder} {trouble}, and devices are in use.")
    return LeaseBook(folder)


def _text(book: LeaseBook) -> str:
    tickets = [asdict(ticket) for _number, ticket in sorted(book.tickets.items())]
    value = {
        "schema": _SCHEMA,
        "boot": boot_id(),
        "counter": book.counter,
        "tickets": tickets,
        "quarantined": {uuid: asdict(entry) for uuid, entry in sorted(book.quarantined.items())},
    }
    return json.dumps(value, indent=1) + "\n"
