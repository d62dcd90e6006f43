"""Claims, leases, ends: nobody holds what another holds, each attempt ends once, turns are fair, nothing is lost."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import text

from grader.model.grade import Verdict
from grader.store import events
from grader.store.attempts import attempt_endings, attempts
from grader.store.attempts.attempt_endings import MAX_TRIES, AttemptEnding, CancelResult
from grader.store.grading import grades, regrades
from grader.store.queue import claims, outbox, queue, reconciler
from grader.store.queue.claims import HeartbeatAnswer, Idle
from grader.store.tables.attempt import AttemptState, Lane
from tests.store.campus import Campus, verdict_of

HOST_CLOCKS = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
PAST = -1.0
"""A lease of so many seconds has ended already."""


def state(campus: Campus, attempt_id: int) -> AttemptState:
    facts = attempts.attempt(campus.store, attempt_id)
    assert facts is not None
    return facts.state


def kinds(campus: Campus, attempt_id: int) -> list[str]:
    told = events.events_of(campus.store, attempt_id)
    assert [one.seq for one in told] == list(range(1, len(told) + 1)), "numbers have gaps"
    return [one.kind for one in told]


def test_turns_go_round_between_learners_and_oldest_first_within_one(campus: Campus) -> None:
    carl = campus.person("carl")
    annas = [campus.queue(campus.anna) for _ in range(4)]
    bens = [campus.queue(campus.ben) for _ in range(2)]
    carls = [campus.queue(carl)]
    order = [campus.claim().attempt_id for _ in range(7)]
    assert order == [annas[0], bens[0], carls[0], annas[1], bens[1], annas[2], annas[3]]
    assert claims.claim(campus.store, "w1", ["cpu"]) is Idle.EMPTY


def test_who_was_served_longest_ago_comes_first(campus: Campus) -> None:
    campus.judge(campus.anna)
    campus.judge(campus.ben)
    bens, annas = campus.queue(campus.ben), campus.queue(campus.anna)
    assert [campus.claim().attempt_id for _ in range(2)] == [annas, bens]


def test_a_thousand_of_one_learner_hold_up_nobody(campus: Campus) -> None:
    from grader.store.attempts.new_attempts import enqueue

    first = campus.queue(campus.anna)
    with campus.store.write() as connection:
        row = connection.execute(text(f"SELECT * FROM attempts WHERE id = {first}")).mappings().one()
        names = (
            "submission_id",
            "person_id",
            "course_task_id",
            "digest",
            "task",
            "task_version",
            "profile",
            "need",
        )
        values = {name: row[name] for name in names} | {"lane": Lane.INTERACTIVE}
        enqueue(connection, [values] * 999, [None] * 999)
    others = [campus.queue(campus.person(f"other{number}")) for number in range(5)]
    order = [campus.claim().attempt_id for _ in range(7)]
    assert order[0] == first
    assert order[1:6] == others
    assert queue.places(campus.store)[first + 500].position > 400


def test_interactive_comes_before_regrades(campus: Campus) -> None:
    from grader.store.grading import regrades

    old = campus.judge(campus.anna)
    batch = regrades.queue_new_runs(campus.store, [old], actor_id=campus.ines)
    assert batch
    new = campus.queue(campus.anna)
    assert campus.claim().attempt_id == new
    assert campus.claim().lane is Lane.REGRADE


def test_a_worker_gets_only_what_its_devices_can_run(campus: Campus) -> None:
    campus.set_task(need="gpu2")
    attempt_id = campus.queue(campus.anna)
    for needs in (["cpu"], claims.needs_of(1), []):
        assert claims.claim(campus.store, "w", needs) is Idle.EMPTY
    assert claims.needs_of(2) == ("cpu", "gpu1", "gpu2")
    assert campus.claim(needs=claims.needs_of(4, cpu=False)).attempt_id == attempt_id


def test_a_worker_with_little_time_passes_over_what_takes_longer(campus: Campus) -> None:
    long = campus.set_task("ddp-fashion")
    annas, bens = campus.queue(campus.anna, task=long), campus.queue(campus.ben)
    for fitting in ([], [("ddp-toy", "gpu")]):
        assert claims.claim(campus.store, "w", ["cpu"], fitting=fitting) is Idle.EMPTY
    short = [("ddp-toy", "cpu"), ("ddp-toy", "gpu")]
    assert campus.claim(fitting=short).attempt_id == bens
    assert claims.claim(campus.store, "w", ["cpu"], fitting=short) is Idle.EMPTY
    assert campus.claim().attempt_id == annas


def test_pauses_hold_what_they_name_and_submissions_are_still_taken(campus: Campus) -> None:
    running = campus.queue(campus.anna)
    claimed = campus.claim()
    queue.pause(campus.store, reason="lunch", actor_id=campus.ines)
    waiting = campus.queue(campus.ben)
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.PAUSED
    seen = queue.queue_state(campus.store)
    assert (seen.pauses[0].gate, seen.pauses[0].reason, seen.running) == ("*", "lunch", 1)
    assert (
        attempt_endings.finish(campus.store, running, claimed.lease_token, verdict_of())
        is AttemptEnding.JUDGED
    )
    assert queue.queue_state(campus.store).running == 0
    assert queue.resume(campus.store, actor_id=campus.ines)
    assert not queue.resume(campus.store, actor_id=campus.ines)
    queue.pause(campus.store, "cpu", reason="", actor_id=None)
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.PAUSED
    queue.resume(campus.store, "cpu", actor_id=None)
    queue.pause(campus.store, "regrade", reason="", actor_id=None)
    assert campus.claim().attempt_id == waiting


def test_a_draining_worker_gets_nothing_more(campus: Campus) -> None:
    assert not queue.report_worker(campus.store, "w1", ["cpu"], 1)
    campus.queue(campus.anna)
    assert queue.drain_worker(campus.store, "w1", actor_id=campus.ines)
    assert claims.claim(campus.store, "w1", ["cpu"]) is Idle.DRAINING
    assert queue.report_worker(campus.store, "w1", ["cpu"], 1), "it is told to end"
    campus.claim("w2")
    queue.forget_worker(campus.store, "w1")
    assert not queue.report_worker(campus.store, "w1", ["cpu"], 1), "a new one of that name works"


def test_heartbeats_keep_a_lease(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    claimed = campus.claim(lease_s=PAST)
    sign = claims.heartbeat(campus.store, attempt_id, claimed.lease_token, phase="run")
    assert sign is HeartbeatAnswer.KEPT
    assert reconciler.reconcile(campus.store) == reconciler.Reconciled()
    facts = attempts.attempt(campus.store, attempt_id)
    assert facts is not None
    assert (facts.state, facts.phase, facts.worker) == (AttemptState.RUNNING, "run", "w1")


def test_who_lost_its_lease_is_refused_everything(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    old = campus.claim("slow", lease_s=PAST)
    assert reconciler.reconcile(campus.store, backoff_s=0).requeued == 1
    new = campus.claim("quick")
    assert (new.attempt_id, new.tries) == (attempt_id, 2)
    assert new.lease_token > old.lease_token
    late = old.lease_token
    assert claims.heartbeat(campus.store, attempt_id, late) is HeartbeatAnswer.STALE
    assert not events.add_live_events(campus.store, attempt_id, late, [("log", {"line": "late"})])
    assert (
        attempt_endings.finish(campus.store, attempt_id, late, verdict_of(points=1.0)) is AttemptEnding.STALE
    )
    assert attempt_endings.fail(campus.store, attempt_id, late, "late") is AttemptEnding.STALE
    assert attempt_endings.give_up(campus.store, attempt_id, late) is AttemptEnding.STALE
    assert (
        attempt_endings.finish(campus.store, attempt_id, new.lease_token, verdict_of(points=2.0))
        is AttemptEnding.JUDGED
    )
    assert (
        attempt_endings.finish(campus.store, attempt_id, late, verdict_of(points=1.0)) is AttemptEnding.STALE
    )
    stored = grades.grade_of(campus.store, attempt_id)
    assert stored is not None
    assert stored.points == 2.0
    assert kinds(campus, attempt_id) == ["queued", "claimed", "requeued", "claimed", "judged"]


def test_a_grade_that_comes_before_anybody_noticed_still_counts(campus: Campus) -> None:
    """A worker was stopped beyond its lease, and nobody took the attempt from it: adopted, not run again."""
    attempt_id = campus.queue(campus.anna)
    claimed = campus.claim(lease_s=PAST)
    assert (
        attempt_endings.finish(campus.store, attempt_id, claimed.lease_token, verdict_of())
        is AttemptEnding.JUDGED
    )
    assert reconciler.reconcile(campus.store) == reconciler.Reconciled()


@pytest.mark.one_database
def test_a_grade_that_is_brought_twice_is_one(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    token = campus.claim().lease_token
    for _ in range(10):
        assert attempt_endings.finish(campus.store, attempt_id, token, verdict_of()) is AttemptEnding.JUDGED
    assert kinds(campus, attempt_id).count("judged") == 1


@pytest.mark.one_database
def test_a_judge_error_is_no_grade(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    with pytest.raises(ValueError, match="fail"):
        attempt_endings.finish(
            campus.store, attempt_id, campus.claim().lease_token, verdict_of(Verdict.JUDGE_ERROR)
        )
    assert state(campus, attempt_id) is AttemptState.RUNNING


@pytest.mark.one_database
def test_three_failed_tries_end_it_and_staff_is_told(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    for number in range(1, MAX_TRIES + 1):
        claimed = campus.claim()
        assert claimed.tries == number
        ending = attempt_endings.fail(
            campus.store, attempt_id, claimed.lease_token, f"disk full {number}", backoff_s=0
        )
        assert ending is (AttemptEnding.FAILED if number == MAX_TRIES else AttemptEnding.REQUEUED)
    facts = attempts.attempt(campus.store, attempt_id)
    assert facts is not None
    assert (facts.state, facts.failure) == (AttemptState.FAILED, "disk full 3")
    assert [one.topic for one in outbox.take(campus.store)].count("judge_error") == 1
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.EMPTY


def test_a_poison_job_that_kills_its_workers_ends_after_three(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    for _ in range(MAX_TRIES):
        campus.claim(lease_s=PAST)
        reconciler.reconcile(campus.store, backoff_s=0)
    assert state(campus, attempt_id) is AttemptState.FAILED
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.EMPTY


@pytest.mark.one_database
def test_a_failed_try_waits_before_the_next(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    attempt_endings.fail(
        campus.store, attempt_id, campus.claim().lease_token, "engine restarts", backoff_s=3600
    )
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.EMPTY
    assert [one.attempt_id for one in outbox.take(campus.store)] == [attempt_id], "only the first message"


@pytest.mark.one_database
def test_what_is_given_back_was_not_tried(campus: Campus) -> None:
    attempt_id, token = campus.queue(campus.anna), 0
    for _ in range(MAX_TRIES + 1):
        claimed = campus.claim()
        token = claimed.lease_token
        assert claimed.tries == 1
        assert (
            attempt_endings.give_up(campus.store, attempt_id, claimed.lease_token) is AttemptEnding.REQUEUED
        )
    assert token == MAX_TRIES + 1, "tokens never come again"


@pytest.mark.one_database
def test_cancel_while_it_waits(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    assert attempt_endings.cancel(campus.store, attempt_id, actor_id=campus.anna) is CancelResult.CANCELLED
    assert attempt_endings.cancel(campus.store, attempt_id, actor_id=campus.anna) is CancelResult.CANCELLED
    assert claims.claim(campus.store, "w", ["cpu"]) is Idle.EMPTY
    assert attempt_endings.cancel(campus.store, 4711, actor_id=None) is CancelResult.UNKNOWN
    assert kinds(campus, attempt_id) == ["queued", "cancelled"]


@pytest.mark.one_database
@pytest.mark.parametrize("end", ["finish", "fail", "give_up", "expire"])
def test_cancel_while_it_runs_wins_over_every_end(campus: Campus, end: str) -> None:
    attempt_id = campus.queue(campus.anna)
    claimed = campus.claim(lease_s=PAST if end == "expire" else 30.0)
    token = claimed.lease_token
    for _ in range(2):
        assert (
            attempt_endings.cancel(campus.store, attempt_id, actor_id=campus.anna) is CancelResult.REQUESTED
        )
    if end == "finish":
        assert claims.heartbeat(campus.store, attempt_id, token) is HeartbeatAnswer.CANCEL
        assert (
            attempt_endings.finish(campus.store, attempt_id, token, verdict_of()) is AttemptEnding.CANCELLED
        )
    elif end == "fail":
        assert attempt_endings.fail(campus.store, attempt_id, token, "x") is AttemptEnding.CANCELLED
    elif end == "give_up":
        assert attempt_endings.give_up(campus.store, attempt_id, token) is AttemptEnding.CANCELLED
    else:
        assert reconciler.reconcile(campus.store).cancelled == 1
    assert state(campus, attempt_id) is AttemptState.CANCELLED
    assert grades.grade_of(campus.store, attempt_id) is None
    assert kinds(campus, attempt_id) == ["queued", "claimed", "cancel_requested", "cancelled"]


@pytest.mark.one_database
def test_cancel_after_the_grade_is_too_late(campus: Campus) -> None:
    attempt_id = campus.judge(campus.anna)
    assert attempt_endings.cancel(campus.store, attempt_id, actor_id=campus.anna) is CancelResult.TOO_LATE
    assert grades.grade_of(campus.store, attempt_id) is not None


def test_messages_leave_at_least_once(campus: Campus) -> None:
    wanted = [campus.queue(campus.anna) for _ in range(3)]
    got: list[int] = []

    def send(message: outbox.OutboxMessage) -> None:
        if len(got) == 1:
            raise ConnectionError("broker away")
        got.append(message.attempt_id)

    with pytest.raises(ConnectionError):
        outbox.publish(campus.store, send)
    assert got == wanted[:1]
    assert outbox.publish(campus.store, lambda message: got.append(message.attempt_id)) == 2
    assert got == wanted
    assert outbox.publish(campus.store, lambda message: got.append(message.attempt_id)) == 0


def test_messages_of_a_dead_relay_are_taken_again(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    assert [one.attempt_id for one in outbox.take(campus.store, taken_s=0.2)] == [attempt_id]
    assert outbox.take(campus.store) == ()
    time.sleep(0.4)
    assert [one.attempt_id for one in outbox.take(campus.store)] == [attempt_id]


def test_a_message_that_led_to_another_turn_is_sent_again_where_its_attempt_still_waits(
    campus: Campus,
) -> None:
    claimed_id, waits = campus.queue(campus.anna), campus.queue(campus.ben)
    assert not outbox.send_again(campus.store, waits), "it was not sent yet"
    outbox.publish(campus.store, lambda message: None)
    assert campus.claim().attempt_id == claimed_id
    assert not outbox.send_again(campus.store, claimed_id), "it does not wait"
    assert not outbox.send_again(campus.store, 10_000_000)
    assert outbox.send_again(campus.store, waits)
    assert [one.attempt_id for one in outbox.take(campus.store)] == [waits]


def test_a_claim_for_one_lane_leaves_the_other_lane_its_turn(campus: Campus) -> None:
    judged = campus.queue(campus.anna)
    first = campus.claim()
    attempt_endings.finish(campus.store, judged, first.lease_token, verdict_of())
    regrades.queue_new_runs(campus.store, [judged], actor_id=campus.ines)
    assert claims.claim(campus.store, "w1", ["cpu"], lane=Lane.INTERACTIVE) is Idle.EMPTY
    waits = campus.queue(campus.ben)
    assert claims.claim(campus.store, "w1", ["cpu"], lane=Lane.REGRADE) is Idle.EMPTY, "a learner waits"
    assert campus.claim(lane=Lane.INTERACTIVE).attempt_id == waits
    assert campus.claim(lane=Lane.REGRADE).lane is Lane.REGRADE


def test_lost_messages_are_sent_again_a_few_at_a_time(campus: Campus) -> None:
    wanted = [campus.queue(campus.anna) for _ in range(3)]
    done = campus.queue(campus.ben)
    outbox.publish(campus.store, lambda message: None)
    assert reconciler.reconcile(campus.store).republished == 0, "they were sent just now"
    while (claimed := campus.claim()).attempt_id != done:
        attempt_endings.give_up(campus.store, claimed.attempt_id, claimed.lease_token)
    outbox.publish(campus.store, lambda message: None)
    assert reconciler.reconcile(campus.store, stale_s=0, max_hints=2).republished == 2
    assert reconciler.reconcile(campus.store, stale_s=0).republished == 1
    again: list[int] = []
    outbox.publish(campus.store, lambda message: again.append(message.attempt_id))
    assert sorted(again) == wanted, "what runs needs no message"


def test_live_signs_are_read_from_where_one_was(campus: Campus) -> None:
    attempt_id = campus.queue(campus.anna)
    token = campus.claim().lease_token
    assert events.add_live_events(
        campus.store, attempt_id, token, [("phase", {"phase": "run"}), ("log", {"rank": 0})]
    )
    found = attempts.attempt(campus.store, attempt_id)
    assert found is not None
    assert found.phase == "run", "what it prints is read while it is still being prepared"
    assert events.add_live_events(campus.store, attempt_id, token, [])
    assert [one.kind for one in events.events_of(campus.store, attempt_id, after=2)] == ["phase", "log"]
    assert events.add_live_events(campus.store, attempt_id, token, [("log", {"rank": 1})])
    (last,) = events.events_of(campus.store, attempt_id, after=4)
    assert (last.seq, last.data) == (5, {"rank": 1})


def test_leases_go_by_the_database_whatever_the_host_says(
    campus: Campus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker whose clock is an hour ahead or behind holds its lease for just as long."""
    attempt_id = campus.queue(campus.anna)
    real = time.time
    for shift in (3600.0, -3600.0):
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda shift=shift: real() + shift)
            claimed = campus.claim()
            assert reconciler.reconcile(campus.store) == reconciler.Reconciled()
            assert claims.heartbeat(campus.store, attempt_id, claimed.lease_token) is HeartbeatAnswer.KEPT
            assert (
                attempt_endings.give_up(campus.store, attempt_id, claimed.lease_token)
                is AttemptEnding.REQUEUED
            )


def test_no_module_of_the_store_asks_the_host_for_the_time() -> None:
    import ast
    from pathlib import Path

    import grader.store

    asked = [
        f"{path.name}:{node.lineno}"
        for path in Path(grader.store.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Import) and any(alias.name == "time" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "time")
        or (isinstance(node, ast.Attribute) and ast.unparse(node) in HOST_CLOCKS)
    ]
    assert asked == []


def test_position_and_expected_start(campus: Campus) -> None:
    first = campus.queue(campus.anna)
    assert queue.places(campus.store)[first] == queue.QueuePlace(1, None), "nobody works here"
    queue.report_worker(campus.store, "w1", ["cpu"], 2)
    assert queue.places(campus.store)[first] == queue.QueuePlace(1, 0.0), "a slot is free"
    for gate in ("*", "interactive", "cpu"):
        queue.pause(campus.store, gate, reason="a talk", actor_id=None)
        assert queue.places(campus.store)[first] == queue.QueuePlace(1, None), "nobody knows when it goes on"
        queue.resume(campus.store, gate, actor_id=None)
    queue.pause(campus.store, "regrade", reason="later", actor_id=None)
    assert queue.places(campus.store)[first] == queue.QueuePlace(1, 0.0), "this pause is about others"
    measured = campus.claim()
    attempt_endings.finish(campus.store, first, measured.lease_token, verdict_of())
    with campus.store.write() as connection:
        took = "'1 minute'" if not campus.store.is_sqlite else "'-60 seconds'"
        before = (
            f"claimed_at = finished_at - interval {took}"
            if not campus.store.is_sqlite
            else f"claimed_at = strftime('%Y-%m-%d %H:%M:%f', finished_at, {took}) || '000'"
        )
        connection.execute(text(f"UPDATE attempts SET {before} WHERE id = {first}"))
    annas = [campus.queue(campus.anna) for _ in range(4)]
    running = [campus.claim().attempt_id, campus.claim().attempt_id]
    assert running == annas[:2]
    bens = campus.queue(campus.ben)
    places = queue.places(campus.store)
    assert [places[one].position for one in (bens, annas[2], annas[3])] == [1, 2, 3]
    starts = [places[one].starts_in_s for one in (bens, annas[2], annas[3])]
    assert starts == [pytest.approx(60, abs=15), pytest.approx(60, abs=15), pytest.approx(120, abs=15)]
    (worker,) = queue.queue_state(campus.store).workers
    assert (worker.name, worker.slots, worker.num_running) == ("w1", 2, 2)
