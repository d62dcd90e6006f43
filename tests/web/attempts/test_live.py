"""Watching an attempt: every event once and in order, to its end, for many at the price of one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from grader.store import events
from grader.store.attempts import attempt_endings, submissions
from grader.store.queue import claims
from grader.store.queue.claims import Claimed
from grader.store.tables.attempt import AttemptState
from grader.web.live.attempt_progress import attempt_progress
from grader.web.live.event_hub import MOST_OF_ONE, AttemptEnded, EventHub, KeepAlive, TooManyWatchersError
from grader.web.live.public_events import public_event
from tests.store.campus import verdict_of
from tests.web.conftest import School, Served

Told = list[tuple[str, dict[str, Any]]]
LOGS = [("log", {"rank": 0, "stream": "stdout", "text": f"line {number}\n"}) for number in range(20)]


def claimed(school: School, attempt_id: int) -> Claimed:
    found = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(found, Claimed)
    assert found.attempt_id == attempt_id
    return found


def messages(stream: str) -> list[dict[str, Any]]:
    """The messages of an event stream: kind, data, id."""
    found = []
    for block in stream.split("\n\n"):
        lines = dict(
            line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":")
        )
        if "event" in lines:
            found.append({"kind": lines["event"], "data": json.loads(lines["data"]), "id": lines.get("id")})
    return found


def judged(school: School) -> int:
    """An attempt that ran and ended, with all kinds of signs on the way."""
    attempt = school.hand_in("anna")
    lease = claimed(school, attempt)
    told_live: Told = [
        ("phase", {"phase": "run", "elapsed_s": 1.0}),
        *LOGS,
        ("secret", {"hidden": "labels"}),
    ]
    events.add_live_events(school.store, attempt, lease.lease_token, told_live)
    attempt_endings.finish(school.store, attempt, lease.lease_token, verdict_of())
    return attempt


def test_who_comes_late_gets_everything_and_then_the_end(school: School) -> None:
    attempt = judged(school)
    answer = school.client("anna").get(f"/attempts/{attempt}/live")
    assert answer.headers["content-type"].startswith("text/event-stream")
    seen = messages(answer.text)
    kinds = [one["kind"] for one in seen]
    assert kinds[:3] == ["queued", "claimed", "phase"]
    assert kinds[-2:] == ["judged", "end"]
    assert [one["data"]["text"] for one in seen if one["kind"] == "log"] == [f"line {n}\n" for n in range(20)]
    assert "labels" not in answer.text, "kinds that nobody named are not passed on"
    assert "w1" not in answer.text, "which machine it was is not a learner's business"


@pytest.mark.parametrize("how", ["header", "address"])
def test_who_comes_back_gets_what_followed(school: School, how: str) -> None:
    attempt = judged(school)
    browser, address = school.client("anna"), f"/attempts/{attempt}/live"
    whole = [one for one in messages(browser.get(address).text) if one["id"]]
    for index in (0, 7, len(whole) - 1):
        last = whole[index]
        if how == "header":
            rest = browser.get(f"{address}?after=1", headers={"Last-Event-ID": last["id"]}).text
        else:
            rest = browser.get(f"{address}?after={last['id']}").text
        assert [one for one in messages(rest) if one["id"]] == whole[index + 1 :]


@pytest.mark.parametrize("header", ["x", "-1", "9" * 40, "1; drop"])
def test_a_number_that_is_none_is_no_fault_of_ours(school: School, header: str) -> None:
    attempt = judged(school)
    answer = school.client("anna").get(f"/attempts/{attempt}/live", headers={"Last-Event-ID": header})
    assert messages(answer.text)[-1]["kind"] == "end"


def test_others_attempts_cannot_be_watched(school: School) -> None:
    attempt = judged(school)
    for login, status in (("ben", 404), ("otto", 404), ("ines", 200), ("ada", 200)):
        assert school.client(login).get(f"/attempts/{attempt}/live").status_code == status
    assert school.client().get(f"/attempts/{attempt}/live").status_code == 303


def test_events_arrive_while_they_happen(served: Served) -> None:
    school = served.school
    attempt = school.hand_in("anna")
    lease = claimed(school, attempt)
    cookies = dict(school.client("anna").cookies)
    came: list[str] = []
    first = threading.Event()

    def watch() -> None:
        with (
            served.client(cookies=cookies, timeout=60) as client,
            client.stream("GET", f"/attempts/{attempt}/live") as s,
        ):
            for line in s.iter_lines():
                came.append(line)
                if "line 0" in line:
                    first.set()

    watching = threading.Thread(target=watch)
    watching.start()
    events.add_live_events(school.store, attempt, lease.lease_token, LOGS[:1])
    assert first.wait(30), came
    events.add_live_events(school.store, attempt, lease.lease_token, LOGS[1:])
    attempt_endings.finish(school.store, attempt, lease.lease_token, verdict_of())
    watching.join(30)
    kinds = [one["kind"] for one in messages("\n".join(came))]
    assert kinds.count("log") == len(LOGS)
    assert kinds[-1] == "end"


def test_many_watchers_cost_one_look_a_second(school: School) -> None:
    attempts = [school.hand_in("anna") for _ in range(4)]
    hub = EventHub(school.store)

    async def watch(attempt: int, person: int) -> list[int]:
        return [
            one.seq async for one in hub.follow(attempt, 0, person) if isinstance(one, events.StoredEvent)
        ]

    async def everybody() -> tuple[list[list[int]], float]:
        began = time.monotonic()
        watchers = [asyncio.create_task(watch(attempt, n)) for n in range(25) for attempt in attempts]
        for attempt in attempts:
            lease = await asyncio.to_thread(claimed, school, attempt)
            await asyncio.to_thread(events.add_live_events, school.store, attempt, lease.lease_token, LOGS)
            await asyncio.to_thread(
                attempt_endings.finish, school.store, attempt, lease.lease_token, verdict_of()
            )
        return await asyncio.gather(*watchers), time.monotonic() - began

    seen, took_s = asyncio.run(everybody())
    assert len(seen) == 100
    assert all(numbers == list(range(1, len(LOGS) + 4)) for numbers in seen)
    assert hub.num_queries <= took_s + 2
    assert hub.num_watchers == 0


def test_one_person_cannot_take_all_places(school: School) -> None:
    attempt = school.hand_in("anna")
    hub = EventHub(school.store)

    async def crowd() -> None:
        async def first(stream: AsyncIterator[object]) -> object:
            return await anext(stream)

        streams = [hub.follow(attempt, 0, 1) for _ in range(MOST_OF_ONE)]
        for stream in streams:
            await first(stream)
        with pytest.raises(TooManyWatchersError):
            hub.admit(1)
        hub.admit(2)
        for stream in streams:
            await stream.aclose()
        hub.admit(1)
        assert hub.num_watchers == 0

    asyncio.run(crowd())


def test_a_store_that_is_away_makes_watchers_wait_and_not_lose(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = judged(school)
    hub = EventHub(school.store)
    path = school.store.url.database
    assert path is not None

    async def watch() -> list[object]:
        # A real fault: the table is gone for a moment, as it is while a backup is put back.
        return [one async for one in hub.follow(attempt, 0, 1) if not isinstance(one, KeepAlive)]

    monkeypatch.setattr("grader.web.live.event_hub.PERIOD_S", 0.05)

    async def both() -> list[object]:
        with school.store.write() as connection:
            connection.exec_driver_sql("ALTER TABLE events RENAME TO events_away")
        watching = asyncio.create_task(watch())
        while hub.num_queries < 2:
            await asyncio.sleep(0.01)
        with school.store.write() as connection:
            connection.exec_driver_sql("ALTER TABLE events_away RENAME TO events")
        return await asyncio.wait_for(watching, 30)

    seen = asyncio.run(both())
    assert seen[-1] == AttemptEnded(AttemptState.JUDGED)
    assert len(seen) == len(LOGS) + 6


def test_the_picture_is_that_of_the_last_try(school: School) -> None:
    attempt = school.hand_in("anna")
    lease = claimed(school, attempt)
    told_first: Told = [
        ("phase", {"phase": "run"}),
        ("epoch", {"epoch": 3, "of": 6, "loss": 0.5}),
        *LOGS,
    ]
    events.add_live_events(school.store, attempt, lease.lease_token, told_first)
    running = attempt_progress(events.events_of(school.store, attempt))
    assert [step.state for step in running.steps] == ["done", "done", "now", "ahead", "ahead"]
    assert (running.epoch and running.epoch.number, len(running.logs[0].pieces)) == (3, len(LOGS))
    attempt_endings.fail(
        school.store, attempt, lease.lease_token, "the disk is full: /var/secret", backoff_s=0
    )
    waiting = attempt_progress(events.events_of(school.store, attempt))
    assert [step.state for step in waiting.steps] == ["now", "ahead", "ahead", "ahead", "ahead"]
    assert (waiting.epoch, waiting.logs) == (None, ())
    page = school.client("anna").get(f"/attempts/{attempt}").text
    assert "secret" not in page
    claimed(school, attempt)
    assert "Try 2" in school.client("anna").get(f"/attempts/{attempt}").text


def test_logs_are_shown_by_their_end_and_act_on_nothing(school: School) -> None:
    attempt = school.hand_in("anna")
    lease = claimed(school, attempt)
    hostile = "\x1b[2J</pre><script>alert(1)</script>\u202egnp\n\ndata: x\nevent: end\n\n"
    flood = ("log", {"rank": 1, "stream": "stderr", "text": "x" * 200_000})
    told_live: Told = [
        ("log", {"rank": 0, "stream": "stdout", "text": hostile}),
        flood,
        ("log", {"rank": "0", "text": 7}),
    ]
    events.add_live_events(school.store, attempt, lease.lease_token, told_live)
    attempt_endings.cancel(school.store, attempt, actor_id=school.people["anna"])
    browser = school.client("anna")
    page = browser.get(f"/attempts/{attempt}").text
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert page.count("x" * 1000) <= 17
    assert "is being ended" in page
    attempt_endings.give_up(school.store, attempt, lease.lease_token)
    seen = messages(browser.get(f"/attempts/{attempt}/live").text)
    assert [one["kind"] for one in seen if one["kind"] == "end"] == ["end"]
    (log,) = [one for one in seen if one["kind"] == "log" and one["data"]["rank"] == 0]
    assert "event: end" in log["data"]["text"]
    assert "\x1b" not in log["data"]["text"]


def test_every_kind_that_the_store_writes_is_known_or_kept_back(school: School) -> None:
    attempt = judged(school)
    for event in events.events_of(school.store, attempt):
        shown = public_event(event)
        if shown is not None:
            assert not {"actor_id", "worker", "verdict", "points", "reason"} & shown[1].keys()
    assert submissions.source_of(school.store, attempt) is not None


def test_cancelling_ends_what_waits_at_once(school: School) -> None:
    attempt = school.hand_in("anna")
    assert school.client("ben").post(f"/attempts/{attempt}/cancel").status_code == 404
    assert school.client("anna").post(f"/attempts/{attempt}/cancel").status_code == 303
    page = school.client("anna").get(f"/attempts/{attempt}").text
    assert "does not count" in page
    assert isinstance(claims.claim(school.store, "w1", ("cpu",)), claims.Idle)
