"""The worker host that is played: it claims for as long as devices are free, and judges by letting time pass.

Asks the store what a worker asks it. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grader.model.grade import Verdict
from grader.rehearsal.clock import SimulatedClock
from grader.store.attempts import attempt_endings, attempts
from grader.store.database import Store
from grader.store.grading.grades import NewGrade
from grader.store.queue import claims, queue
from grader.store.queue.claims import Claimed

_NAME = "rehearsal"


@dataclass(frozen=True, slots=True)
class SimulatedAttempt:
    """An attempt in hand: when it was queued and claimed (seconds since the beginning), and how it will end."""

    attempt_id: int
    lease_token: int
    num_gpus: int
    queued_s: float
    claimed_s: float
    verdict: Verdict


class SimulatedHost:
    """One host with GPUs.

    Attributes:
        running: attempts in hand.
    """

    def __init__(
        self,
        store: Store,
        clock: SimulatedClock,
        num_gpus: int,
        later: Callable[[float, Callable[[], None]], None],
        graded: Callable[[SimulatedAttempt], None],
        expected: Callable[[int], tuple[bool, float]],
    ) -> None:
        self._store, self._clock, self._num_gpus = store, clock, num_gpus
        self._later, self._graded, self._expected = later, graded, expected
        self._spans: list[tuple[float, float, int]] = []
        self.running: set[int] = set()
        self._free = num_gpus

    def wake(self) -> None:
        """Take what the free devices can judge, until nothing is left for them."""
        while self._free:
            needs = claims.needs_of(self._free, cpu=False)
            claimed = claims.claim(self._store, _NAME, needs)
            if not isinstance(claimed, Claimed):
                return
            self._begin(claimed)

    def busy_s(self, until_s: float) -> float:
        """Seconds times GPUs that attempts took until then."""
        return sum((min(end, until_s) - min(start, until_s)) * gpus for start, end, gpus in self._spans)

    def judge_now(self, attempt_id: int | None) -> int:
        """Judge an attempt that was just handed in, in no time; returns it."""
        claimed = claims.claim(self._store, _NAME, claims.needs_of(self._num_gpus))
        assert isinstance(claimed, Claimed), "it was just handed in"
        assert claimed.attempt_id == attempt_id, "nothing else waits"
        attempt_endings.finish(self._store, claimed.attempt_id, claimed.lease_token, _grade(Verdict.ACCEPTED))
        return claimed.attempt_id

    def _begin(self, claimed: Claimed) -> None:
        now_s = self._clock.now_s
        fails, seconds = self._expected(claimed.attempt_id)
        facts = attempts.attempt(self._store, claimed.attempt_id)
        assert facts is not None, "it was just claimed"
        attempt = SimulatedAttempt(
            claimed.attempt_id,
            claimed.lease_token,
            int(claimed.need.removeprefix("gpu")),
            self._clock.since(facts.queued_at),
            now_s,
            Verdict.REJECTED if fails else Verdict.ACCEPTED,
        )
        self._free -= attempt.num_gpus
        self.running.add(attempt.attempt_id)
        self._spans.append((now_s, now_s + seconds, attempt.num_gpus))
        self._report_worker()
        self._later(now_s + seconds, lambda: self._end(attempt))
        self._later(now_s + claims.HEARTBEAT_S, lambda: self._beat(attempt))

    def _beat(self, attempt: SimulatedAttempt) -> None:
        if attempt.attempt_id not in self.running:
            return
        sign = claims.heartbeat(self._store, attempt.attempt_id, attempt.lease_token, phase="run")
        assert sign is claims.HeartbeatAnswer.KEPT, (
            "nobody cancels here, and every lease is prolonged in time"
        )
        self._report_worker()
        self._later(self._clock.now_s + claims.HEARTBEAT_S, lambda: self._beat(attempt))

    def _end(self, attempt: SimulatedAttempt) -> None:
        self.running.remove(attempt.attempt_id)
        self._free += attempt.num_gpus
        ending = attempt_endings.finish(
            self._store, attempt.attempt_id, attempt.lease_token, _grade(attempt.verdict)
        )
        assert ending is attempt_endings.AttemptEnding.JUDGED, "the lease was kept"
        self._graded(attempt)
        self.wake()

    def _report_worker(self) -> None:
        queue.report_worker(self._store, _NAME, claims.needs_of(self._num_gpus, cpu=False), self._num_gpus)


def _grade(verdict: Verdict) -> NewGrade:
    points = 100.0 if verdict is Verdict.ACCEPTED else 40.0
    return NewGrade(verdict, points, 100.0, "{}", ())
