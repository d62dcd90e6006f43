"""Becoming another user for good: what a rank, the rendezvous store and whoever writes a rank's files do first.

Only where the supervisor runs as root of a container of its own. Never takes a user back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from grader.launch.system.processes import keep_parent_death_signal, parent_death_signal

_NOBODY_ELSE = 19997


def drop_to(uid: int, gid: int) -> None:
    """Become a user without groups or rights of its own; raises OSError where that is not allowed."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def die_first() -> None:
    """Be the first that the kernel ends when memory runs out, and never the supervisor."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def yield_to_supervisor() -> None:
    """Let the supervisor run first, however many compete with it; within a container, priorities count there alone."""
    os.nice(19)


def end_user(uid: int) -> None:
    """SIGKILL every process of a user at once: none can fork in between, as it can while a list of them is worked off.

    Only for a process that started as root. What tells it that its parent has ended is kept.
    """
    death_signal = parent_death_signal()
    # As whom we signal: a learner. As whom we may be signalled meanwhile: nobody whom a learner could reach.
    os.setresuid(_NOBODY_ELSE, uid, 0)
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    finally:
        os.setresuid(0, 0, 0)
        keep_parent_death_signal(death_signal)


def as_user(uid: int, work: Callable[[], None]) -> None:
    """Do something in a child that has become `uid` (0: here and now, as we are).

    Raises:
        OSError: it failed; its words are in the message.
    """
    if not uid:
        work()
        return
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reader)
            drop_to(uid, uid)
            work()
            code = 0
        except BaseException:  # noqa: BLE001
            os.write(writer, traceback.format_exc().encode(errors="replace")[-4000:])
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        words = pipe.read().decode(errors="replace")
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError(f"as user {uid}: {words.strip()}")
