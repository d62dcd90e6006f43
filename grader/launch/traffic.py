"""Bytes that crossed a network interface: what ranks really sent each other, as the kernel counts it.

Means something only where the interface is the run's own, as in a container.
"""

from __future__ import annotations

from pathlib import Path


def sent_bytes(interface: str) -> int | None:
    """Bytes sent through an interface since it exists, headers included; None where there is none of that name."""
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, colon, numbers = line.partition(":")
        if colon and name.strip() == interface:
            return int(numbers.split()[8])
    return None
