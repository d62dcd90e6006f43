"""Processes that wait to be started by the script: what `multiprocessing` would start as a new interpreter.

A new interpreter imports torch for seconds and has nothing of ours in it. These were forked before the script's first
line: they have run nothing of the script's, as a new interpreter hasn't, and get all else from whoever starts them:
descriptors, environment, folder, arguments. They are its children, so that it can wait for them, and few. What it
starts beyond them is forked from the last one, which becomes a fork server as `multiprocessing` has them.
"""

from __future__ import annotations

import array
import fcntl
import json
import multiprocessing.context
import multiprocessing.forkserver
import multiprocessing.popen_forkserver
import multiprocessing.popen_spawn_posix
import multiprocessing.spawn
import multiprocessing.util
import os
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from grader.launch.ranks.rank import leave_no_module, rank_seed, reseed
from grader.launch.ranks.script import run_as_command
from grader.launch.spec import LaunchSpec
from grader.launch.system.processes import die_with_parent, keep_parent_death_signal
from grader.probe.install import finish_once
from grader.probe.processes import joining
from grader.probe.trace.writer import writer

_SPAWNED = "from multiprocessing.spawn import "
_SERVER = "from multiprocessing.forkserver import "
_MOST_DESCRIPTORS = 64
_ABOVE = 3000
"""Descriptors that a script passes on have lower numbers."""


class WaitingProcesses:
    """Those of one process, which is the one that makes this; `origin` as `joining.begin` has it."""

    def __init__(self, spec: LaunchSpec, number: int = 0) -> None:
        self.origin = 0.0
        self._spec = spec
        self._number = number
        self._calls: list[tuple[int, socket.socket]] = []
        self._parent = os.getpid()

    def fork(self, num: int, closed: Sequence[int] = ()) -> None:
        """Fork so many, and one that serves what is started beyond them; used from now on.

        Args:
            num: of them; closed: descriptors that are this process's alone.
        """
        for index in range(num + 1):
            ours, theirs = socket.socketpair()
            pid = os.fork()
            if pid == 0:
                for descriptor in (*closed, ours.fileno(), *(call.fileno() for _pid, call in self._calls)):
                    os.close(descriptor)
                die_with_parent(self._parent)
                leave_no_module()
                # Each has seeds of its own, whoever forked it.
                self._wait(theirs, 1 + index + (num + 1) * self._number)
            theirs.close()
            self._calls.append((pid, ours))
        util: Any = multiprocessing.util
        util.spawnv_passfds = self._instead_of(util.spawnv_passfds)
        spawned: Any = multiprocessing.context.SpawnProcess
        spawned._Popen = staticmethod(self._popen)

    def _popen(self, process: Any) -> Any:
        ours = (
            os.getpid() == self._parent
            and os.fsdecode(multiprocessing.spawn.get_executable()) == sys.executable
        )
        if ours and len(self._calls) < 2:
            return multiprocessing.popen_forkserver.Popen(process)
        return multiprocessing.popen_spawn_posix.Popen(process)

    def _instead_of(self, start: Callable[..., int]) -> Callable[..., int]:
        def spawnv_passfds(path: Any, args: Sequence[Any], passfds: Sequence[int]) -> int:
            texts = [os.fsdecode(arg) for arg in args]
            command = texts[texts.index("-c") + 1 :] if "-c" in texts[:-1] else [""]
            wanted = command[0].startswith((_SPAWNED, _SERVER)) and os.fsdecode(path) == sys.executable
            if wanted and self._calls and os.getpid() == self._parent:
                return self._send(command, [0, 1, 2, *map(int, passfds)])
            return start(path, args, passfds)

        return spawnv_passfds

    def _send(self, command: list[str], descriptors: list[int]) -> int:
        # The last one is the server's.
        pid, call = self._calls.pop(-1 if command[0].startswith(_SERVER) else 0)
        order = {
            "command": command,
            "descriptors": descriptors,
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "origin": self.origin,
        }
        with call:
            call.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))])
            call.sendall(json.dumps(order).encode())
        return pid

    def _wait(self, call: socket.socket, number: int) -> NoReturn:
        """Wait for an order, then run its command as a new interpreter would."""
        order = _receive(call)
        # Nobody else's death ends a process that was started; what it wants for itself it says itself.
        keep_parent_death_signal(0)
        more = WaitingProcesses(self._spec, number)
        more.origin = order["origin"]
        if not order["command"][0].startswith(_SERVER):
            more.fork(0)
        elif self._number:
            # What a started process starts feeds it, and is no rank.
            writer.stop()
        os.environ.clear()
        os.environ.update(order["environment"])
        seed = rank_seed(self._spec.seed, number)
        reseed(seed)
        joining.begin(order["origin"], seed)
        command, *arguments = order["command"]
        run_as_command(command, arguments, Path(self._spec.submission_dir), finish_once)


def _receive(call: socket.socket) -> dict[str, Any]:
    """An order, its descriptors and folder taken; ends this process where there will be none."""
    rights = array.array("i")
    try:
        with call:
            space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * rights.itemsize)
            _byte, control, _flags, _address = call.recvmsg(1, space)
            for _level, _kind, data in control:
                rights.frombytes(data)
            text = b""
            while chunk := call.recv(1 << 16):
                text += chunk
        order: dict[str, Any] = json.loads(text)
        # They have the numbers that the command says; what came may lie where another one has to.
        copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, _ABOVE) for descriptor in rights]
        for descriptor in rights:
            os.close(descriptor)
        for copy, target in zip(copies, order["descriptors"], strict=True):
            os.dup2(copy, target)
            os.close(copy)
        os.chdir(order["folder"])
    except (OSError, ValueError):
        os._exit(0)
    return order
