"""The queue for a worker that reaches the database: its questions as transactions, files in the store of the site."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from grader.catalog.data.transfer import OfferedData
from grader.model.submission import Submission
from grader.settings.schema import Settings
from grader.store import events
from grader.store.attempts import attempt_endings, attempts, submissions
from grader.store.attempts.attempt_endings import AttemptEnding, StoredFile
from grader.store.courses import task_versions
from grader.store.database import Store, StoreUnavailableError
from grader.store.files import open_files
from grader.store.grading.grades import NewGrade
from grader.store.queue import claims, outbox, queue
from grader.store.queue.claims import Claimed, HeartbeatAnswer, Idle
from grader.store.queue.queue import WorkerHost
from grader.store.tables.attempt import Lane
from grader.worker.database_wait import wait_for_database


class DatabaseCoordinator:
    """See `Coordinator`; connections are opened by the first question, in the process that asks it."""

    look_s = 1.0

    def __init__(self, settings: Settings, worker: str) -> None:
        self._worker = worker
        self._lease_s = settings.lease_s
        self._store = Store(settings.database)
        self._files = open_files(self._store, settings.file_store, settings.state_dir / "files")

    def wait_until_ready(self) -> None:
        """Wait for a database of this version."""
        wait_for_database(self._store)

    def claim(
        self, needs: Sequence[str], lane: Lane | None, fitting: Sequence[tuple[str, str]] | None
    ) -> Claimed | Idle:
        """The next attempt of those."""
        return claims.claim(
            self._store, self._worker, needs, lane=lane, fitting=fitting, lease_s=self._lease_s
        )

    def send_again(self, attempt_id: int) -> None:
        """The message for this attempt led to another one's turn: another message for it."""
        # Where the database is away just now, the reconciler finds it later.
        with suppress(StoreUnavailableError):
            outbox.send_again(self._store, attempt_id)

    def source_of(self, claimed: Claimed) -> Submission | None:
        """The files that it judges."""
        return submissions.source_of(self._store, claimed.attempt_id)

    def packed_task(self, claimed: Claimed) -> bytes | None:
        """The task that it is judged by."""
        return task_versions.packed_version(self._store, self._files, claimed.task_version)

    def offered_data(self, claimed: Claimed) -> OfferedData | None:
        """None: data lies on hosts, not in the database."""
        return None

    def data_piece(self, claimed: Claimed, number: int, offset: int) -> bytes:
        """Nothing: none is offered."""
        return b""

    def time_limits(self) -> tuple[tuple[str, str, float], ...]:
        """What runs may take."""
        return task_versions.time_limits(self._store)

    def heartbeat(self, claimed: Claimed, phase: str) -> HeartbeatAnswer:
        """Say that it is judged."""
        return claims.heartbeat(
            self._store, claimed.attempt_id, claimed.lease_token, phase=phase or None, lease_s=self._lease_s
        )

    def look(self, claimed: Claimed) -> HeartbeatAnswer:
        """What a heartbeat would be answered."""
        facts = attempts.attempt(self._store, claimed.attempt_id)
        if facts is None:
            return HeartbeatAnswer.STALE
        return HeartbeatAnswer.KEPT if facts.cancel_requested_at is None else HeartbeatAnswer.CANCEL

    def add_events(self, claimed: Claimed, events_: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Tell those who watch."""
        events.add_live_events(self._store, claimed.attempt_id, claimed.lease_token, events_)

    def keep_file(self, claimed: Claimed, name: str, data: bytes) -> StoredFile:
        """Keep a file; the same bytes twice are one."""
        return StoredFile(name, self._files.put(data), len(data))

    def finish(self, claimed: Claimed, judged: NewGrade, files: Sequence[StoredFile]) -> AttemptEnding:
        """Record its grade."""
        return attempt_endings.finish(self._store, claimed.attempt_id, claimed.lease_token, judged, files)

    def fail(self, claimed: Claimed, reason: str, *, retry: bool) -> AttemptEnding:
        """Say that it could not be judged."""
        return attempt_endings.fail(self._store, claimed.attempt_id, claimed.lease_token, reason, retry=retry)

    def give_up(self, claimed: Claimed) -> AttemptEnding:
        """Give it back."""
        return attempt_endings.give_up(self._store, claimed.attempt_id, claimed.lease_token)

    def report_worker(self, needs: Sequence[str], slots: int, host: WorkerHost | None) -> bool:
        """Say that the worker is there."""
        return queue.report_worker(self._store, self._worker, needs, slots, host)

    def forget_worker(self) -> None:
        """Say that the worker has ended."""
        queue.forget_worker(self._store, self._worker)

    def close(self) -> None:
        """Close all connections."""
        self._store.close()
