"""Figures of one worker for Prometheus, counted beside its processes from what they report.

What can be asked of the database (how long the queue is, how old) is told by the web's `/metrics`, not here.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from grader.errors import UsageError
from grader.store.queue.queue import WorkerHost

_SECONDS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640)


class WorkerMetrics:
    """Of one worker, in a registry of its own."""

    def __init__(self, worker: str, slots: int) -> None:
        self.registry = CollectorRegistry()
        self._worker = worker
        self._ended = Counter(
            "grader_worker_attempts_total",
            "Attempts that ended here, by how they ended and by verdict.",
            ["worker", "ending", "verdict"],
            registry=self.registry,
        )
        self._phases = Histogram(
            "grader_worker_phase_seconds",
            "Seconds that attempts spent in a phase.",
            ["worker", "phase"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._attempts = Histogram(
            "grader_worker_attempt_seconds",
            "Seconds from claim to end.",
            ["worker"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._slots = self._gauge("slots", "Attempts that can run side by side.")
        self._busy = self._gauge("slots_busy", "Slots that judge just now.")
        self._healthy = self._gauge("healthy", "1 while this host takes attempts.")
        self._gpus = self._gauge("gpus", "Devices that are fit for use.")
        self._leases = self._gauge("leases_held", "Sets of devices that are handed out on this host.")
        self._waiting = self._gauge("leases_waiting", "Requests that wait for devices on this host.")
        self._pool = self._gauge("pool_containers", "Containers of this site, warm and in use.")
        self._slots.set(slots)

    def serve(self, port: int, address: str = "") -> None:
        """Answer on a port of this host.

        Raises:
            UsageError: it is taken.
        """
        try:
            start_http_server(port, address or "0.0.0.0", self.registry)
        except OSError as error:
            raise UsageError(f"metrics cannot be served on port {port}: {error.strerror}") from error

    def count(self, report: dict[str, Any]) -> None:
        """A report about an attempt: that it was claimed, or how it ended."""
        if "claimed" in report:
            self._busy.inc()
            return
        self._busy.dec()
        self._ended.labels(self._worker, report["ending"], report["verdict"]).inc()
        self._attempts.labels(self._worker).observe(report["seconds"])
        for phase, seconds in report["phases"].items():
            self._phases.labels(self._worker, phase).observe(seconds)

    def set_host(self, host: WorkerHost, *, healthy: bool) -> None:
        """Set what is not counted but measured; what was not to be had stays as it was."""
        self._healthy.set(healthy)
        for gauge, figure in (
            (self._gpus, host.num_gpus),
            (self._leases, host.num_leases),
            (self._waiting, host.num_waiting),
            (self._pool, host.num_containers),
        ):
            if figure is not None:
                gauge.set(figure)

    def _gauge(self, name: str, what: str) -> Any:
        gauge = Gauge(f"grader_worker_{name}", what, ["worker"], registry=self.registry)
        return gauge.labels(self._worker)
