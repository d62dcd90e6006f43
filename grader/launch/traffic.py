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


class TrafficWatch:
    """Counts from its making on; `contained`: the loopback interface is the run's own."""

    def __init__(self, *, contained: bool) -> None:
        self._before = sent_bytes("lo") if contained else None

    def moved_bytes(self) -> int | None:
        """Bytes sent over the loopback interface since then; None where that says nothing about the run."""
        now = sent_bytes("lo")
        return now - self._before if self._before is not None and now is not None else None
