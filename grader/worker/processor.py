"""Processes one attempt at a time: claims the next, has it run and judged, records how that ended.

Whatever goes wrong while it judges ends that attempt's try and nothing else: the store queues it again, and after three
tries ends it as `judge_error`. Its own warm processes are then made anew. When attempts of several learners fail one
after the other it is this host that is to blame, and the processor rests for a while so that others get them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from grader.checks.limited_reading import warm_reader
from grader.errors import GraderError, TaskError, UsageError
from grader.pipeline import Pipeline
from grader.readers import prepare
from grader.store.attempts.attempt_endings import AttemptEnding
from grader.store.database import StoreUnavailableError
from grader.store.queue.claims import Claimed, Idle
from grader.store.tables.attempt import Lane
from grader.worker.attempts_folder import emptied
from grader.worker.context import WorkerContext
from grader.worker.coordinator import AttemptLeaseLostError, Coordinator, insist
from grader.worker.execution import ExecutedAttempt, FilesGoneError, OtherVersionError, execute_attempt
from grader.worker.health import health_problems
from grader.worker.heartbeat import AbortReason, AttemptAborted, Heartbeat
from grader.worker.live_events import LiveEvents
from grader.worker.shared_state import ShutdownStage
from grader.worker.time_left import fitting

_REST_S, _LONGEST_REST_S = 15.0, 240.0
_UNLUCKY = 2
"""Attempts that fail one after the other until the processor rests."""
_SERVICE_CHECK_S = 0.2
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ProcessedAttempt:
    """What became of a claimed attempt.

    Attributes:
        verdict: of its grade, "" where it has none.
        failure: why it could not be judged, for staff; "" where nothing failed.
    """

    attempt_id: int
    ending: AttemptEnding
    verdict: str = ""
    failure: str = ""


class AttemptProcessor:
    """Opens everything of its own on first use, in the process that uses it: nothing of it survives a fork."""

    def __init__(self, context: WorkerContext, coordinator: Coordinator) -> None:
        self._context = context
        self._coordinator = coordinator
        self._pipeline: Pipeline | None = None
        self._failed: list[int] = []
        self._rest_until = 0.0

    def open(self) -> None:
        """Start what is to be warm when the first message comes; what fails now is tried again then."""
        prepare(warm_reader, 1)
        try:
            self._open_pipeline()
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            _log.exception("not warm")

    def close(self) -> None:
        """End every process that was started, and close all connections."""
        self._close_pipeline()
        self._coordinator.close()

    def _close_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            try:
                pipeline.__exit__(None, None, None)
            except Exception:  # noqa: BLE001 - logged; nothing here ends its process
                _log.exception("a runtime could not be closed")

    def process_next(
        self, lane: Lane | None = None, on_claimed: Callable[[Claimed], None] = lambda _claimed: None
    ) -> ProcessedAttempt | None:
        """Claim the next attempt, where it is one of this lane, and judge it; None: there is none to claim.

        While this host is out of service it waits instead, so that the message that asked for this keeps one process
        busy, and all others go to hosts that are well.
        """
        with structlog.contextvars.bound_contextvars(worker=self._context.worker):
            if not self._wait_until_in_service():
                return None
            try:
                claimed = self._claim(lane)
            except GraderError as error:
                # Nothing was taken that anybody knows of: it is asked again, or the reconciler sends another message.
                _log.warning("nothing claimed", reason=str(error))
                return None
            if claimed is None:
                return None
            with structlog.contextvars.bound_contextvars(attempt=claimed.attempt_id):
                on_claimed(claimed)
                return self._process(claimed)

    def _wait_until_in_service(self) -> bool:
        """Wait while this host is unwell or rests; False: this worker is to end."""
        shared = self._context.shared
        while shared.stage is ShutdownStage.RUN:
            if not shared.out_of_service and time.monotonic() >= self._rest_until:
                return True
            time.sleep(_SERVICE_CHECK_S)
        return False

    def _claim(self, lane: Lane | None) -> Claimed | None:
        until = self._context.until
        chosen = None if until is None else fitting(until - time.time(), self._context.limits)
        claimed = self._coordinator.claim(self._context.claimable_needs, lane, chosen)
        return None if isinstance(claimed, Idle) else claimed

    def _process(self, claimed: Claimed) -> ProcessedAttempt:
        began = time.monotonic()
        _log.info("claimed", task=claimed.task, lane=claimed.lane.value, tries=claimed.tries)
        self._context.shared.note_busy()
        self._context.shared.report({"claimed": claimed.attempt_id})
        live = LiveEvents()
        # What was killed together with a process before this one may have gone on writing for a moment.
        folder = emptied(self._context.folder) / f"attempt-{claimed.attempt_id}-{claimed.lease_token}"
        try:
            processed = self._execute(claimed, live, folder)
        except Exception as error:  # noqa: BLE001 - logged; nothing here ends its process
            # The last net: whatever this was, it is ours, and the next attempt must not feel it.
            _log.exception("attempt failed")
            processed = self._record_failure(claimed, error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seconds = round(time.monotonic() - began, 3)
        ending = {"ending": processed.ending.value, "verdict": processed.verdict, "seconds": seconds}
        _log.info("ended", **ending)
        self._context.shared.report({**ending, "phases": live.seconds})
        return processed

    def _execute(self, claimed: Claimed, live: LiveEvents, folder: Path) -> ProcessedAttempt:
        coordinator, shared = self._coordinator, self._context.shared
        # The heart beats until the store has heard how it ended: tidying up after a failure takes a while, too.
        with Heartbeat(coordinator, claimed, live, shared, self._context.settings.lease_s) as heartbeat:
            try:
                executed = execute_attempt(
                    claimed, self._open_pipeline(), coordinator, shared, live, heartbeat, folder
                )
                live.end()
                ending = self._record_grade(claimed, executed, heartbeat)
            except AttemptAborted as aborted:
                return self._record_abort(claimed, aborted.reason)
            except AttemptLeaseLostError:
                return ProcessedAttempt(claimed.attempt_id, AttemptEnding.STALE)
            except StoreUnavailableError as error:
                # Neither the attempt's fault nor this host's, and what was judged is lost.
                _log.error("nobody answers", reason=str(error))
                return ProcessedAttempt(claimed.attempt_id, self._record_give_up(claimed), failure=str(error))
            except GraderError as error:
                _log.warning("attempt failed", kind=type(error).__name__, reason=str(error))
                return self._record_failure(claimed, error)
        self._failed.clear()
        return ProcessedAttempt(claimed.attempt_id, ending, executed.grade.verdict.value)

    def _record_grade(
        self, claimed: Claimed, executed: ExecutedAttempt, heartbeat: Heartbeat
    ) -> AttemptEnding:
        with suppress(StoreUnavailableError):
            heartbeat.flush()
        return self._record(lambda: self._coordinator.finish(claimed, executed.judged, executed.files))

    def _record_abort(self, claimed: Claimed, reason: AbortReason) -> ProcessedAttempt:
        """The run was ended on request; say what is to become of the attempt."""
        if reason is AbortReason.OVERDUE:
            return self._record_failure(claimed, TimeoutError("it took far longer than its task allows"))
        ending = AttemptEnding.STALE if reason is AbortReason.STALE else self._record_give_up(claimed)
        return ProcessedAttempt(claimed.attempt_id, ending)

    def _record_failure(self, claimed: Claimed, error: Exception) -> ProcessedAttempt:
        """A try failed, and nobody but us or the task's author is to blame."""
        of_the_task = isinstance(error, TaskError | UsageError | OtherVersionError | FilesGoneError)
        if not of_the_task:
            self._close_pipeline()
        reason = f"{type(error).__name__}: {error}"
        if self._context.shared.stage is not ShutdownStage.RUN and not of_the_task:
            # Who ends this worker may have ended its runs, too, as batch systems do: nothing was learned here.
            return ProcessedAttempt(claimed.attempt_id, self._record_give_up(claimed), failure=reason)
        problems = health_problems(self._context.settings)
        if problems:
            # Nothing was learned about the attempt: another host, or this one in better health, gets it.
            _log.error("unwell", reasons=problems)
            self._context.shared.set_out_of_service(True)
            return ProcessedAttempt(claimed.attempt_id, self._record_give_up(claimed), failure=reason)
        if not of_the_task:
            self._count_failure(claimed.attempt_id)
        # What the author has to mend, or what was erased, is no better a second time.
        retry = not isinstance(error, TaskError | FilesGoneError)
        ending = self._record(lambda: self._coordinator.fail(claimed, reason, retry=retry))
        return ProcessedAttempt(claimed.attempt_id, ending, failure=reason)

    def _record_give_up(self, claimed: Claimed) -> AttemptEnding:
        return self._record(lambda: self._coordinator.give_up(claimed))

    def _count_failure(self, attempt_id: int) -> None:
        if attempt_id not in self._failed:
            self._failed.append(attempt_id)
        if len(self._failed) >= _UNLUCKY:
            rest_s = min(_LONGEST_REST_S, _REST_S * 2 ** (len(self._failed) - _UNLUCKY))
            _log.error("several attempts failed here, resting", rest_s=rest_s)
            self._rest_until = time.monotonic() + rest_s

    def _record(self, record: Callable[[], AttemptEnding]) -> AttemptEnding:
        try:
            return insist(record, self._context.shared)
        except StoreUnavailableError:
            # Its lease ends by itself, and somebody else gets it.
            return AttemptEnding.STALE

    def _open_pipeline(self) -> Pipeline:
        if self._pipeline is None:
            pipeline = Pipeline(self._context.settings.runtime)
            pipeline.__enter__()
            self._pipeline = pipeline
        return self._pipeline
