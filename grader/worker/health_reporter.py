"""Beside the worker processes: looks after the host's health, reports the worker to the queue, serves its figures.

A process of its own, so that neither they nor the supervisor ever wait for it. It ends nothing itself: where the
worker is to be drained it tells the supervisor.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import structlog

from grader.run.host_devices import host_devices
from grader.store.database import StoreUnavailableError
from grader.store.queue.queue import WorkerHost
from grader.worker.context import WorkerContext
from grader.worker.coordinators import open_coordinator
from grader.worker.health import health_problems
from grader.worker.host_stats import host_stats
from grader.worker.metrics import WorkerMetrics

REPORT_S = 10.0
_log = structlog.get_logger(__name__)


def report_health(context: WorkerContext, slots: int, metrics_port: int, *, gpus: bool) -> None:
    """Measure and report until the process is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    metrics = WorkerMetrics(context.worker, slots)
    if metrics_port:
        metrics.serve(metrics_port)
    threading.Thread(
        target=_count_reports, args=(context, metrics), name="grader-reports", daemon=True
    ).start()
    reporter = _HealthReporter(context, slots, metrics, gpus=gpus)
    while True:
        reporter.turn()
        time.sleep(min(REPORT_S, context.settings.lease_s / 3))


class _HealthReporter:
    def __init__(self, context: WorkerContext, slots: int, metrics: WorkerMetrics, *, gpus: bool) -> None:
        self._context = context
        self._slots = slots
        self._gpus = gpus
        self._metrics = metrics
        self._coordinator = open_coordinator(context.settings, context.worker, context.server)
        self._supervisor = os.getppid()
        self._problems: tuple[str, ...] = ()
        self._host: WorkerHost | None = None
        self._unfit: tuple[str, ...] = ()

    def turn(self) -> None:
        """Measure and report once."""
        try:
            self._measure()
            self._report()
        except StoreUnavailableError as error:
            _log.warning("nobody answers", reason=str(error))
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            _log.exception("a worker's report failed")

    def _measure(self) -> None:
        shared = self._context.shared
        problems = health_problems(self._context.settings)
        if problems != self._problems:
            if problems:
                _log.error("out of service", reasons=problems)
            else:
                _log.info("in service")
        self._problems = problems
        shared.set_out_of_service(bool(problems))
        if self._gpus:
            self._look_at_gpus()
        self._host = host_stats(self._context.settings, num_gpus=shared.num_gpus)
        self._metrics.set_host(self._host, healthy=not problems)

    def _look_at_gpus(self) -> None:
        """Claim no more than fit GPUs serve, and say when and why there are fewer, or more again."""
        inventory = host_devices().inventory()
        self._context.shared.set_num_gpus(len(inventory.offered))
        unfit = tuple(f"GPU {gpu.index} ({gpu.uuid}): {gpu.unfit}" for gpu in inventory.gpus if gpu.unfit)
        unfit = unfit or tuple(filter(None, [inventory.no_gpus]))
        if unfit != self._unfit:
            _log.warning("GPUs", fit=len(inventory.offered), reasons=unfit)
        self._unfit = unfit

    def _report(self) -> None:
        # A worker that takes nothing just now is shown, but nobody's wait is reckoned with it.
        needs = () if self._problems else self._context.claimable_needs
        if self._coordinator.report_worker(needs, self._slots, self._host):
            _log.info("drained")
            os.kill(self._supervisor, signal.SIGTERM)


def _count_reports(context: WorkerContext, metrics: WorkerMetrics) -> None:
    while True:
        for report in context.shared.read_reports(1.0):
            metrics.count(report)
