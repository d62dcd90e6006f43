"""The third launcher: an interpreter of its own for every rank, which has imported everything before the clock starts.

Ranks that fork from one process share its hash seed: a set of strings has the same order in all of them. Under
torchrun it has not, and a script that reduces tensors in that order fails there. So a script in which such an order
may matter gets ranks like torchrun's, which cost an import of torch each, and are clocked like forked ones.

The other half is `interpreter_entry`, which runs in each of them.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import time
from dataclasses import asdict
from typing import Any

from grader.launch.launchers import interpreter_entry
from grader.launch.launchers.launcher import ForkLauncher
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.seal_key import SealKey
from grader.launch.spec import LaunchSpec

_READY_S = 300.0


class InterpreterLauncher(ForkLauncher):
    """Starts an interpreter per rank, waits until all are ready, and turns each into its rank."""

    def __init__(self, spec: LaunchSpec, ranks: list[RankProcess], port: int, key: SealKey) -> None:
        super().__init__(spec, ranks, port, key)
        self._calls: list[socket.socket] = []
        self._import_s: dict[int, tuple[float, float]] = {}

    def prepare(self) -> None:
        """Start the interpreters and wait for their imports; raises OSError where one does not get ready."""
        super().prepare()
        for rank in self._ranks:
            ours, theirs = socket.socketpair()
            ours.settimeout(_READY_S)
            interpreter = subprocess.Popen(
                [sys.executable, "-u", interpreter_entry.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
            theirs.close()
            rank.pid = interpreter.pid
            # Reaped by the supervisor's own loop, as forked ranks are.
            interpreter.returncode = 0
            self._calls.append(ours)
        for rank, call in zip(self._ranks, self._calls, strict=True):
            try:
                told = json.loads(call.recv(1 << 12))
            except ValueError as error:
                raise OSError(f"the interpreter of rank {rank.rank} ended while it was importing") from error
            self._import_s[rank.pid] = (told["user_s"], told["system_s"])

    def start(self, origin: float) -> None:
        """Let each become its rank."""
        for rank, environment, call in zip(self._ranks, self._environments, self._calls, strict=True):
            request: dict[str, Any] = {
                "spec": asdict(self._spec),
                "rank": rank.rank,
                "environment": environment,
                "origin": origin,
                "parent": os.getpid(),
            }
            self._key.send(call, list(rank.ends))
            call.sendall(json.dumps(request).encode() + b"\n")
            call.close()
            rank.started_s = time.monotonic() - origin
            rank.hand_over()

    def reaped(self, pid: int, exit_code: int, used: resource.struct_rusage, now_s: float) -> bool:
        """Note a rank's end, with what it used since it became the rank."""
        if not super().reaped(pid, exit_code, used, now_s):
            return False
        rank = next(rank for rank in self._ranks if rank.pid == pid)
        user_s, system_s = self._import_s[pid]
        rank.cpu_user_s = max(0.0, rank.cpu_user_s - user_s)
        rank.cpu_system_s = max(0.0, rank.cpu_system_s - system_s)
        return True
