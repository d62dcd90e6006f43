"""Processes as the kernel shows them: who descends from whom, what they used, and how to end them all.

Reads `/proc` and signals through process descriptors, so that a recycled process id is never hit; never signals a
process that does not descend from the caller, never uses `kill(-1)`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_GET_PDEATHSIG = 2
_PR_SET_CHILD_SUBREAPER = 36
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one moment.

    Attributes:
        parent: process id of its parent; session: its session id.
        started: start time in clock ticks since boot, which with the id names a process for good.
        cpu_s: user and system time of all its threads, seconds.
        rss_bytes: resident memory, shared pages included.
        zombie: True when it has ended and waits to be reaped.
        working: it has or wants a core, or waits for a disk; False while it sleeps.
    """

    parent: int
    session: int
    started: int
    cpu_s: float
    rss_bytes: int
    zombie: bool
    working: bool


def usage(pid: int) -> Usage | None:
    """What the kernel says about a process, None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may hold anything, also spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return Usage(
        parent=int(fields[1]),
        session=int(fields[3]),
        started=int(fields[19]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        rss_bytes=int(fields[21]) * _PAGE_BYTES,
        zombie=fields[0] in (b"Z", b"X"),
        working=fields[0] in (b"R", b"D"),
    )


def descendants(root: int) -> dict[int, Usage]:
    """Living and unreaped descendants of a process, in an order in which parents precede their children."""
    found: dict[int, Usage] = {}
    waiting = _children(root)
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        process = usage(pid)
        if process is not None:
            found[pid] = process
            waiting.extend(_children(pid))
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                children.extend(map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split()))
    except OSError:
        return []
    return children if children or _kernel_lists_children() else _children_by_scan(pid)


@functools.cache
def _kernel_lists_children() -> bool:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


def _children_by_scan(parent: int) -> list[int]:
    # Kernels without CONFIG_PROC_CHILDREN: ask every process who its parent is.
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = usage(int(name))
            if process is not None and process.parent == parent:
                found.append(int(name))
    return found


def proportional_bytes(pid: int) -> int:
    """Resident memory with each shared page divided by its users; 0 when the kernel does not say."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def blocked_switches(pid: int) -> int | None:
    """How often the main thread gave up the processor of its own accord; stands still while it is blocked."""
    try:
        for line in Path(f"/proc/{pid}/task/{pid}/status").read_bytes().splitlines():
            if line.startswith(b"voluntary_ctxt_switches:"):
                return int(line.split()[1])
    except OSError:
        pass
    return None


def catches(pid: int, signum: int) -> bool:
    """Whether the process handles a signal itself, so that sending it cannot end the process."""
    try:
        for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
            if line.startswith(b"SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signum - 1) & 1)
    except OSError:
        pass
    return False


def send(pid: int, signum: int, started: int | None = None) -> bool:
    """Signal a process; with `started`, only if the id still names the process that was seen then."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if started is not None:
            process = usage(pid)
            if process is None or process.started != started:
                return False
        signal.pidfd_send_signal(handle, signum)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def send_all(processes: dict[int, Usage], signum: int) -> None:
    """Signal all processes of a snapshot that still are what they were."""
    for pid, one in processes.items():
        if not one.zombie:
            send(pid, signum, one.started)


def other_threads() -> list[str]:
    """Names of this process's threads but the main one, as the kernel has them; libraries name theirs."""
    found = []
    for folder in Path("/proc/self/task").iterdir():
        if folder.name != str(os.getpid()):
            # One may end while it is looked at.
            with contextlib.suppress(OSError):
                found.append((folder / "comm").read_text(errors="replace").strip())
    return sorted(found)


def adopt_orphans() -> None:
    """Make the kernel hand us every orphaned descendant, daemonised ones too, instead of handing them to init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, signum: int = signal.SIGKILL) -> None:
    """Be signalled when the parent ends; ends at once where it already has."""
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(128 + signum)


def parent_death_signal() -> int:
    """The signal that the kernel sends us when our parent ends; 0 for none. A change of user takes it away."""
    found = ctypes.c_int()
    _prctl(_PR_GET_PDEATHSIG, ctypes.addressof(found))
    return found.value


def keep_parent_death_signal(signum: int) -> None:
    """Set what `parent_death_signal` gave."""
    _prctl(_PR_SET_PDEATHSIG, signum)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
