"""Inside a reader: takes one piece of work after the other, under limits that the kernel enforces.

The timers' signals end the process wherever it is, inside C as well. Nobody has to watch it, and a reader whose parent
is gone ends by itself.
"""

from __future__ import annotations

import gc
import pickle
import pkgutil
import resource
import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from grader.readers.channel import Channel
from grader.readers.limits import ReadingLimits

ANSWER, FAILURE, MEMORY, DEPTH, TOO_LONG, AT, READY = range(7)
"""What a message is: the value; an exception; a limit that was reached; what is read from now on; nothing yet asked."""
_PAGE_BYTES = resource.getpagesize()
_MOST_KEPT_BYTES = 256 << 20
"""A reader that has grown by more than this ends after its work: what it gave back may not be the system's again."""

_asks: Channel | None = None


def reads(name: str) -> None:
    """Say what is read from now on, so that whoever waits can tell which file it was; outside of readers, nothing."""
    if _asks is not None:
        _send(_asks, AT, (name, time.process_time()))


def main(arguments: Sequence[str]) -> None:
    """A reader of its own: serve at a descriptor (the first argument) after `module:function` (the second, if any)."""
    connection = Channel(int(arguments[0]))
    become_reader()
    if arguments[1:]:
        pkgutil.resolve_name(arguments[1])()
    gc.collect()
    gc.freeze()
    _send(connection, READY, None)
    born_bytes = _resident_bytes()
    while True:
        try:
            work, given, limits = pickle.loads(connection.recv_bytes())
            do(connection, partial(work, *given), limits)
        except (EOFError, OSError):
            # Nobody asks any more.
            return
        del work, given
        gc.collect()
        if _resident_bytes() - born_bytes > _MOST_KEPT_BYTES:
            return


def become_reader() -> None:
    """End by the timers, or when nobody asks any more, and by nothing that is meant for the parent."""
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def do(connection: Channel, work: Callable[[], Any], limits: ReadingLimits) -> None:
    """Work within limits, and send what came of it."""
    global _asks
    _asks = connection
    reads("")
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    most_bytes = _virtual_bytes() + limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (_lower(most_bytes, unlimited[0]), unlimited[1]))
    # Past any of these two the kernel ends this process.
    signal.setitimer(signal.ITIMER_PROF, limits.cpu_s)
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)
    try:
        message = _pickled(ANSWER, work())
        if len(message) > limits.answer_bytes:
            message = _pickled(TOO_LONG, None)
    except MemoryError:
        message = _pickled(MEMORY, None)
    except RecursionError:
        message = _pickled(DEPTH, None)
    except Exception as error:  # noqa: BLE001  whoever asked has to see it, whatever it was
        message = _failure(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        _asks = None
    connection.send_bytes(message)


def _send(connection: Channel, kind: int, value: Any) -> None:
    connection.send_bytes(_pickled(kind, value))


def _pickled(kind: int, value: Any) -> bytes:
    return pickle.dumps((kind, value), pickle.HIGHEST_PROTOCOL)


def _failure(error: Exception) -> bytes:
    try:
        message = _pickled(FAILURE, error)
        pickle.loads(message)
    except Exception:  # noqa: BLE001  an exception's constructor may want what pickling does not keep
        return _pickled(FAILURE, RuntimeError(f"{type(error).__name__}: {error}"))
    return message


def _lower(most: int, allowed: int) -> int:
    return most if allowed == resource.RLIM_INFINITY else min(most, allowed)


def _virtual_bytes() -> int:
    return _statm(0)


def _resident_bytes() -> int:
    return _statm(1)


def _statm(field: int) -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  nothing is imported for this
        return int(file.read().split()[field]) * _PAGE_BYTES
