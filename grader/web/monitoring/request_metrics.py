"""Counts of one process's requests, as Prometheus reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0)


class RequestMetrics:
    """Counts of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.answered = Counter(
            "grader_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "grader_http_seconds",
            "Seconds until a request was answered.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
