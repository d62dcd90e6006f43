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

from grader.launch.system.processes import die_with_parent

_QUICK_S, _LONGEST_PAUSE_S = 10.0, 20.0
_LOG_BYTES = 32 << 20
_END_S = {"web": 20.0, "relay": 20.0, "worker": 95.0}
"""How long each may take to end in order."""


@dataclass
class _Service:
    name: str
    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause_s: float = 0.0
    next_s: float = field(default=0.0)


class ServiceProcesses:
    """Runs from `start` to `end`."""

    def __init__(self, commands: dict[str, list[str]], logs: Path) -> None:
        """`commands`: arguments of `grader` by name; `logs`: folder of `NAME.log`."""
        self._services = [_Service(name, arguments) for name, arguments in commands.items()]
        self._logs = logs

    def start(self) -> None:
        """Start all."""
        self._logs.mkdir(parents=True, exist_ok=True)
        for service in self._services:
            self._start(service)

    def restart_dead(self) -> list[str]:
        """Restart what has died, after a pause where it died soon; returns what happened, in words."""
        happened = []
        now = time.monotonic()
        for service in self._services:
            if service.process is not None and service.process.poll() is not None:
                quick = now - service.started < _QUICK_S
                service.pause_s = min(_LONGEST_PAUSE_S, 2 * service.pause_s + 1.0) if quick else 0.0
                service.next_s = now + service.pause_s
                code = service.process.returncode
                happened.append(
                    f"{service.name} ended with {code} and is started again; see {self.log(service.name)}"
                )
                service.process = None
            if service.process is None and now >= service.next_s:
                self._start(service)
        return happened

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self._logs / f"{name}.log"

    def end(self) -> None:
        """End all in order, each in its time; returns when none is left."""
        running = [m for m in self._services if m.process is not None]
        for service in running:
            assert service.process is not None
            if service.process.poll() is None:
                service.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        for service in running:
            assert service.process is not None
            left_s = _END_S.get(service.name, 20.0) - (time.monotonic() - began)
            try:
                service.process.wait(max(0.1, left_s))
            except subprocess.TimeoutExpired:
                service.process.kill()
                service.process.wait()
            service.process = None

    def _start(self, service: _Service) -> None:
        parent = os.getpid()
        with self._open_log(service.name) as log:
            service.process = subprocess.Popen(
                [sys.executable, "-m", "grader", *service.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches us alone; we end the others in order.
                start_new_session=True,
                # This process has one thread.
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509
            )
        service.started = time.monotonic()

    def _open_log(self, name: str) -> IO[bytes]:
        path = self.log(name)
        if path.exists() and path.stat().st_size > _LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        return path.open("ab")
