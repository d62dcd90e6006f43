"""A port for a server that takes no socket of ours: free when asked, so that several tests may run side by side."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_LOWEST = 15_000
_given: set[int] = set()
# Of the operating system, so that tests that are seeded alike don't ask for the same ones.
_chance = random.SystemRandom()


def free_port() -> int:
    """A port of this machine that nobody listens on now.

    None that the system gives to connections and to servers that name no port: those of the tests beside would take it
    before it is used.
    """
    while True:
        port = _chance.randrange(_LOWEST, _first_given_by_system())
        if port in _given:
            continue
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


def _first_given_by_system() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except OSError:
        return 32_768
