"""The grader's end of a fork server: starts the process, sends it runs, reads its events.

Knows the protocol of `grader.launch.servers.fork_server` and nothing of workspaces or jobs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from grader.errors import InfraError
from grader.launch.bounds import kill_s, stop_s
from grader.launch.ranks.environment import clean_environment
from grader.launch.spec import LaunchSpec

_WARM_S = 120.0
_STOP_S = 3.0
"""Beyond what the fork server itself gives a run that is to stop."""
COMMAND = [sys.executable, "-u", "-m", "grader.launch.servers.fork_server"]
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent.parent


class ForkServerLostError(InfraError):
    """The fork server is gone; another one may do better."""


class ForkServerClient:
    """One process of `python -m grader.launch.servers.fork_server`, starting from the moment this object exists."""

    def __init__(self) -> None:
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the process
        self._process = subprocess.Popen(
            COMMAND,
            cwd=_PACKAGE_PARENT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            # Not ours to be interrupted with: Ctrl-C reaches the grader, which then ends the run in order.
            start_new_session=True,
        )
        self._received = b""
        self._ready = False
        self._stop_s = _STOP_S + stop_s(0)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def wait_ready(self) -> None:
        """Wait until a run would start at once; raises ParentLostError if that never happens."""
        deadline = time.monotonic() + _WARM_S
        while not self._ready:
            event = self._event(deadline)
            if event is None:
                raise ForkServerLostError(
                    f"The warm process did not get ready within {_WARM_S:.0f} s.{self._last_words()}"
                )
            self._ready = event.get("event") == "ready"

    def run(self, spec: LaunchSpec, limit_s: float, on_event: Callable[[dict[str, Any]], None]) -> None:
        """Have a run done; returns when its record is written and every process of it is dead.

        Args:
            spec: the run.
            limit_s: seconds after which the fork server is taken for hung.
            on_event: is given every event meanwhile.

        Raises:
            ParentLostError: the fork server ended or hung, or its supervisor failed.
        """
        self.wait_ready()
        self._stop_s = _STOP_S + stop_s(len(spec.gpus)) + kill_s(len(spec.gpus))
        self._send(spec.to_json())
        deadline = time.monotonic() + limit_s
        while (event := self._event(deadline)) is not None:
            if event.get("event") == "ended":
                return
            if event.get("event") == "failed":
                raise ForkServerLostError(
                    f"The run could not be supervised: {event.get('reason')}.{self._last_words()}"
                )
            on_event(event)
        raise ForkServerLostError(
            f"The supervisor gave no answer within {limit_s:.0f} s.{self._last_words()}"
        )

    def stop_run(self) -> None:
        """End the current run and wait until it is dead; the fork server stays warm if it answers in time."""
        with contextlib.suppress(ForkServerLostError):
            self._send('{"stop": true}')
            deadline = time.monotonic() + self._stop_s
            while (event := self._event(deadline)) is not None:
                if event.get("event") in ("ended", "failed"):
                    return
        self.close()

    def close(self) -> None:
        """End the process and everything below it."""
        process = self._process
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        if not self._ready:
            # Busy importing, and without children: it would only see the end of its input after that.
            process.kill()
        try:
            process.wait(self._stop_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._stderr.close()

    def _send(self, line: str) -> None:
        pipe = self._process.stdin
        try:
            if pipe is None or pipe.closed:
                raise BrokenPipeError
            pipe.write(line.encode() + b"\n")
            pipe.flush()
        except OSError as error:
            raise ForkServerLostError(f"The warm process has ended.{self._last_words()}") from error

    def _event(self, deadline: float) -> dict[str, Any] | None:
        """The next event; None when the time is over."""
        pipe = self._process.stdout
        if pipe is None or pipe.closed:
            raise ForkServerLostError("The warm process was closed.")
        poller = select.poll()
        poller.register(pipe, select.POLLIN)
        while b"\n" not in self._received:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            if poller.poll(min(left_s, 0.5) * 1000):
                chunk = os.read(pipe.fileno(), 1 << 16)
                if not chunk:
                    raise ForkServerLostError(f"The warm process has ended.{self._last_words()}")
                self._received += chunk
        line, _newline, self._received = self._received.partition(b"\n")
        try:
            event = json.loads(line)
        except ValueError:
            return {}
        return event if isinstance(event, dict) else {}

    def _last_words(self) -> str:
        if self._stderr.closed:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.5)
        code = self._process.poll()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 3000))
        text = self._stderr.read().decode(errors="replace").strip()
        ended = ""
        if code is not None:
            ended = f" It ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}."
        return ended + (f" Its last words:\n{text}" if text else "")
