"""`grader web` as an operator starts it, and thousands of connections to it."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from tests.ports import free_port

HALF = b"GET /sign-in HTTP/1.1\r\nHost: grader\r\n"
SLOW_FORM = (
    b"POST /sign-in HTTP/1.1\r\nHost: grader\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 900\r\n\r\na="
)
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class WebProcess:
    """One that is ready; `process`: it, with how many connections it has."""

    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def web_process(folder: Path, **settings: str) -> Iterator[WebProcess]:
    """Serve what lies in this folder, with the limit of open files that shells have."""
    port = free_port()
    command = [sys.executable, "-m", "grader", "web", "--port", str(port)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env=os.environ | {"GRADER_STATE_DIR": str(folder), **settings}, stderr=log, cwd=_CHECKOUT
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    try:
        wait_until_answers(f"http://127.0.0.1:{port}/readyz", process, folder / "log")
        yield WebProcess(port, psutil.Process(process.pid))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_until_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a server that was just started; fails with its log where it ends instead."""
    deadline = time.monotonic() + 60
    while True:
        try:
            assert httpx.get(url, timeout=5, verify=False).status_code == 200
            return
        except httpx.TransportError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)


@contextmanager
def many_files() -> Iterator[None]:
    """Let this process hold some thousand sockets within the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 12_000:
        pytest.skip(f"a process may open {hard} files here, too few for thousands of connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (12_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(stack: ExitStack, port: int, said: bytes = b"") -> socket.socket:
    """A connection that says this much, and stays open for as long as the stack does."""
    one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
    if said:
        one.sendall(said)
    return one


def ended_after(one: socket.socket, *, least: float, most: float) -> bytes:
    """What the server said until it hung up, which must take about that long."""
    began, said = time.monotonic(), b""
    one.settimeout(most)
    try:
        while piece := one.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    assert least <= time.monotonic() - began <= most
    return said
