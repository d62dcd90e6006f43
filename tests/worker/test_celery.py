"""What somebody who knows Celery sees: nodes that answer while they work, tasks with their attempts, and how long."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from celery.events.state import State

from grader.queue.celery import make_app
from grader.queue.routes import JUDGE_SUBMISSION, REGRADE_ATTEMPT, queue_name, queue_names
from grader.store.attempts import attempt_endings
from grader.store.grading import regrades
from grader.store.queue import outbox
from grader.store.tables.attempt import AttemptState
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis
from tests.worker.rig import SLOW, Rig, wait_until

BRIEF = SLOW.replace("600", "15")


@pytest.fixture
def rig(site: Site, redis: Redis) -> Rig:
    """A site on Redis, with a relay and a worker that runs two attempts side by side."""
    made = site(broker=redis.url)
    made.relay()
    made.worker("w1", "--slots", "2")
    return made


def celery(rig: Rig, *arguments: str) -> dict[str, Any]:
    """What `celery -A grader.queue ARGUMENTS --json` answers; {} where nobody does."""
    done = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "grader.queue", *arguments, "--json", "--timeout", "5"],
        cwd=rig.folder,
        env=rig.env(),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {}


@contextmanager
def listening(rig: Rig) -> Iterator[list[dict[str, Any]]]:
    """Everything that workers tell of tasks, as Flower and exporters hear it."""
    heard: list[dict[str, Any]] = []
    with make_app(rig.broker).connection_for_read() as connection:
        receiver = make_app(rig.broker).events.Receiver(connection, handlers={"*": heard.append})
        thread = threading.Thread(target=partial(receiver.capture, limit=None, timeout=None, wakeup=False))
        thread.start()
        try:
            # Its heartbeat comes every other second.
            wait_until(lambda: heard, "a node is heard")
            yield heard
        finally:
            receiver.should_stop = True
            thread.join()


def test_nodes_answer_and_show_the_attempts_that_they_judge(rig: Rig) -> None:
    wait_until(lambda: len(celery(rig, "inspect", "ping")) == 2, "both nodes answer")
    assert celery(rig, "inspect", "ping") == {"slot1@w1": {"ok": "pong"}, "slot2@w1": {"ok": "pong"}}
    attempt_id = rig.hand_in(rig.script(SLOW))
    rig.wait_running(attempt_id)
    active = celery(rig, "inspect", "active")
    (task,) = [one for tasks in active.values() for one in tasks]
    assert task["name"] == JUDGE_SUBMISSION
    assert task["kwargs"] == {"attempt_id": attempt_id, "task": "ddp-toy", "need": "cpu"}
    assert task["delivery_info"]["routing_key"] == "grader.cpu.interactive"
    assert task["time_start"] is not None
    # No node sits on messages that another could act on.
    assert [one for tasks in celery(rig, "inspect", "reserved").values() for one in tasks] in ([], [task])
    attempt_endings.cancel(rig.store, attempt_id, actor_id=None)
    rig.wait(attempt_id, AttemptState.CANCELLED)
    wait_until(lambda: celery(rig, "inspect", "active") == {"slot1@w1": [], "slot2@w1": []}, "nothing runs")
    listens = celery(rig, "inspect", "active_queues")
    assert listens.keys() == {"slot1@w1", "slot2@w1"}
    for queues in listens.values():
        assert {one["name"] for one in queues} == set(queue_names(("cpu",)))
    counted = [one["total"].get(JUDGE_SUBMISSION, 0) for one in celery(rig, "inspect", "stats").values()]
    assert len(counted) == 2
    assert sum(counted) >= 1


def test_everything_is_shown_as_it_happens(rig: Rig) -> None:
    dumped = rig.folder / "events.txt"
    with dumped.open("w") as file:
        command = [sys.executable, "-m", "celery", "-A", "grader.queue", "events", "--dump"]
        watcher = subprocess.Popen(command, cwd=rig.folder, env=rig.env(), stdout=file)
        try:
            wait_until(lambda: "slot1@w1" in dumped.read_text(), "a node's event is printed")
        finally:
            watcher.terminate()
            watcher.wait(timeout=60)


def test_what_is_shown_is_what_was_claimed(rig: Rig) -> None:
    """Not what the message says, which another attempt may have caused."""
    app = make_app(rig.broker)
    wait_until(lambda: len(celery(rig, "inspect", "ping")) == 2, "both nodes answer")
    rig.end("relay")
    attempt_id = rig.hand_in(rig.script(SLOW))
    app.send_task(JUDGE_SUBMISSION, kwargs={"waiting": 10_000_000, "need": "cpu"})
    app.close()
    rig.wait_running(attempt_id)
    (task,) = [one for tasks in celery(rig, "inspect", "active").values() for one in tasks]
    assert task["kwargs"]["attempt_id"] == attempt_id


def test_events_tell_of_each_attempt_what_became_of_it_and_how_long_it_took(rig: Rig) -> None:
    wait_until(lambda: len(celery(rig, "inspect", "ping")) == 2, "both nodes answer")
    with listening(rig) as heard:
        brief, good = rig.hand_in(rig.script(BRIEF)), rig.hand_in(person=rig.person("ben"))
        for attempt_id in (brief, good):
            rig.wait(attempt_id, AttemptState.JUDGED)
        staff = rig.person("ines")
        regrades.queue_new_runs(rig.store, [good], actor_id=staff)

        def told(kind: str) -> list[dict[str, Any]]:
            return [one for one in heard if one["type"] == kind]

        wait_until(lambda: len(told("task-succeeded")) >= 3, "three tasks are over")
    # As Flower keeps it.
    state = State()
    for event in heard:
        state.event(dict(event))
    tasks = {task.kwargs: task for _, task in state.itertasks() if task.state == "SUCCESS"}
    assert len(tasks) == 3
    for attempt_id, name in (
        (brief, JUDGE_SUBMISSION),
        (good, JUDGE_SUBMISSION),
        (good + 1, REGRADE_ATTEMPT),
    ):
        task = tasks[repr({"attempt_id": attempt_id, "task": "ddp-toy", "need": "cpu"})]
        assert task.name == name
        assert f"'attempt_id': {attempt_id}, 'ending': 'judged'" in task.result
        assert task.received <= task.started <= task.succeeded
        facts = rig.facts(attempt_id)
        assert facts.claimed_at is not None
        assert facts.finished_at is not None
        assert task.runtime >= (facts.finished_at - facts.claimed_at).total_seconds()
    assert {
        kind for kind in ("task-received", "task-started", "task-judging") if len(told(kind)) != 3
    } == set()
    assert {one["hostname"] for one in told("worker-heartbeat")} == {"slot1@w1", "slot2@w1"}


def test_what_we_could_not_judge_is_a_failed_task(site: Site, redis: Redis) -> None:
    from grader.store.courses.courses import TaskTerms, set_task

    rig = site(broker=redis.url)
    set_task(rig.store, rig.course, "ddp-toy", "cpu", TaskTerms(title="Toy", version="0" * 64))
    rig.worker()
    wait_until(lambda: celery(rig, "inspect", "ping"), "the node answers")
    with listening(rig) as heard:
        rig.relay()
        rig.hand_in()
        failed = wait_until(lambda: [one for one in heard if one["type"] == "task-failed"], "a failed task")
    assert "version 000000000000 is wanted" in failed[0]["exception"]


def test_a_message_of_another_need_is_sent_again(site: Site, redis: Redis) -> None:
    """A host that serves several needs takes whose turn it is; the other attempt's message is not lost with that."""
    rig = site(broker=redis.url)
    first, second = rig.hand_in(), rig.hand_in(person=rig.person("ben"))
    outbox.publish(rig.store, lambda message: None)
    app = make_app(rig.broker)
    app.send_task(
        JUDGE_SUBMISSION, kwargs={"waiting": second, "need": "gpu1"}, queue=queue_name("cpu", "interactive")
    )
    app.close()
    rig.worker()
    rig.wait(first, AttemptState.JUDGED)
    assert [one.attempt_id for one in outbox.take(rig.store)] == [second]
    assert rig.facts(second).state is AttemptState.QUEUED, "one message, two attempts"


def test_a_host_that_is_unwell_takes_one_message_and_leaves_the_rest_to_others(site: Site) -> None:
    rig = site()
    rig.start("relay", "relay", "--every", "3600")
    rig.worker("unwell", GRADER_MIN_FREE_BYTES=str(1 << 60), GRADER_STATE_DIR=str(rig.folder / "unwell"))
    wait_until(lambda: "out of service" in (rig.folder / "unwell.log").read_text(), "it is unwell")
    handed_in = [rig.hand_in() for _ in range(4)]
    time.sleep(2.0)
    rig.worker("well")

    def judged() -> int:
        return sum(rig.facts(attempt_id).state is AttemptState.JUDGED for attempt_id in handed_in)

    wait_until(lambda: judged() == len(handed_in) - 1, "all others are judged")
    # Whoever ends gives nothing back that it never claimed.
    assert rig.end("unwell") == 0
