"""The processes of one command: started together, restarted when one dies, ended together.

Each is the command that one could type, with its log in a file of its own. They end with us, however we end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from grader.launch.processes import die_with_parent

_QUICK_S, _LONGEST_PAUSE_S = 10.0, 20.0
_LOG_BYTES = 32 << 20
_END_S = {"web": 20.0, "relay": 20.0, "worker": 95.0}
"""How long each may take to end in order."""


@dataclass
class _Member:
    name: str
    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause_s: float = 0.0
    next_s: float = field(default=0.0)


class Household:
    """Runs from `start` to `end`."""

    def __init__(self, commands: dict[str, list[str]], logs: Path) -> None:
        """`commands`: arguments of `grader` by name; `logs`: folder of `NAME.log`."""
        self._members = [_Member(name, arguments) for name, arguments in commands.items()]
        self._logs = logs

    def start(self) -> None:
        """Start all."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for member in self._members:
            self._start(member)

    def tend(self) -> list[str]:
        """Restart what has died, after a pause where it died soon; returns what happened, in words."""
        said = []
        now = time.monotonic()
        for member in self._members:
            if member.process is not None and member.process.poll() is not None:
                quick = now - member.started < _QUICK_S
                member.pause_s = min(_LONGEST_PAUSE_S, 2 * member.pause_s + 1.0) if quick else 0.0
                member.next_s = now + member.pause_s
                code = member.process.returncode
                said.append(
                    f"{member.name} ended with {code} and is started again; see {self.log(member.name)}"
                )
                member.process = None
            if member.process is None and now >= member.next_s:
                self._start(member)
        return said

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self._logs / f"{name}.log"

    def end(self) -> None:
        """End all in order, each in its time; returns when none is left."""
        running = [m for m in self._members if m.process is not None]
        for member in running:
            assert member.process is not None
            if member.process.poll() is None:
                member.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        for member in running:
            assert member.process is not None
            left_s = _END_S.get(member.name, 20.0) - (time.monotonic() - began)
            try:
                member.process.wait(max(0.1, left_s))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()
            member.process = None

    def _start(self, member: _Member) -> None:
        parent = os.getpid()
        with self._open_log(member.name) as log:
            member.process = subprocess.Popen(
                [sys.executable, "-m", "grader", *member.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches us alone; we end the others in order.
                start_new_session=True,
                # This process has one thread.
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509
            )
        member.started = time.monotonic()

    def _open_log(self, name: str) -> IO[bytes]:
        path = self.log(name)
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")
