"""The launcher that starts no ranks: it runs the script once, as `python train.py` would, and sees who becomes a rank.

Every process of the script that joins a process group calls us (`membership`), and is a rank from then on. What the
processes print before goes to the stream of rank 0, which is the first process's until another one takes it. Ranks are
their parents' to bury: the kernel tells us that one has gone, the rank or its parent how.
"""

from __future__ import annotations

import array
import json
import os
import resource
import select
import signal
import socket
import time
from typing import Any

from grader.launch.launchers.membership import ONLY_IF_NOBODY
from grader.launch.launchers.starter import become_starter
from grader.launch.ranks.environment import job_environment
from grader.launch.ranks.rank_calls import RankCalls, caller_pid
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.spec import LaunchSpec

_READY_S = 300.0
_BURIED_S = 1.0
"""How long a parent may take to tell how a child ended that has not told it itself."""
_MOST_STATUS = 255


class PythonLauncher:
    """Runs the script once and takes in the ranks that it starts."""

    def __init__(self, spec: LaunchSpec, ranks: list[RankProcess], key: SealKey) -> None:
        self._spec = spec
        self._key = key
        self._ranks = ranks
        self._calls = RankCalls(backlog=2 * spec.nproc_per_node)
        self._members: dict[socket.socket, RankProcess] = {}
        self._handles: dict[int, RankProcess] = {}
        self._gone_s: dict[int, float] = {}
        self._said: dict[int, int] = {}
        """Exit codes that processes told of themselves or of their children, by process id."""
        self._joined: set[int] = set()
        self._refused = ""
        self._starter = 0
        self._starter_exit: int | None = None
        self._import_s = 0.0
        self.ended_s = 0.0
        self._origin = 0.0
        self.own_pids: set[int] = set()

    @property
    def complaint(self) -> str:
        """A process came that can be no rank."""
        return self._refused

    @property
    def descriptors(self) -> list[int]:
        """Where processes call, and what says that a rank has gone."""
        return [*self._calls.descriptors, *self._handles]

    @property
    def over(self) -> bool:
        """Whether the script's first process has ended."""
        return self._starter_exit is not None

    def prepare(self) -> None:
        """Fork the script's first process and wait until it is ready; raises OSError where it does not get so."""
        first = self._ranks[0]
        self._control, theirs = socket.socketpair()
        environment = job_environment(self._spec)
        pid = os.fork()
        if pid == 0:
            become_starter(
                self._spec, first.ends, environment, theirs.fileno(), self._calls.address, self._key
            )
        theirs.close()
        self._control.settimeout(_READY_S)
        self._starter = first.pid = pid
        try:
            self._import_s = json.loads(self._control.recv(1 << 12))["ready"]
        except (OSError, ValueError) as error:
            raise OSError(
                f"the script's first process did not get ready: {first.trouble() or error}"
            ) from error

    def start(self, origin: float) -> None:
        """Let it run the script."""
        self._origin = origin
        self._control.sendall(json.dumps({"origin": origin, "port": _free_port()}).encode())
        self._control.close()
        self._ranks[0].started_s = time.monotonic() - origin

    def serve(self, now_s: float, owners: dict[int, RankProcess]) -> None:
        """Take in ranks, and note which have gone."""
        # What is no rank's is the first one's, so that a child at work never looks like a standstill.
        owners[self._starter] = self._ranks[0]
        for call, message in self._calls.take():
            try:
                self._understand(call, message or {}, now_s)
            except (ValueError, KeyError, TypeError, OverflowError, OSError):
                # No process of ours sends that.
                continue
        for handle in [handle for handle in self._handles if _ended(handle)]:
            rank = self._handles.pop(handle)
            self._gone_s[rank.rank] = now_s
            os.close(handle)
        for number, gone_s in list(self._gone_s.items()):
            rank = self._ranks[number]
            code = self._said.get(rank.pid)
            # Whoever was told to end was told so by somebody who saw another one fail, which is yet to be heard of.
            known = code is not None and (not self._was_told_to_end(rank) or self._failed_beside(rank))
            if known or now_s - gone_s > _BURIED_S:
                del self._gone_s[number]
                # Who was killed cannot say so.
                self._end(rank, -signal.SIGKILL if code is None else code, gone_s)

    def reaped(self, pid: int, exit_code: int, used: resource.struct_rusage, now_s: float) -> bool:
        """The first process ended; ranks are its to bury."""
        if pid != self._starter:
            return False
        self._starter_exit = exit_code
        self.ended_s = now_s
        first = self._ranks[0]
        told_s = sum(rank.cpu_user_s + rank.cpu_system_s for rank in self._ranks)
        # Of all whom it buried together: what no rank told of itself is charged to the first.
        first.cpu_user_s += max(0.0, used.ru_utime + used.ru_stime - told_s - self._import_s)
        first.peak_rss_bytes = max(first.peak_rss_bytes, used.ru_maxrss * 1024 if first.pid == pid else 0)
        if first.pid == pid and first.alive:
            first.ended(exit_code, now_s)
        return True

    def close(self, now_s: float) -> None:
        """Settle how those ended that nobody has told of, and what the first process's own end means."""
        self.serve(now_s, {})
        self._calls.close()
        for rank in sorted(
            self._ranks, key=lambda rank: (self._was_told_to_end(rank), self._gone_s.get(rank.rank, now_s))
        ):
            if rank.rank in self._joined and rank.alive:
                code = self._said.get(rank.pid, -signal.SIGKILL)
                self._end(rank, code, self._gone_s.get(rank.rank, now_s))
            elif not self._spec.probe and rank.alive:
                rank.ended(self._starter_exit or 0, now_s)
            if rank.rank not in self._joined:
                rank.hand_over()
        for handle in self._handles:
            os.close(handle)
        first = self._ranks[0]
        if self._starter_exit and not any(rank.exit_code for rank in self._ranks):
            # It failed after its ranks had done well; what it said stands in the first one's stream.
            first.exit_code = self._starter_exit

    def _understand(self, call: socket.socket, message: dict[str, Any], now_s: float) -> None:
        if "join" in message:
            number = message["join"]
            self._take_in(call, None if number is None else int(number), now_s)
        elif "buried" in message:
            self._said[int(message["buried"])] = int(message["exit_code"])
        elif "exit_code" in message:
            rank = self._members[call]
            self._said.setdefault(rank.pid, int(message["exit_code"]) & _MOST_STATUS)
            rank.cpu_user_s = max(0.0, float(message["user_s"]))
            rank.cpu_system_s = max(0.0, float(message["system_s"]))
            rank.peak_rss_bytes = max(0, int(message["peak_rss_bytes"]))

    def _take_in(self, call: socket.socket, number: int | None, now_s: float) -> None:
        pid = caller_pid(call)
        free = [rank for rank in self._ranks if rank.rank not in self._joined]
        if number == ONLY_IF_NOBODY:
            rank = self._ranks[0] if not self._joined else None
        elif number is None:
            rank = free[0] if free else None
        else:
            rank = next((rank for rank in free if rank.rank == number), None)
        if rank is None:
            if number != ONLY_IF_NOBODY:
                self._refuse(number)
            call.sendall(b"{}\n")
            return
        self._joined.add(rank.rank)
        self._members[call] = rank
        rights = array.array("i", list(rank.ends))
        answer = json.dumps({"rank": rank.rank, "origin": self._origin}).encode()
        call.sendmsg([answer], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        rank.hand_over()
        if rank.pid != pid or pid != self._starter:
            rank.started_s = now_s
            rank.last_moved_s = now_s
        rank.pid = pid
        if pid != self._starter:
            # Reaped by us alone is the first process.
            self._handles[os.pidfd_open(pid)] = rank

    def _refuse(self, number: int | None) -> None:
        if self._refused:
            return
        num = self._spec.world_size
        if number is None or number in range(num):
            self._refused = (
                f"More processes joined than there are ranks: a second one came as rank {number}"
                if number is not None
                else f"More than {num} processes trained"
            )
        else:
            self._refused = f"A process joined as rank {number}; the task has {num} ranks, numbered from 0"
        self._refused += ". Start each rank once, as many as the script's arguments say."

    def _end(self, rank: RankProcess, exit_code: int, now_s: float) -> None:
        another_failed = self._failed_beside(rank)
        rank.ended(exit_code, now_s)
        if exit_code == -signal.SIGTERM and another_failed:
            # `mp.spawn` ends the others when one fails, as the judge does in its own launcher.
            rank.killed_by_judge = True

    def _was_told_to_end(self, rank: RankProcess) -> bool:
        return self._said.get(rank.pid) == -signal.SIGTERM

    def _failed_beside(self, rank: RankProcess) -> bool:
        return any(other.exit_code for other in self._ranks if other is not rank)


def _ended(handle: int) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(0))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
