"""The runner: it delivers what is queued, tries again what failed, and no channel holds up another."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from grader.delivery.channel import Channel, DeliveryContext, find_channels
from grader.delivery.failures import (
    ChannelAwayError,
    DeliveryEarlyError,
    DeliveryFailedError,
    DeliveryRefusedError,
)
from grader.delivery.runner import GIVE_UP_S, LATEST_S, SOONEST_S, DeliveryRunner, pause_s
from grader.settings.schema import Settings
from grader.store.clock import database_now
from grader.store.courses import courses
from grader.store.database import Store
from grader.store.delivery import deliveries
from grader.store.delivery.deliveries import Delivery, LoggedDelivery
from grader.store.delivery.delivery_channels import channel_facts
from grader.store.tables import DeliveryRow
from grader.store.tables.delivery import DeliveryState

Deliver = Callable[[DeliveryContext, Delivery], str]


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    made = Store(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'grader.db')}")
    courses.add_course(made, "ddp", "Distributed training")
    yield made
    made.close()


def queue(store: Store, key: str, channel: str = "test", receiver: str = "") -> None:
    with store.write() as connection:
        deliveries.enqueue(connection, channel, receiver or key, {}, key=key, course_id=1)


def logged(store: Store, channel: str = "test") -> list[LoggedDelivery]:
    return list(reversed(deliveries.deliveries_of(store, 1, channel)))


def set_up(_settings: Settings) -> str:
    return ""


@contextmanager
def running(store: Store, *channels: Channel) -> Iterator[None]:
    over = threading.Event()
    runner = DeliveryRunner(channels, lambda: DeliveryContext(store, Settings(), "s" * 40), poll_s=0.02)
    runner.start(over)
    try:
        yield
    finally:
        over.set()
        runner.join(20)


def wait_for(done: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_each_answer_has_its_consequence(store: Store) -> None:
    said: dict[str, Exception] = {
        "fails": DeliveryFailedError("503 busy"),
        "refused": DeliveryRefusedError("404 not here"),
        "early": DeliveryEarlyError("not yet", for_s=3600.0),
        "breaks": ZeroDivisionError("secret words"),
    }

    def deliver(_context: DeliveryContext, delivery: Delivery) -> str:
        if delivery.receiver in said:
            raise said[delivery.receiver]
        return "200 fine"

    for key in ("good", *said, "last"):
        queue(store, key)
    with running(store, Channel("test", deliver, set_up)):
        wait_for(lambda: logged(store)[-1].state is DeliveryState.DELIVERED)
    good, fails, refused, early, breaks, _ = logged(store)
    assert (good.state, good.answer) == (DeliveryState.DELIVERED, "200 fine")
    assert (fails.state, fails.answer) == (DeliveryState.WAITING, "503 busy")
    assert fails.tried_at is not None
    assert (fails.due_at - fails.tried_at).total_seconds() > SOONEST_S / 2
    assert (refused.state, refused.answer) == (DeliveryState.GIVEN_UP, "404 not here")
    assert (early.state, early.answer) == (DeliveryState.WAITING, "not yet")
    assert (breaks.state, breaks.answer) == (DeliveryState.WAITING, "ZeroDivisionError in the grader")


def test_what_failed_for_days_is_given_up(store: Store) -> None:
    queue(store, "old")
    with store.write() as connection:
        connection.execute(update(DeliveryRow).values(started_at=database_now(-GIVE_UP_S - 1)))

    def deliver(_context: DeliveryContext, _delivery: Delivery) -> str:
        raise DeliveryFailedError("451 try later")

    with running(store, Channel("test", deliver, set_up)):
        wait_for(lambda: logged(store)[0].state is DeliveryState.GIVEN_UP)
    assert logged(store)[0].answer == "451 try later"


def test_pauses_grow_and_end_after_days() -> None:
    waited, tries = 0.0, 0
    while waited < GIVE_UP_S:
        pause = pause_s(waited)
        assert 0.8 * SOONEST_S <= pause <= 1.2 * LATEST_S
        waited, tries = waited + pause, tries + 1
    assert 15 < tries < 60


def test_a_channel_that_is_away_is_said_to_be_and_loses_nothing(store: Store) -> None:
    away = threading.Event()
    away.set()

    def deliver(_context: DeliveryContext, _delivery: Delivery) -> str:
        if away.is_set():
            raise ChannelAwayError("the server does not answer")
        return "fine"

    queue(store, "1")

    def problem() -> str | None:
        facts = channel_facts(store, "test")
        return facts.problem if facts is not None else None

    with running(store, Channel("test", deliver, set_up)):
        wait_for(lambda: problem() == "the server does not answer")
    assert logged(store)[0].state is DeliveryState.WAITING
    away.clear()
    with store.write() as connection:
        connection.execute(update(DeliveryRow).values(due_at=database_now()))
    with running(store, Channel("test", deliver, set_up)):
        wait_for(lambda: logged(store)[0].state is DeliveryState.DELIVERED)
        wait_for(lambda: problem() is None)


def test_a_channel_that_hangs_holds_up_no_other(store: Store) -> None:
    free = threading.Event()

    def hang(_context: DeliveryContext, _delivery: Delivery) -> str:
        free.wait(60)
        return ""

    def deliver(_context: DeliveryContext, _delivery: Delivery) -> str:
        return ""

    queue(store, "1", "slow")
    queue(store, "2", "quick")
    with running(store, Channel("slow", hang, set_up), Channel("quick", deliver, set_up)):
        wait_for(lambda: logged(store, "quick")[0].state is DeliveryState.DELIVERED)
        assert logged(store, "slow")[0].state is DeliveryState.WAITING
        free.set()
        wait_for(lambda: logged(store, "slow")[0].state is DeliveryState.DELIVERED)


def test_a_channel_without_its_settings_delivers_nothing_and_says_why(store: Store) -> None:
    queue(store, "1")

    def deliver(_context: DeliveryContext, _delivery: Delivery) -> str:
        return "never"

    with running(store, Channel("test", deliver, lambda _settings: "GRADER_SMTP_URL is not set")):
        facts = channel_facts(store, "test")
    assert facts is not None
    assert (facts.set_up, facts.problem) == (False, "GRADER_SMTP_URL is not set")
    assert logged(store)[0].tries == 0


def test_all_channels_have_their_shape() -> None:
    assert all(channel.threads >= 1 for channel in find_channels())
