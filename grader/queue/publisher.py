"""Publishing messages for workers, and never more of them than can be of use.

Whoever sends keeps the message elsewhere until it is sent (`grader.store.queue.outbox`), so that nothing here tries
twice.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from celery import Celery
from kombu.connection import Connection
from kombu.exceptions import ChannelError, OperationalError

from grader.errors import InfraError
from grader.queue.routes import TASK_OF_LANE, queue_name

MAX_WAITING = 256
"""Messages in one queue, however many attempts wait: the reconciler sends those that were left out later."""


class BrokerUnavailableError(InfraError):
    """The broker does not take messages; those that wait stay where they are."""


class TaskPublisher:
    """One open connection to the broker; use as a context manager, and open another after an error."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            # Closing says good-bye to the broker; there may be none that listens.
            self._connection.collect(socket_timeout=1.0)
            self._connection = None

    def publish(self, attempt_id: int, need: str, lane: str, *, num_attempts: int = MAX_WAITING) -> bool:
        """Publish a message for an attempt that waits; False: enough are in its queue, so that it was left out.

        Args:
            attempt_id, need, lane: the attempt.
            num_attempts: how many wait for this need in this lane; more messages than these are of no use.

        Raises:
            BrokerUnavailableError: the broker is away, full or silent.
        """
        try:
            connection = self._open()
            if self._num_waiting(connection, queue_name(need, lane)) >= min(num_attempts, MAX_WAITING):
                return False
            self._app.send_task(
                TASK_OF_LANE[lane],
                kwargs={"waiting": attempt_id, "need": need},
                connection=connection,
                ignore_result=True,
                retry=False,
            )
        except (*connection_errors(self._app), ChannelError) as error:
            raise BrokerUnavailableError(f"the broker does not answer: {_reason(error)}") from error
        return True

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._app.connection_for_write()
            self._connection.connect()
        return self._connection

    def _num_waiting(self, connection: Connection, name: str) -> int:
        declared = connection.default_channel.queue_declare(queue=name, durable=True, auto_delete=False)
        return int(declared.message_count)


def connection_errors(app: Celery) -> tuple[type[Exception], ...]:
    """What says that the broker is away, whichever it is."""
    connection = app.connection_for_write()
    found = (*connection.connection_errors, *connection.channel_errors)
    return (OSError, OperationalError, *found)


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
