"""A port for a server that takes no socket of ours: free when asked, so that several tests may run side by side."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
