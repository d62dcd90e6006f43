"""`grader web` in a process of its own, on a free port: what measures over HTTP talk with."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.ports import free_port


class serving:  # noqa: N801 - reads as what it does
    """`grader web` in a process of its own."""

    def __init__(self, url: str, folder: Path, processes: int = 1) -> None:
        self._port = free_port()
        environment = os.environ | {
            "GRADER_DATABASE_URL": url,
            "GRADER_STATE_DIR": str(folder),
            "GRADER_SUBMITS_PER_MINUTE": "0",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "grader", "web", "--port", str(self._port), "--processes", str(processes)],
            env=environment,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> int:
        try:
            self._wait_until_warm()
        except BaseException:
            self.__exit__()
            raise
        return self._port

    def _wait_until_warm(self) -> None:
        deadline = time.monotonic() + 30
        answered, ready = 0, False
        # Every process is to be warm: a row of new connections meets them all. A busy machine may never be that quick.
        while answered < 32 and not (ready and time.monotonic() > deadline):
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < deadline + 60, "the server does not start"
            try:
                began = time.monotonic()
                ready = httpx.get(f"http://127.0.0.1:{self._port}/readyz", timeout=5).status_code == 200
                answered = answered + 1 if ready and time.monotonic() - began < 0.5 else 0
            except httpx.TransportError:
                answered = 0
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
