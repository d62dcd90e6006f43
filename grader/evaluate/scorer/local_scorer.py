"""The scorer as a process of this machine: started warm, asked one thing at a time, never left behind.

For runtimes that bring no scorer of their own. Knows how to talk, not what about.
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
from pathlib import Path
from typing import IO, Any

from grader.errors import InfraError

_START_S = 120.0
_ROOT = Path(__file__).resolve().parents[3]


class LocalScorer:
    """One process of `grader.evaluate.scorer.scorer_process`, replaced when it was killed while idle."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""
        self._ready = False

    def start(self) -> None:
        """Start it without waiting; raises InfraError where that is not possible."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        # Isolated from the caller's folder and variables: only our own package is put on the path.
        start = (
            f"import sys; sys.path.insert(0, {str(_ROOT)!r}); "
            "from grader.evaluate.scorer.scorer_process import main; main()"
        )
        environment = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
            if name in os.environ
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd="/",
                env=environment | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                # Its own session: Ctrl-C is ours to handle, and one signal reaches it with its children.
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise InfraError(f"The scorer could not be started: {error}") from error

    @property
    def pid(self) -> int:
        """Process id; 0 while there is none."""
        return self._process.pid if self._process is not None else 0

    def stop(self) -> None:
        """End it with everything it started."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(BrokenPipeError):
                if process.stdin:
                    process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()
        if self._errors:
            self._errors.close()
        self._pending, self._ready = b"", False

    def wait_ready(self) -> None:
        """Wait until torch is imported; one that was killed while idle is replaced.

        Raises:
            InfraError: it never comes up.
        """
        if self._process is not None and self._process.poll() is not None:
            # Killed from outside while it was idle: nothing of this attempt was lost with it.
            self.stop()
            self.start()
        if not self._ready:
            self._receive(time.monotonic() + _START_S)
            self._ready = True

    def ask(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Its answer to one request; raises InfraError when there is none within `wall_s` seconds."""
        self.wait_ready()
        process = self._process
        if process is None or process.stdin is None:
            raise InfraError("The scorer was not started.")
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise InfraError(f"The scorer is gone: {error}.{self.last_words()}") from error
        return self._receive(time.monotonic() + wall_s)

    def _receive(self, deadline: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise InfraError("The scorer was not started.")
        descriptor = process.stdout.fileno()
        while b"\n" not in self._pending:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                # An answer that comes later must not be taken for the next one's.
                process.kill()
                raise InfraError(f"The scorer gave no answer in time.{self.last_words()}")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise InfraError(f"The scorer ended.{self.last_words()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise InfraError("The scorer gave an answer that is none.")
        return answer

    def last_words(self) -> str:
        """The end of its standard error as part of a message; "" where it said nothing."""
        if self._errors is None:
            return ""
        # The scorer writes through the same open file: seeking would move its position too.
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        lines = os.pread(descriptor, 4096, max(0, size - 4096)).decode(errors="replace").strip().splitlines()
        return f" Its last words: {lines[-1]}" if lines else ""
