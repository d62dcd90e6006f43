"""Beside the slots: looks after this host's health, reports the worker to the database, tells its figures.

A process of its own, so that neither a slot nor the station ever waits for it. It ends nothing itself: a worker that is
drained is told through its station.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import structlog

from grader.run.devices.inventory import take_inventory
from grader.store.database import Store, StoreUnavailableError
from grader.store.queue import Host, report_worker
from grader.worker.health import ailments
from grader.worker.host import look_at_host
from grader.worker.metrics import Metrics
from grader.worker.slot import Post

REPORT_S = 10.0
_log = structlog.get_logger(__name__)


def keep(post: Post, slots: int, metrics_port: int, *, gpus: bool) -> None:
    """Look and report until the process is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    metrics = Metrics(post.worker, slots)
    if metrics_port:
        metrics.serve(metrics_port)
    threading.Thread(target=_listen, args=(post, metrics), name="grader-listen", daemon=True).start()
    keeper = _Keeper(post, slots, metrics, gpus=gpus)
    while True:
        keeper.turn()
        time.sleep(min(REPORT_S, post.settings.lease_s / 3))


class _Keeper:
    def __init__(self, post: Post, slots: int, metrics: Metrics, *, gpus: bool) -> None:
        self._post = post
        self._slots = slots
        self._gpus = gpus
        self._metrics = metrics
        self._store = Store(post.settings.database)
        self._station = os.getppid()
        self._unwell: tuple[str, ...] = ()
        self._host: Host | None = None

    def turn(self) -> None:
        """One look."""
        try:
            self._look()
            self._report()
        except StoreUnavailableError as error:
            _log.warning("database away", reason=str(error))
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            _log.exception("a worker's report failed")

    def _look(self) -> None:
        orders = self._post.orders
        unwell = ailments(self._post.settings)
        if unwell != self._unwell:
            if unwell:
                _log.error("out of service", reasons=unwell)
            else:
                _log.info("in service")
        self._unwell = unwell
        orders.hold(bool(unwell))
        if self._gpus:
            orders.offer(len(take_inventory().offered))
        self._host = look_at_host(self._post.settings, num_gpus=orders.num_gpus)
        self._metrics.look(self._host, healthy=not unwell)

    def _report(self) -> None:
        # A worker that takes nothing just now is shown, but nobody's wait is reckoned with it.
        needs = () if self._unwell else self._post.needs
        if report_worker(self._store, self._post.worker, needs, self._slots, self._host):
            _log.info("drained")
            os.kill(self._station, signal.SIGTERM)


def _listen(post: Post, metrics: Metrics) -> None:
    while True:
        for word in post.orders.words(1.0):
            metrics.heard(word)
