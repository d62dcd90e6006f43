"""How a process of a script that starts its ranks itself becomes one of them: it calls the supervisor.

Runs in the learner's processes. The supervisor answers with the rank's number and its ends of everything, or refuses.
The call stays open for as long as the process lives, and tells what it used when it leaves.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import resource
import socket
from collections.abc import Callable
from typing import Any, NoReturn

from grader.launch.ranks.rank import NUM_ENDS, RankEnds, answer_with_stacks
from grader.launch.spec import LaunchSpec
from grader.probe.processes.joining import JoinedRank

ONLY_IF_NOBODY = -1
"""Asked for instead of a number: rank 0, but only where no process is a rank."""
_ANSWER_S = 30.0
_HIGH_DESCRIPTOR = 2000


class Membership:
    """What every process of the script holds; made before the script's first line.

    Args:
        spec: the run; address: where the supervisor takes calls.
    """

    def __init__(self, spec: LaunchSpec, address: str) -> None:
        self._spec = spec
        self._address = address
        self._streams = [_identity(descriptor) for descriptor in (1, 2)]
        self._call: socket.socket | None = None
        os.register_at_fork(after_in_child=self._forked)

    def join(self, number: int | None) -> JoinedRank | None:
        """Become a rank: its streams, its stacks; None where the supervisor has another one, or is gone."""
        call = self._open()
        if call is None:
            return None
        call.sendall(json.dumps({"join": number}).encode() + b"\n")
        rights = array.array("i")
        text, control, _flags, _address = call.recvmsg(1 << 12, socket.CMSG_SPACE(NUM_ENDS * rights.itemsize))
        for _level, _kind, data in control:
            rights.frombytes(data)
        if len(rights) != NUM_ENDS:
            return None
        answer = json.loads(text)
        ends = RankEnds(*(_moved_up(end) for end in rights))
        # Where the script has put other files there, it wants its output in them.
        for descriptor, end in ((1, ends.out), (2, ends.err)):
            if _identity(descriptor) == self._streams[descriptor - 1]:
                os.dup2(end, descriptor)
            os.close(end)
        answer_with_stacks(ends.stacks)
        os.close(ends.trouble)
        self._call = call
        rank: int = answer["rank"]
        return JoinedRank(rank, self._spec.world_size, ends.trace, ends.questions, answer["origin"])

    def leave(self, exit_code: int) -> None:
        """Tell how this rank is about to end, and what it used with the children that it waited for."""
        if self._call is None:
            return
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        used = [resource.getrusage(who) for who in whose]
        self._tell(
            self._call,
            exit_code=exit_code,
            user_s=sum(one.ru_utime for one in used),
            system_s=sum(one.ru_stime for one in used),
            peak_rss_bytes=max(one.ru_maxrss for one in used) * 1024,
        )

    def buried(self, pid: int, exit_code: int) -> None:
        """Tell how a child ended: the kernel said it to this process alone."""
        if (call := self._open()) is not None:
            self._tell(call, buried=pid, exit_code=exit_code)
            call.close()

    def _open(self) -> socket.socket | None:
        # Out of the way of what the script opens.
        call = socket.socket(fileno=_moved_up(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).detach()))
        call.settimeout(_ANSWER_S)
        try:
            call.connect(f"\0{self._address}")
        except OSError:
            call.close()
            return None
        return call

    def _tell(self, call: socket.socket, **words: Any) -> None:
        with contextlib.suppress(OSError):
            call.sendall(json.dumps(words).encode() + b"\n")

    def _forked(self) -> None:
        if self._call is not None:
            self._call.close()
            self._call = None


def telling_exits(membership: Membership, leave: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
    """`os._exit`, which first tells the supervisor."""

    def _exit(status: int) -> NoReturn:
        membership.leave(status & 0xFF)
        leave(status)

    return _exit


def telling_burials(membership: Membership, poll: Callable[..., int | None]) -> Callable[..., int | None]:
    """`poll` of a `multiprocessing` process, which tells the supervisor once of one that has ended."""

    def told(self: Any, *args: Any, **kwargs: Any) -> int | None:
        before = self.returncode
        code = poll(self, *args, **kwargs)
        if code is not None and before is None:
            membership.buried(self.pid, code)
        return code

    return told


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        stat = os.fstat(descriptor)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _moved_up(descriptor: int) -> int:
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_DESCRIPTOR)
    os.close(descriptor)
    return moved
