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
        deadline = time.monotonic() + 60
        answered = 0
        # Every process is to be warm: a row of new connections meets them all.
        while answered < 32:
            assert self._process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not start"
            try:
                began = time.monotonic()
                status = httpx.get(f"http://127.0.0.1:{self._port}/readyz", timeout=5).status_code
                answered = answered + 1 if status == 200 and time.monotonic() - began < 0.5 else 0
            except httpx.TransportError:
                answered = 0
                time.sleep(0.1)
        return self._port

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)
