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
    """Counts from its making on.

    Args:
        interface: that ranks talk through; ranks of one node may use loopback besides.
        contained: these interfaces are the run's own.
    """

    def __init__(self, interface: str = "lo", *, contained: bool) -> None:
        self._interfaces = {"lo", interface}
        self._before = self._sent() if contained else None

    def moved_bytes(self) -> int | None:
        """Bytes sent since then; None where that says nothing about the run."""
        now = self._sent()
        return now - self._before if self._before is not None and now is not None else None

    def _sent(self) -> int | None:
        counted = [sent_bytes(interface) for interface in self._interfaces]
        return sum(filter(None, counted)) if None not in counted else None
