"""The rehearsal itself: what happens next, one thing after the other, until the last grade is there.

Whatever the service would ask the store, this asks the store: hand in, relay, claim, heartbeat, finish, reconcile. Only
people, scripts and clock are played.
"""

from __future__ import annotations

import heapq
import itertools
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from grader.model.grade import Verdict
from grader.model.submission import SourceFile, Submission
from grader.rehearsal.clock import SimulatedClock
from grader.rehearsal.result import RehearsalResult, ServedAttempt
from grader.rehearsal.scenario import Scenario, SimulatedLearner
from grader.rehearsal.simulated_host import SimulatedAttempt, SimulatedHost
from grader.store.attempts import submissions
from grader.store.attempts.limits import Refusal
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.database import Store
from grader.store.grading import regrades
from grader.store.people import people
from grader.store.queue import outbox, reconciler
from grader.store.tables.person import Role

_RELAY_S = 1.0
"""How long a message takes from the outbox to a worker, at most."""
_VERSION = "0" * 64
_PROFILE = "workshop"


def rehearse(scenario: Scenario) -> RehearsalResult:
    """Play a deadline; takes seconds, whatever the window."""
    with tempfile.TemporaryDirectory(prefix="grader-rehearsal-") as folder:
        clock = SimulatedClock()
        store = clock.open(Path(folder))
        try:
            return _Simulation(scenario, clock, store).to_the_end()
        finally:
            store.close()


class _Simulation:
    def __init__(self, scenario: Scenario, clock: SimulatedClock, store: Store) -> None:
        self._scenario, self._clock, self._store = scenario, clock, store
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._host = SimulatedHost(store, clock, scenario.num_gpus, self._later, self._graded, self._expected)
        self._learners = [SimulatedLearner(number, scenario) for number in range(scenario.num_learners)]
        # What will become of each attempt that was handed in: whose, whether it fails, how long it takes.
        self._fates: dict[int, tuple[SimulatedLearner, bool, float]] = {}
        self._background = random.Random(f"{scenario.seed}/background")
        self._served: list[ServedAttempt] = []
        self._regrades_s: list[float] = []
        self._refused: dict[str, int] = {}
        self._arriving = 0

    def to_the_end(self) -> RehearsalResult:
        self._task = self._set_up()
        for learner in self._learners:
            self._hands_in(learner, learner.first_at())
        self._later(reconciler.STALE_S, self._reconcile)
        while self._agenda:
            at_s, _, happen = heapq.heappop(self._agenda)
            self._clock.forward(at_s)
            happen()
        window_s = self._scenario.window_s
        return RehearsalResult(
            self._scenario,
            tuple(self._served),
            self._refused,
            tuple(self._regrades_s),
            self._host.busy_s(window_s) / (window_s * self._scenario.num_gpus),
        )

    def _set_up(self) -> int:
        """The course, its people, and the regrades of an earlier task; returns the task that is due."""
        scenario, store = self._scenario, self._store
        course = courses.add_course(store, "rehearsal", "Rehearsal")
        need = f"gpu{scenario.need}"
        terms = TaskTerms(
            "Due",
            _VERSION,
            need=need,
            due_at=self._clock.at(scenario.window_s),
            max_concurrent=1,
            max_per_day=scenario.max_per_day,
            max_total=scenario.max_total,
        )
        task = courses.set_task(store, course, "due", _PROFILE, terms)
        staff = people.add_person(store, "staff", "Staff", Role.INSTRUCTOR)
        for learner in self._learners:
            login = f"learner{learner.number}"
            learner.person_id = people.add_person(store, login, login)
            enrolments.enrol(store, course, learner.person_id)
        if scenario.num_regrades:
            earlier = courses.set_task(
                store, course, "earlier", _PROFILE, TaskTerms("Earlier", _VERSION, need=need)
            )
            judged = [
                self._host.judge_now(self._submit(self._learners[n % len(self._learners)], earlier))
                for n in range(scenario.num_regrades)
            ]
            regrades.queue_new_runs(store, judged, actor_id=staff)
            self._later(0.0, self._relay)
        return task

    def _hands_in(self, learner: SimulatedLearner, at_s: float) -> None:
        self._arriving += 1

        def happen() -> None:
            self._arriving -= 1
            fate = learner.attempt()
            attempt_id = self._submit(learner, self._task)
            if attempt_id is None:
                return
            self._fates[attempt_id] = (learner, *fate)
            self._later(self._clock.now_s + _RELAY_S, self._relay)
            impatience_s = learner.asks_again_after()
            if impatience_s is not None:
                self._later(
                    self._clock.now_s + impatience_s, lambda: self._tries_again_already(learner, attempt_id)
                )

        self._later(at_s, happen)

    def _tries_again_already(self, learner: SimulatedLearner, attempt_id: int) -> None:
        # Once it is judged there is a report to read, and nobody hands in blindly.
        if attempt_id in self._fates:
            self._submit(learner, self._task)

    def _submit(self, learner: SimulatedLearner, task: int) -> int | None:
        text = f"print({next(self._numbers)})\n"
        submission = Submission("train", (SourceFile("train.py", text),))
        answer = submissions.submit(self._store, learner.person_id, task, submission)
        if isinstance(answer, Refusal):
            self._refused[answer.limit] = self._refused.get(answer.limit, 0) + 1
            return None
        return answer.attempt_id

    def _expected(self, attempt_id: int) -> tuple[bool, float]:
        """Whether a claimed attempt fails, and its seconds."""
        if attempt_id in self._fates:
            _, fails, seconds = self._fates[attempt_id]
            return fails, seconds
        return False, self._scenario.durations.draw(self._background, fails=False)

    def _graded(self, attempt: SimulatedAttempt) -> None:
        fate = self._fates.pop(attempt.attempt_id, None)
        now_s = self._clock.now_s
        if fate is None:
            self._regrades_s.append(now_s)
            return
        learner = fate[0]
        accepted = attempt.verdict is Verdict.ACCEPTED
        self._served.append(
            ServedAttempt(learner.number, attempt.queued_s, attempt.claimed_s, now_s, accepted)
        )
        again_s = None if accepted else learner.again_at(now_s)
        if again_s is not None:
            self._hands_in(learner, again_s)

    def _relay(self) -> None:
        outbox.publish(self._store, lambda _message: self._host.wake())

    def _reconcile(self) -> None:
        reconciler.reconcile(self._store)
        self._relay()
        if self._arriving or self._fates or self._host.running:
            self._later(self._clock.now_s + reconciler.STALE_S, self._reconcile)

    def _later(self, at_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (at_s, next(self._numbers), happen))
