"""The port that people come to: whether it is free, and when somebody answers there."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import httpx

from grader.errors import UsageError

_START_S = 120.0


def web_url(host: str, port: int) -> str:
    """What people type into their browser."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


def check_port_free(host: str, port: int) -> None:
    """Refuse a port that somebody else has.

    Raises:
        UsageError: it is taken, or no port of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} of {host} cannot be had ({error}): name another with --port") from None


def wait_until_serving(host: str, port: int, stopping: threading.Event) -> bool:
    """Wait until the service answers; False where it was told to end before, or takes unreasonably long."""
    deadline = time.monotonic() + _START_S
    while not stopping.wait(0.1) and time.monotonic() < deadline:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{web_url(host, port)}/healthz", timeout=2.0).status_code == 200:
                return True
    return False
