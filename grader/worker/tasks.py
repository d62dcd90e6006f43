"""The tasks that Celery knows: one for each kind of work, run once for each attempt.

A message says that an attempt waits. Which one is taken is the database's to decide: between sending and taking,
somebody else's turn may have come, or a worker may have died with an older one in hand. So a task claims the next
attempt in the database's order, once, and then shows what it was given: `inspect active` has the attempt's number in
its arguments, an event `task-judging` tells Flower the same, and the result says how it ended. Had a task to judge the
very attempt that its message names, the order of messages would be the order of turns, and a lost message a lost
attempt.

Not being judged for a fault of ours is a failed task; whatever becomes of a script is a task that succeeded. Nothing is
retried by Celery: the database counts tries, and queues again.
"""

from __future__ import annotations

from typing import Any

from celery import Task
from celery.platforms import EX_OK
from celery.worker import state
from celery.worker.request import Request

from grader.queue.celery import app
from grader.queue.routes import JUDGE_SUBMISSION, REGRADE_ATTEMPT
from grader.store.queue.claims import Claimed
from grader.store.tables.attempt import Lane
from grader.worker.database_coordinator import DatabaseCoordinator
from grader.worker.processor import AttemptProcessor

MAX_ATTEMPTS = 100
"""After so many the process is replaced: memory that a library forgets to give back is bounded."""


class NotJudgedError(Exception):
    """An attempt could not be judged; the database knows what is to become of it."""


class AttemptRequest(Request):  # type: ignore[misc]
    """A running task as `inspect active` lists it: with the attempt that was claimed, once there is one."""

    claimed: dict[str, Any] | None = None

    def info(self, safe: bool = False) -> dict[str, Any]:
        """As Celery has it, with these arguments in the place of the message's."""
        shown: dict[str, Any] = super().info(safe)
        if self.claimed is not None:
            shown["kwargs"] = repr(self.claimed) if safe else self.claimed
        return shown


class AttemptTask(Task):  # type: ignore[misc]
    """What both tasks do, on attempts of their lane."""

    Request = AttemptRequest
    throws = (NotJudgedError,)
    processor: AttemptProcessor | None = None
    coordinator: DatabaseCoordinator | None = None
    num_processed = 0

    def process_next(self, lane: Lane, waiting: int, need: str) -> dict[str, Any] | None:
        """Claim and judge the next attempt; its result, or None where nothing was to be claimed.

        Raises:
            NotJudgedError: it was claimed and could not be judged.
        """
        processor, coordinator = AttemptTask.processor, AttemptTask.coordinator
        if processor is None or coordinator is None:
            raise RuntimeError("workers are started with `grader worker`")

        def show(claimed: Claimed) -> None:
            self._show(claimed)
            if claimed.need != need:
                # Every attempt of a need has a message in that need's queue, and this one was not of that queue.
                coordinator.send_again(waiting)

        processed = processor.process_next(lane, show)
        if processed is None:
            return None
        AttemptTask.num_processed += 1
        if AttemptTask.num_processed >= MAX_ATTEMPTS:
            state.should_stop = EX_OK
        if processed.failure:
            raise NotJudgedError(f"attempt {processed.attempt_id}: {processed.failure}")
        return {
            "attempt_id": processed.attempt_id,
            "ending": processed.ending.value,
            "verdict": processed.verdict,
        }

    def _show(self, claimed: Claimed) -> None:
        request = state.requests.get(self.request.id)
        if isinstance(request, AttemptRequest):
            request.claimed = {"attempt_id": claimed.attempt_id, "task": claimed.task, "need": claimed.need}
            request.send_event("task-judging", kwargs=repr(request.claimed))


@app.task(bind=True, base=AttemptTask, name=JUDGE_SUBMISSION)  # type: ignore[untyped-decorator]
def judge_submission(self: AttemptTask, *, waiting: int, need: str) -> dict[str, Any] | None:
    """Judge what a learner waits for: the next of that lane. The message was sent for attempt `waiting`."""
    return self.process_next(Lane.INTERACTIVE, waiting, need)


@app.task(bind=True, base=AttemptTask, name=REGRADE_ATTEMPT)  # type: ignore[untyped-decorator]
def regrade_attempt(self: AttemptTask, *, waiting: int, need: str) -> dict[str, Any] | None:
    """Judge something again in the background, unless a learner waits. The message was sent for attempt `waiting`."""
    return self.process_next(Lane.REGRADE, waiting, need)
