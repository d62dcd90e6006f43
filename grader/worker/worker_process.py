"""One process of a worker: a Celery worker that runs one task at a time, in a thread of its own.

Its main thread meanwhile keeps the connection to the broker, sends events, and answers `inspect` and `control`. Of a
worker that polls it is no Celery worker, and has no broker.
"""

from __future__ import annotations

import signal
import warnings
from dataclasses import replace

from celery.exceptions import SecurityWarning
from kombu.entity import Exchange, Queue

from grader.queue.celery import app
from grader.queue.routes import queue_names
from grader.worker.attempts_folder import emptied
from grader.worker.context import WorkerContext
from grader.worker.coordinators import open_coordinator
from grader.worker.database_coordinator import DatabaseCoordinator
from grader.worker.polling import poll
from grader.worker.processor import AttemptProcessor
from grader.worker.tasks import AttemptTask


def run_worker_process(context: WorkerContext, number: int) -> None:
    """Process attempts until the worker is to end, or until it is time for another process.

    Works in a folder of its own, `slotN`, where whatever an earlier process of this number left is nobody's.
    """
    # Ctrl-C in a terminal reaches every process; the supervisor ends its processes in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    context = replace(context, folder=emptied(context.folder / f"slot{number}"))
    coordinator = open_coordinator(context.settings, context.worker, context.server)
    processor = AttemptProcessor(context, coordinator)
    try:
        if isinstance(coordinator, DatabaseCoordinator) and not context.polls:
            _take_messages(processor, coordinator, context, number)
        else:
            poll(processor, context.shared)
    finally:
        processor.close()


def _take_messages(
    processor: AttemptProcessor, coordinator: DatabaseCoordinator, context: WorkerContext, number: int
) -> None:
    # Celery warns of root; who is root here is `grader worker`'s to say.
    warnings.simplefilter("ignore", SecurityWarning)
    app.conf.task_queues = [
        Queue(name, Exchange(name, "direct"), routing_key=name)
        for name in queue_names(context.subscribed_needs)
    ]
    AttemptTask.processor, AttemptTask.coordinator = processor, coordinator
    worker = app.Worker(hostname=f"slot{number}@{context.worker}", loglevel="INFO", quiet=True)
    processor.open()
    worker.start()
