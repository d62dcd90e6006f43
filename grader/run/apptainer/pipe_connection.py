"""A connection to a container that is a child process of ours: three pipes, and an end of all that descends from it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

from grader.errors import InfraError
from grader.launch.system.processes import Usage, descendants, send_all, usage
from grader.run.container_connection import ContainerConnection

_CHUNK_BYTES = 1 << 18
_END_S = 5.0


class PipeConnection(ContainerConnection):
    """A started command and its streams."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], run_as: Mapping[str, Any]
    ) -> None:
        """Start it.

        Args:
            name: for messages.
            command: what to run, with its arguments.
            environment: all of its variables.
            run_as: arguments of `subprocess.Popen` that say as whom.

        Raises:
            InfraError: it cannot be started.
        """
        super().__init__(name)
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=dict(environment),
                # Ctrl-C is ours to handle.
                start_new_session=True,
                **run_as,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise InfraError(f"{name} could not be started: {error}") from error
        if self._process.stdin is None or self._process.stdout is None or self._process.stderr is None:
            raise InfraError(f"{name} has no streams.")
        self._input, self._output, self._error = (
            self._process.stdin,
            self._process.stdout,
            self._process.stderr,
        )
        os.set_blocking(self._input.fileno(), False)
        self._open = {self._output.fileno(), self._error.fileno()}

    def pin(self, cpus: tuple[int, ...]) -> None:
        """Let it and what descends from it use these CPUs only."""
        for pid in (self._process.pid, *descendants(self._process.pid)):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(pid, cpus)

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it and everything that descends from it; returns when it is dead.

        Raises:
            InfraError: something of it outlives that.
        """
        deadline = time.monotonic() + _END_S
        below: dict[int, Usage] = {}
        while True:
            # With the first process of a container, the kernel ends all others in it.
            below |= descendants(self._process.pid)
            send_all(below, signal.SIGKILL)
            if self._process.poll() is None:
                self._process.kill()
            elif not any(_lives(pid, one) for pid, one in below.items()):
                return
            if time.monotonic() > deadline:
                raise InfraError(f"{self.name} could not be ended.")
            time.sleep(0.01)

    def close(self) -> None:
        """Let go of its streams, which ends a container by itself."""
        for stream in (self._input, self._output, self._error):
            with contextlib.suppress(OSError):
                stream.close()
        self._open = set()
        self._over = True

    def _write(self, data: bytes, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        left = memoryview(data)
        if self._input.closed:
            raise BrokenPipeError("its input is closed")
        while left:
            writable = select.select([], [self._input], [], max(0.0, deadline - time.monotonic()))[1]
            if not writable:
                raise TimeoutError(f"it took nothing for {limit_s:.0f} s")
            left = left[os.write(self._input.fileno(), left[:_CHUNK_BYTES]) :]

    def _read(self, left_s: float) -> bool:
        if not self._open:
            raise EOFError
        readable, _, _ = select.select(list(self._open), [], [], left_s)
        for descriptor in readable:
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                self._open.discard(descriptor)
            elif descriptor == self._output.fileno():
                self._take_output(chunk)
            else:
                self._take_errors(chunk)
        if not self._open:
            raise EOFError
        return bool(readable)


def _lives(pid: int, one: Usage) -> bool:
    now = usage(pid)
    return now is not None and now.started == one.started and not now.zombie
