"""A slot: one process that judges one attempt at a time. A hint wakes it, then it claims until nothing is left.

Whatever goes wrong while it judges ends that attempt's try and nothing else: the store queues it again, and after three
tries ends it as `judge_error`. Its own warm processes are then made anew. When attempts of several learners fail one
after the other it is this host that is to blame, and the slot rests for a while so that others get them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from grader.errors import GraderError, TaskError, UsageError
from grader.pipeline import Options, Pipeline
from grader.run.runtime import Progress
from grader.settings import Settings
from grader.store import claims, endings
from grader.store.claims import Claimed, Idle
from grader.store.database import Store, StoreUnavailableError
from grader.store.endings import Ending
from grader.store.files import open_files
from grader.worker.health import ailments
from grader.worker.judging import FilesGoneError, OtherVersionError, Outcome, judge
from grader.worker.live import Live
from grader.worker.orders import Order, Orders
from grader.worker.pulse import Pulse, Stopped, Why

_SAYING_S = 60.0
"""How long a slot tries to tell the store how an attempt ended."""
_REST_S, _LONGEST_REST_S = 15.0, 240.0
_UNLUCKY = 2
"""Attempts that fail one after the other until the slot rests."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Post:
    """Who a slot works as: the worker's name, and the folder for what it makes meanwhile.

    `cpu`: whether it takes what needs no device, besides what this host's devices can serve; `num_gpus`: how many there
    are, fit or not.
    """

    worker: str
    folder: Path
    settings: Settings
    orders: Orders
    cpu: bool = True
    num_gpus: int = 0

    @property
    def hears(self) -> tuple[str, ...]:
        """What it listens for: all that this host could ever take, also while a device is unfit."""
        return claims.needs_of(self.num_gpus, cpu=self.cpu)

    @property
    def needs(self) -> tuple[str, ...]:
        """What may be claimed. Of several attempts that want devices each waits its turn on this host's leases."""
        return claims.needs_of(self.orders.num_gpus, cpu=self.cpu)


class Slot:
    """Opens everything of its own on first use, in the process that uses it: nothing of it survives a fork."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._store: Store | None = None
        self._pipeline: Pipeline | None = None
        self._failed: list[int] = []
        self._rest_until = 0.0

    def open(self) -> None:
        """Start what is to be warm when the first hint comes; what fails now is tried again then."""
        try:
            self._warm()
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            _log.exception("not warm")

    def close(self) -> None:
        """End every process that was started."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            try:
                pipeline.__exit__(None, None, None)
            except Exception:  # noqa: BLE001 - logged; nothing here ends its process
                _log.exception("a runtime could not be closed")
        if self._store is not None:
            self._store.close()

    def work(self) -> int:
        """Claim and judge until nothing is left that this slot could take; returns how many were claimed."""
        num_claimed = 0
        orders = self._post.orders
        while orders.order is Order.WORK and not orders.held and time.monotonic() >= self._rest_until:
            try:
                claimed = claims.claim(
                    self._open_store(),
                    self._post.worker,
                    self._post.needs,
                    lease_s=self._post.settings.lease_s,
                )
            except StoreUnavailableError as error:
                # Nothing was taken; the reconciler sends another hint once there is a database.
                _log.warning("database away", reason=str(error))
                break
            if isinstance(claimed, Idle):
                break
            num_claimed += 1
            with structlog.contextvars.bound_contextvars(attempt=claimed.attempt_id):
                self._serve(claimed)
        return num_claimed

    def _serve(self, claimed: Claimed) -> None:
        began = time.monotonic()
        _log.info("claimed", task=claimed.task, lane=claimed.lane.value, tries=claimed.tries)
        self._post.orders.tell({"claimed": claimed.attempt_id})
        live = Live()
        folder = self._post.folder / f"attempt-{claimed.attempt_id}-{claimed.lease_token}"
        verdict = ""
        try:
            ending, verdict = self._judge(claimed, live, folder)
        except Exception as error:  # noqa: BLE001 - logged; nothing here ends its process
            # The last net: whatever this was, it is ours, and the next attempt must not feel it.
            _log.exception("attempt failed")
            ending = self._lose(claimed, error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        seconds = round(time.monotonic() - began, 3)
        _log.info("ended", ending=ending.value, verdict=verdict, seconds=seconds)
        self._post.orders.tell(
            {"ending": ending.value, "verdict": verdict, "seconds": seconds, "phases": live.seconds}
        )

    def _judge(self, claimed: Claimed, live: Live, folder: Path) -> tuple[Ending, str]:
        settings, store = self._post.settings, self._open_store()
        # The heart beats until the store has heard how it ended: tidying up after a failure takes a while, too.
        with Pulse(store, claimed, live, self._post.orders, settings.lease_s) as pulse:
            try:
                files = open_files(store, settings.file_store, settings.state_dir / "files")
                outcome = judge(claimed, self._warm(), store, files, live, pulse, folder)
                live.end()
                ending = self._finish(claimed, outcome, pulse)
            except Stopped as stop:
                return self._stop(claimed, stop.why), ""
            except GraderError as error:
                _log.warning("attempt failed", kind=type(error).__name__, reason=str(error))
                return self._lose(claimed, error), ""
        self._failed.clear()
        return ending, outcome.grade.verdict.value

    def _finish(self, claimed: Claimed, outcome: Outcome, pulse: Pulse) -> Ending:
        with suppress(StoreUnavailableError):
            pulse.flush()
        return self._say(
            lambda store: endings.finish(
                store, claimed.attempt_id, claimed.lease_token, outcome.judged, outcome.files
            )
        )

    def _stop(self, claimed: Claimed, why: Why) -> Ending:
        """The run was ended on request; say what is to become of the attempt."""
        if why is Why.STALE:
            return Ending.STALE
        if why is Why.OVERDUE:
            return self._lose(claimed, TimeoutError("it took far longer than its task allows"))
        return self._say(lambda store: endings.give_up(store, claimed.attempt_id, claimed.lease_token))

    def _lose(self, claimed: Claimed, error: Exception) -> Ending:
        """A try failed, and nobody but us or the task's author is to blame."""
        of_the_task = isinstance(error, TaskError | UsageError | OtherVersionError | FilesGoneError)
        if not of_the_task:
            self.close()
        unwell = ailments(self._post.settings)
        if unwell:
            # Nothing was learned about the attempt: another host, or this one in better health, gets it.
            _log.error("unwell", reasons=unwell)
            self._post.orders.hold(True)
            return self._say(lambda store: endings.give_up(store, claimed.attempt_id, claimed.lease_token))
        if not of_the_task:
            self._count_failure(claimed.attempt_id)
        # What the author has to mend, or what was erased, is no better a second time.
        retry = not isinstance(error, TaskError | FilesGoneError)
        reason = f"{type(error).__name__}: {error}"
        return self._say(
            lambda store: endings.fail(store, claimed.attempt_id, claimed.lease_token, reason, retry=retry)
        )

    def _count_failure(self, attempt_id: int) -> None:
        if attempt_id not in self._failed:
            self._failed.append(attempt_id)
        if len(self._failed) >= _UNLUCKY:
            rest_s = min(_LONGEST_REST_S, _REST_S * 2 ** (len(self._failed) - _UNLUCKY))
            _log.error("several attempts failed here, resting", rest_s=rest_s)
            self._rest_until = time.monotonic() + rest_s

    def _say(self, say: Callable[[Store], Ending]) -> Ending:
        """Tell the store; where it is away, again for a while. The token makes late and doubled words harmless."""
        deadline = time.monotonic() + _SAYING_S
        while True:
            try:
                return say(self._open_store())
            except StoreUnavailableError as error:
                _log.warning("database away", reason=str(error))
                if time.monotonic() > deadline or self._post.orders.order is Order.GIVE_BACK:
                    return Ending.STALE
            time.sleep(0.5)

    def _open_store(self) -> Store:
        if self._store is None:
            self._store = Store(self._post.settings.database)
        return self._store

    def _warm(self) -> Pipeline:
        if self._pipeline is None:
            pipeline = Pipeline(Options(runtime=self._post.settings.runtime), _unheard)
            pipeline.__enter__()
            self._pipeline = pipeline
        return self._pipeline


def _unheard(_sign: Progress) -> None:
    """Until an attempt's pulse listens."""
