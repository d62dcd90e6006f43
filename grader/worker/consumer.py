"""A slot's ear: a Celery worker of one process, without a pool, that lets the slot work at every hint."""

from __future__ import annotations

import signal
import warnings

from celery.exceptions import SecurityWarning
from celery.platforms import EX_OK
from celery.worker import state
from kombu.entity import Exchange, Queue

from grader.queue.broker import make_app
from grader.queue.names import HINT, queue_names
from grader.store.tables.attempt import Lane
from grader.worker.slot import Post, Slot

MAX_ATTEMPTS = 100
"""After so many a slot's process is replaced: memory that a library forgets to give back is bounded."""


def consume(post: Post) -> None:
    """Listen and work until SIGTERM, or until it is time for another process."""
    # Ctrl-C in a terminal reaches every process; the station tells its slots in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    app = make_app(post.settings.broker)
    app.conf.task_queues = [
        Queue(name, Exchange(name, "direct"), routing_key=name)
        for name in queue_names(post.hears, [lane.value for lane in Lane])
    ]
    slot = Slot(post)
    num_judged = 0

    def wake(**_hint: object) -> None:
        nonlocal num_judged
        num_judged += slot.work()
        if num_judged >= MAX_ATTEMPTS:
            state.should_stop = EX_OK

    app.task(name=HINT, ignore_result=True, typing=False)(wake)
    warnings.simplefilter("ignore", SecurityWarning)
    worker = app.Worker(
        hostname=f"grader@{post.worker}",
        pool="solo",
        loglevel="INFO",
        quiet=True,
        without_mingle=True,
        without_gossip=True,
        without_heartbeat=True,
        task_events=False,
    )
    try:
        slot.open()
        worker.start()
    finally:
        slot.close()
