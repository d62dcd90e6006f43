"""Random histories of handing in, claiming, beating, ending, expiring and cancelling, held against a simple model.

The model knows nothing of SQL: a list of attempts, whose turn it was, and the rules. After every step the store says
the same; at the end nothing is lost, nothing is judged twice, and every standing follows from the grades.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select, text

from grader.model.grade import Verdict
from grader.store import events
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.attempt_endings import MAX_TRIES, AttemptEnding, CancelResult
from grader.store.attempts.limits import Limit, Refusal
from grader.store.attempts.submissions import Receipt
from grader.store.grading.gradebook import gradebook
from grader.store.grading.standings import recompute_standings
from grader.store.queue import claims, reconciler
from grader.store.queue.claims import HeartbeatAnswer
from grader.store.tables import AttemptRow, GradeRow, StandingRow
from tests.store.campus import Campus, script, verdict_of
from tests.store.conftest import Databases

MAX_TOTAL, MAX_CONCURRENT = 6, 3


@dataclass
class Modelled:
    """One attempt as it should be."""

    id: int
    person: int
    text: int
    state: str = "queued"
    token: int = 0
    tries: int = 0
    cancel: bool = False
    ran: bool = False
    ended_lease: bool = False
    points: float | None = None
    cached: bool = False


@dataclass
class Model:
    attempts: dict[int, Modelled] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    num_claims: int = 0

    def counted(self, person: int) -> int:
        return sum(
            one.person == person
            and one.state != "failed"
            and not one.cached
            and not (one.state == "cancelled" and not one.ran)
            for one in self.attempts.values()
        )

    def unfinished(self, person: int) -> int:
        return sum(
            one.person == person and one.state in ("queued", "running") for one in self.attempts.values()
        )

    def known(self, text_number: int) -> Modelled | None:
        found = [
            one
            for one in self.attempts.values()
            if one.text == text_number and one.state == "judged" and not one.cached
        ]
        return max(found, key=lambda one: one.id, default=None)

    def next(self) -> Modelled | None:
        waiting = [one for one in self.attempts.values() if one.state == "queued"]
        return min(waiting, key=lambda one: (self.turns.get(one.person, 0), one.id), default=None)

    def lose(self, one: Modelled, *, forget: bool = False) -> AttemptEnding:
        if one.cancel:
            one.state = "cancelled"
            return AttemptEnding.CANCELLED
        if forget or one.tries < MAX_TRIES:
            one.state, one.ran = "queued", False
            one.tries -= forget
            return AttemptEnding.REQUEUED
        one.state = "failed"
        return AttemptEnding.FAILED


class Histories(RuleBasedStateMachine):
    """Leases are `(attempt, token)`, old ones included: whoever comes back late is part of the game."""

    databases: Databases
    leases = Bundle("leases")

    @initialize()
    def begin(self) -> None:
        self.campus = Campus(self.databases.clean())
        self.store = self.campus.store
        self.campus.set_task(max_total=MAX_TOTAL, max_concurrent=MAX_CONCURRENT)
        self.people = [self.campus.anna, self.campus.ben, self.campus.person("carl")]
        self.model = Model()

    def teardown(self) -> None:
        self.databases.close()

    @rule(who=st.integers(0, 2), number=st.integers(0, 3), key=st.none() | st.integers(0, 1))
    def submit(self, who: int, number: int, key: int | None) -> None:
        person = self.people[who]
        name = None if key is None else f"{number}-{key}"
        answer = submissions.submit(
            self.store, person, self.campus.task, script(f"a = {number}\n"), idempotency_key=name
        )
        if isinstance(answer, Receipt) and answer.repeated:
            assert self.model.attempts[answer.attempt_id].person == person
            assert name is not None
            return
        if self.model.counted(person) >= MAX_TOTAL:
            assert answer == Refusal(Limit.TOTAL, MAX_TOTAL, self.model.counted(person))
            return
        if self.model.unfinished(person) >= MAX_CONCURRENT:
            assert answer == Refusal(Limit.CONCURRENT, MAX_CONCURRENT, MAX_CONCURRENT)
            return
        assert isinstance(answer, Receipt)
        one = Modelled(answer.attempt_id, person, number)
        if (known := self.model.known(number)) is not None:
            one.state, one.cached, one.points = "judged", True, known.points
        self.model.attempts[one.id] = one

    @rule(target=leases, ended=st.booleans())
    def claim(self, ended: bool) -> Any:
        claimed = claims.claim(self.store, "w", ["cpu"], lease_s=-1.0 if ended else 600.0)
        wanted = self.model.next()
        if wanted is None:
            assert claimed is claims.Idle.EMPTY
            return multiple()
        assert isinstance(claimed, claims.Claimed)
        assert claimed.attempt_id == wanted.id
        assert claimed.lease_token > wanted.token
        self.model.num_claims += 1
        self.model.turns[wanted.person] = self.model.num_claims
        wanted.state, wanted.token, wanted.ran, wanted.ended_lease = (
            "running",
            claimed.lease_token,
            True,
            ended,
        )
        wanted.tries += 1
        assert claimed.tries == wanted.tries
        return wanted.id, claimed.lease_token

    def held(self, lease: tuple[int, int]) -> Modelled | None:
        one = self.model.attempts[lease[0]]
        return one if one.state == "running" and one.token == lease[1] else None

    @rule(lease=leases)
    def heartbeat(self, lease: tuple[int, int]) -> None:
        one = self.held(lease)
        sign = claims.heartbeat(self.store, *lease, lease_s=600.0)
        assert sign is (
            HeartbeatAnswer.STALE
            if one is None
            else HeartbeatAnswer.CANCEL
            if one.cancel
            else HeartbeatAnswer.KEPT
        )
        if one is not None:
            one.ended_lease = False

    @rule(lease=leases, points=st.integers(0, 100))
    def finish(self, lease: tuple[int, int], points: int) -> None:
        one, known = self.held(lease), self.model.attempts[lease[0]]
        ending = attempt_endings.finish(self.store, *lease, verdict_of(Verdict.REJECTED, float(points)))
        if one is None:
            again = known.state == "judged" and known.token == lease[1]
            assert ending is (AttemptEnding.JUDGED if again else AttemptEnding.STALE)
        elif one.cancel:
            assert ending is AttemptEnding.CANCELLED
            one.state = "cancelled"
        else:
            assert ending is AttemptEnding.JUDGED
            one.state, one.points = "judged", float(points)

    @rule(lease=leases, forget=st.booleans())
    def lose(self, lease: tuple[int, int], forget: bool) -> None:
        one = self.held(lease)
        if forget:
            ending = attempt_endings.give_up(self.store, *lease)
        else:
            ending = attempt_endings.fail(self.store, *lease, "broken", backoff_s=0)
        assert ending is (AttemptEnding.STALE if one is None else self.model.lose(one, forget=forget))

    @rule(lease=leases)
    def tell(self, lease: tuple[int, int]) -> None:
        told = events.add_live_events(self.store, *lease, [("log", {"line": "x"}), ("log", {"line": "y"})])
        assert told == (self.held(lease) is not None)

    @rule()
    def reconcile(self) -> None:
        ends = [
            self.model.lose(one)
            for one in self.model.attempts.values()
            if one.state == "running" and one.ended_lease
        ]
        done = reconciler.reconcile(self.store, backoff_s=0)
        counts = [
            ends.count(end) for end in (AttemptEnding.REQUEUED, AttemptEnding.FAILED, AttemptEnding.CANCELLED)
        ]
        assert [done.requeued, done.failed, done.cancelled] == counts

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if not self.model.attempts:
            return
        one = self.model.attempts[data.draw(st.sampled_from(sorted(self.model.attempts)))]
        answer = attempt_endings.cancel(self.store, one.id, actor_id=one.person)
        wanted = {
            "queued": CancelResult.CANCELLED,
            "running": CancelResult.REQUESTED,
            "cancelled": CancelResult.CANCELLED,
        }.get(one.state, CancelResult.TOO_LATE)
        assert answer is wanted
        if one.state == "queued":
            one.state, one.cancel = "cancelled", True
        elif one.state == "running":
            one.cancel = True

    @invariant()
    def store_says_the_same(self) -> None:
        if not hasattr(self, "model"):
            return
        with self.store.read() as connection:
            seen = {
                row.id: (row.state.value, row.tries, row.points)
                for row in connection.execute(
                    select(AttemptRow.id, AttemptRow.state, AttemptRow.tries, GradeRow.points).outerjoin(
                        GradeRow, GradeRow.attempt_id == AttemptRow.id
                    )
                )
            }
        assert seen == {one.id: (one.state, one.tries, one.points) for one in self.model.attempts.values()}

    @invariant()
    def best_attempts_count(self) -> None:
        if not hasattr(self, "model"):
            return
        book = {row.person_id: row.cells for row in gradebook(self.store, self.campus.course).rows}
        for person in self.people:
            points = [
                one.points
                for one in self.model.attempts.values()
                if one.person == person and one.points is not None
            ]
            cell = book[person].get(self.campus.task)
            assert (cell is not None and cell.verdict is not None) == bool(points)
            if cell is not None and points:
                assert cell.points == max(points)

    @invariant()
    def events_have_no_gaps_and_one_end(self) -> None:
        if not hasattr(self, "model"):
            return
        with self.store.read() as connection:
            told = connection.execute(
                text(
                    "SELECT attempt_id, seq, kind FROM events WHERE attempt_id IS NOT NULL ORDER BY attempt_id, seq"
                )
            ).all()
        for one in self.model.attempts.values():
            own = [(seq, kind) for attempt_id, seq, kind in told if attempt_id == one.id]
            assert [seq for seq, _ in own] == list(range(1, len(own) + 1))
            ends = [kind for _, kind in own if kind in ("judged", "failed", "cancelled")]
            assert ends == ([one.state] if one.state in ("judged", "failed", "cancelled") else [])

    @rule()
    def standings_follow_from_grades(self) -> None:
        columns = select(
            StandingRow.person_id, StandingRow.attempt_id, StandingRow.points, StandingRow.verdict
        )
        with self.store.write() as connection:
            before = set(connection.execute(columns).all())
            recompute_standings(connection, self.campus.task)
            assert set(connection.execute(columns).all()) == before


@pytest.mark.slow
def test_histories(databases: Databases) -> None:
    machine = type("Histories", (Histories,), {"databases": databases})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=12, stateful_step_count=40, deadline=None)
    )
