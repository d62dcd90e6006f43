"""Row 47: the same message ten times, messages of attempts that are over, and of attempts that never were."""

from __future__ import annotations

from grader.queue.celery import make_app
from grader.queue.publisher import TaskPublisher
from grader.queue.routes import JUDGE_SUBMISSION, queue_name
from grader.store.tables.attempt import AttemptState
from tests.faults.judged import assert_judged_once
from tests.worker.conftest import Site
from tests.worker.redis_server import Redis


def test_only_the_database_counts(site: Site, redis: Redis) -> None:
    rig = site(broker=redis.url)
    app = make_app(redis.url)
    handed_in = [rig.hand_in(), rig.hand_in()]
    with TaskPublisher(app) as publisher:
        for _ in range(10):
            publisher.publish(handed_in[0], "cpu", "interactive")
        publisher.publish(10_000_000, "cpu", "interactive")
    # Not what we send: a worker that stumbled over it would leave the queue to nobody.
    for nonsense in ({}, {"attempt_id": "'; DROP TABLE attempts"}, {"attempt_id": 1, "more": [1, 2]}):
        app.send_task(JUDGE_SUBMISSION, kwargs=nonsense, queue=queue_name("cpu", "interactive"))
    app.close()
    rig.relay()
    rig.worker("w1", "--slots", "2")
    for attempt_id in handed_in:
        assert rig.wait(attempt_id, AttemptState.JUDGED).tries == 1
    assert_judged_once(rig, handed_in)
    with TaskPublisher(app) as publisher:
        publisher.publish(handed_in[0], "cpu", "interactive")
    last = rig.hand_in()
    rig.wait(last, AttemptState.JUDGED)
    assert_judged_once(rig, [*handed_in, last])
