"""Messages on a real Redis and in a folder: small, JSON alone, never more than are of use."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from grader.errors import UsageError
from grader.queue import publisher
from grader.queue.celery import make_app
from grader.queue.publisher import BrokerUnavailableError, TaskPublisher
from grader.queue.routes import JUDGE_SUBMISSION, queue_name
from tests.worker.redis_server import Redis

QUEUE = queue_name("gpu2", "interactive")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path / "redis")
    made.start()
    yield made
    made.stop()


@pytest.fixture(params=["redis", "folder"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Celery:
    if request.param == "folder":
        return make_app(f"filesystem://{tmp_path / 'broker'}")
    server: Redis = request.getfixturevalue("redis")
    return make_app(server.url)


def waiting(app: Celery) -> list[dict[str, Any]]:
    """Everything in the queue, taken as raw messages."""
    found = []
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        while (message := channel.basic_get(QUEUE)) is not None:
            found.append({"headers": message.headers, "type": message.content_type, "body": message.body})
            channel.basic_ack(message.delivery_tag)
    return found


def test_a_message_is_an_attempts_number_and_nothing_else(app: Celery) -> None:
    with TaskPublisher(app) as sender:
        assert sender.publish(7, "gpu2", "interactive")
        assert sender.publish(8, "cpu", "regrade")
    (message,) = waiting(app)
    assert message["type"] == "application/json"
    assert message["headers"]["task"] == JUDGE_SUBMISSION
    body = message["body"]
    text = body.decode() if isinstance(body, bytes) else str(body)
    arguments = json.loads(text if text.startswith("[") else base64.b64decode(text))
    assert arguments[:2] == [[], {"waiting": 7, "need": "gpu2"}]


def test_a_full_queue_takes_no_more(app: Celery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "MAX_WAITING", 5)
    with TaskPublisher(app) as sender:
        taken = [sender.publish(number, "gpu2", "interactive") for number in range(20)]
    assert taken == [True] * 5 + [False] * 15
    assert len(waiting(app)) == 5


def test_a_broker_that_is_away_is_an_answer(redis: Redis) -> None:
    app = make_app(redis.url)
    sender = TaskPublisher(app)
    assert sender.publish(1, "gpu2", "interactive")
    redis.stop()
    with pytest.raises(BrokerUnavailableError):
        sender.publish(2, "gpu2", "interactive")
    with pytest.raises(BrokerUnavailableError), TaskPublisher(app) as another:
        another.publish(2, "gpu2", "interactive")
    redis.start()
    with TaskPublisher(app) as another:
        assert another.publish(3, "gpu2", "interactive")


def test_half_a_message_in_the_folder_is_none(tmp_path: Path) -> None:
    """Whoever was killed while writing leaves nothing that a reader stumbles over."""
    app = make_app(f"filesystem://{tmp_path}")
    (tmp_path / "hints" / f".00-half.{QUEUE}.msg").write_text('{"bo')
    with TaskPublisher(app) as sender:
        sender.publish(1, "gpu2", "interactive")
    assert len(waiting(app)) == 1


@pytest.mark.parametrize("url", ["amqp://host", "nonsense", "filesystem://"])
def test_only_brokers_that_we_know(url: str) -> None:
    with pytest.raises(UsageError, match="GRADER_BROKER_URL"):
        make_app(url)
