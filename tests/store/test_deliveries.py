"""Deliveries: queued once with what happened, taken by one at a time, tried again, and never lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import update

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery import deliveries
from grader.store.delivery.deliveries import Delivery, enqueue, take
from grader.store.delivery.joined_deliveries import join_waiting, release
from grader.store.tables import DeliveryRow
from grader.store.tables.delivery import DeliveryState
from tests.store.campus import Campus

PAST = -1.0
"""A lease of so many seconds has ended already."""


def say(
    store: Store, receiver: str = "a", *, key: str, channel: str = "mail", topic: str = "", **options: Any
) -> bool:
    with store.write() as connection:
        return enqueue(connection, channel, receiver, {"text": key, "topic": topic}, key=key, **options)


def one(store: Store, channel: str = "mail", **options: Any) -> Delivery:
    (taken,) = take(store, channel, **options)
    return taken


def test_the_same_thing_said_twice_is_sent_once(store: Store) -> None:
    assert say(store, key="judged:1")
    assert not say(store, key="judged:1")
    first = one(store)
    assert (first.receiver, first.payload["text"], first.tries) == ("a", "judged:1", 1)
    assert take(store, "mail") == ()
    assert deliveries.delivered(store, first)
    assert not say(store, key="judged:1"), "nor after it was delivered"
    assert take(store, "mail") == ()


def test_what_did_not_happen_is_not_told(store: Store) -> None:
    def undone() -> None:
        with store.write() as connection:
            enqueue(connection, "mail", "a", {}, key="never")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert take(store, "mail") == ()


def test_what_was_taken_and_never_heard_of_again_is_taken_anew(store: Store) -> None:
    say(store, key="k")
    lost = one(store, lease_s=PAST)
    again = one(store)
    assert (again.id, again.tries) == (lost.id, 2)
    assert not deliveries.failed(store, lost, "late", retry_in_s=None), "its lease has ended"
    assert not deliveries.delivered(store, lost)
    assert deliveries.delivered(store, again)


def test_a_failed_one_is_tried_again_when_it_is_time(store: Store) -> None:
    say(store, key="k")
    assert deliveries.failed(store, one(store), "451 try later", retry_in_s=3600.0)
    assert take(store, "mail") == ()
    with store.write() as connection:
        connection.execute(update(DeliveryRow).values(due_at=database_now(-1.0)))
    second = one(store)
    assert second.tries == 2
    assert deliveries.failed(store, second, "550 no such user", retry_in_s=None)
    assert take(store, "mail") == ()


def test_not_before_its_time(store: Store) -> None:
    say(store, key="later", not_before_s=3600.0)
    assert take(store, "mail") == ()
    say(store, key="now")
    now = one(store)
    assert now.payload["text"] == "now"
    assert deliveries.postpone(store, now, "hidden until it is due", for_s=3600.0)
    assert take(store, "mail") == ()


def test_of_one_receiver_one_is_under_way_and_the_oldest_first(store: Store) -> None:
    for key, receiver in (("1", "a"), ("2", "a"), ("3", "b"), ("4", "a")):
        say(store, receiver, key=key)
    first, other = take(store, "mail", limit=10)
    assert [first.payload["text"], other.payload["text"]] == ["1", "3"]
    assert take(store, "mail", limit=10) == ()
    deliveries.failed(store, first, "no", retry_in_s=3600.0)
    assert one(store).payload["text"] == "2", "one that has to wait holds up no other"


def test_channels_do_not_wait_for_each_other(store: Store) -> None:
    say(store, key="1")
    say(store, key="2", channel="webhook")
    assert one(store, "webhook").payload["text"] == "2"
    assert one(store, "mail").payload["text"] == "1"


def test_what_waits_on_one_topic_is_told_together_and_ends_together(store: Store) -> None:
    for key in "1234":
        say(store, key=key, topic="comment" if key != "3" else "held")
    say(store, "b", key="5", topic="comment")
    first = one(store)
    joined = join_waiting(store, first)
    assert [each.payload["text"] for each in joined] == ["1", "2", "4"]
    deliveries.failed(store, first, "451", retry_in_s=PAST)
    say(store, key="6", topic="comment")
    again = one(store)
    assert again.id == first.id
    assert [each.payload["text"] for each in join_waiting(store, again)] == ["1", "2", "4", "6"]
    deliveries.delivered(store, again)
    assert sorted(each.payload["text"] for each in take(store, "mail", limit=10)) == ["3", "5"]


def test_what_joined_and_is_to_be_told_later_goes_its_own_way(store: Store) -> None:
    for key in "123":
        say(store, key=key, topic="comment")
    first = one(store)
    second = join_waiting(store, first)[1]
    release(store, first, [second.id, first.id], for_s=PAST)
    deliveries.delivered(store, first)
    again = one(store)
    assert again.id == second.id
    assert [each.payload["text"] for each in join_waiting(store, again)] == ["2"]


def test_two_relays_at_once_deliver_each_once(store: Store) -> None:
    for number in range(24):
        say(store, f"r{number % 6}", key=str(number))

    def relay(_: int) -> list[int]:
        done = []
        while taken := take(store, "mail", limit=2):
            for delivery in taken:
                assert deliveries.delivered(store, delivery)
                done.append(delivery.id)
        return done

    with ThreadPoolExecutor(4) as pool:
        found = [each for done in pool.map(relay, range(4)) for each in done]
    found += relay(0)
    assert len(found) == len(set(found)) == 24


def test_staff_sees_what_happened_and_tries_again(campus: Campus) -> None:
    store = campus.store
    say(store, "hook:1", key="1", channel="webhook", course_id=campus.course, topic="attempt.judged")
    say(store, "hook:1", key="2", channel="webhook", topic="attempt.judged")
    deliveries.failed(store, one(store, "webhook"), "404 Not Found", retry_in_s=None)
    (logged,) = deliveries.deliveries_of(store, campus.course, "webhook")
    assert (logged.state, logged.answer, logged.tries) == (DeliveryState.GIVEN_UP, "404 Not Found", 1)
    assert not deliveries.retry(store, logged.id, course_id=campus.course + 1), "another course's"
    assert deliveries.retry(store, logged.id, course_id=campus.course)
    again = one(store, "webhook")
    assert again.id == logged.id
    assert not deliveries.retry(store, logged.id, course_id=campus.course), "it is under way"
    assert again.waited_s < 60, "it is tried with all the patience of a new one"
    deliveries.delivered(store, again, "200 OK")
    assert not deliveries.retry(store, logged.id, course_id=campus.course), "it has arrived"


def test_what_ended_is_forgotten_in_time(store: Store) -> None:
    for key in "12":
        say(store, key=key)
    deliveries.delivered(store, one(store))
    assert deliveries.forget_ended(store) == 0
    assert deliveries.forget_ended(store, kept_s=-1.0) == 1
    assert one(store).payload["text"] == "2"
