"""What a worker asks of whoever knows the queue: attempts, leases, ends, files. The same questions, wherever it stands.

A worker beside the database asks the database; one that reaches nothing but the service asks that. Who judges does not
know which. Each call may be said again: the lease's token makes late and repeated ones harmless. All of them raise
`StoreUnavailableError` while there is nobody to answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import structlog

from grader.catalog.data.transfer import OfferedData
from grader.errors import InfraError
from grader.model.submission import Submission
from grader.store.attempts.attempt_endings import AttemptEnding, StoredFile
from grader.store.database import StoreUnavailableError
from grader.store.grading.grades import NewGrade
from grader.store.queue.claims import Claimed, HeartbeatAnswer, Idle
from grader.store.queue.queue import WorkerHost
from grader.store.tables.attempt import Lane
from grader.worker.shared_state import SharedState, ShutdownStage

PATIENCE_S = 60.0
"""How long is asked again where nobody answers: what a run has brought is worth more than waiting."""
_AGAIN_S = 0.5
_T = TypeVar("_T")
_log = structlog.get_logger(__name__)


class AttemptLeaseLostError(InfraError):
    """The attempt is somebody else's by now, or over: nothing more of it is given or taken."""


class Coordinator(Protocol):
    """The queue as one worker sees it.

    Attributes:
        look_s: seconds between two looks at whether an attempt is still to be judged.
    """

    look_s: float

    def wait_until_ready(self) -> None:
        """Wait until there is an answer, however long that takes; changes nothing.

        Raises:
            InfraError: it is of another version. UsageError: it does not let this worker in.
        """

    def claim(
        self, needs: Sequence[str], lane: Lane | None, fitting: Sequence[tuple[str, str]] | None
    ) -> Claimed | Idle:
        """The next attempt of those; see `grader.store.queue.claims.claim`."""

    def source_of(self, claimed: Claimed) -> Submission | None:
        """The files that it judges; None: they were erased.

        Raises:
            AttemptLeaseLostError: where that can be told.
        """

    def packed_task(self, claimed: Claimed) -> bytes | None:
        """The task that it is judged by, packed at its version; None: nobody kept that version.

        Raises:
            AttemptLeaseLostError: where that can be told.
            InfraError: it was kept and cannot be read.
        """

    def offered_data(self, claimed: Claimed) -> OfferedData | None:
        """The data that it is judged on, where whoever knows the queue has it and lets it be fetched.

        Raises:
            AttemptLeaseLostError: where that can be told.
        """

    def data_piece(self, claimed: Claimed, number: int, offset: int) -> bytes:
        """A piece of a file of that data; see `grader.catalog.data.transfer.data_piece`.

        Raises:
            AttemptLeaseLostError: where that can be told.
        """

    def time_limits(self) -> tuple[tuple[str, str, float], ...]:
        """(task, profile, seconds that a run may take) of all that courses set."""

    def heartbeat(self, claimed: Claimed, phase: str) -> HeartbeatAnswer:
        """Say that it is judged, and how far that is; prolongs the lease."""

    def look(self, claimed: Claimed) -> HeartbeatAnswer:
        """What a heartbeat would be answered; prolongs nothing."""

    def add_events(self, claimed: Claimed, events: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Tell those who watch what happened; unheard where the lease is lost."""

    def keep_file(self, claimed: Claimed, name: str, data: bytes) -> StoredFile:
        """Keep a file that the attempt left; it is the attempt's once `finish` names it.

        Raises:
            FileTooLargeError: no such place takes so many bytes.
            AttemptLeaseLostError: where that can be told.
            InfraError: it cannot be written.
        """

    def finish(self, claimed: Claimed, judged: NewGrade, files: Sequence[StoredFile]) -> AttemptEnding:
        """Record its grade."""

    def fail(self, claimed: Claimed, reason: str, *, retry: bool) -> AttemptEnding:
        """Say that it could not be judged, and whether that may be otherwise the next time."""

    def give_up(self, claimed: Claimed) -> AttemptEnding:
        """Give it back as if it had not been tried."""

    def report_worker(self, needs: Sequence[str], slots: int, host: WorkerHost | None) -> bool:
        """Say that the worker is there; True: it is to take nothing more and end."""

    def forget_worker(self) -> None:
        """Say that the worker has ended in order."""

    def close(self) -> None:
        """Close all connections."""


def insist(ask: Callable[[], _T], shared: SharedState) -> _T:
    """The answer to a question that matters, asked again while nobody answers and there is time.

    Raises:
        StoreUnavailableError: nobody has answered for `PATIENCE_S`, or the worker has to end now.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except StoreUnavailableError as error:
            _log.warning("waiting", reason=str(error))
            if time.monotonic() > deadline or shared.stage is ShutdownStage.REQUEUE:
                raise
        time.sleep(_AGAIN_S)
