"""Webhooks against a real receiver: signed, told once, tried again, and never to where staff may not look."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from grader.delivery.channel import DeliveryContext, find_channels
from grader.delivery.runner import ChannelWorker
from grader.delivery.webhooks import public_network
from grader.delivery.webhooks.public_network import is_public
from grader.delivery.webhooks.signature import webhook_secret
from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.settings.schema import Settings
from grader.store.attempts import attempts
from grader.store.clock import database_now
from grader.store.courses import extensions
from grader.store.courses.extensions import Extension
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.database import Store
from grader.store.delivery import deliveries, webhooks
from grader.store.delivery.deliveries import LoggedDelivery
from grader.store.delivery.webhook_events import queue_test
from grader.store.delivery.webhooks import CHOSEN, Webhook, add_webhook, receiver_url
from grader.store.grading import regrades, reviews
from grader.store.people import people
from grader.store.tables import DeliveryRow, WebhookRow
from grader.store.tables.delivery import DeliveryState
from grader.store.tables.webhook import WebhookEvent
from tests.delivery.conftest import SECRET, SITE
from tests.delivery.receiver import Receiver, receiving
from tests.store.campus import Campus, verdict_of


@dataclass
class HookSite:
    campus: Campus
    receiver: Receiver
    context: DeliveryContext
    hook: Webhook

    @property
    def store(self) -> Store:
        return self.campus.store

    def deliver(self) -> None:
        found = next(one for one in find_channels() if one.name == "webhook")
        worker = ChannelWorker(found, self.context, 0.01, first=True)
        while worker.turn() == 0.0:
            pass

    def again(self) -> None:
        """It is time for all that wait."""
        with self.store.write() as connection:
            connection.execute(update(DeliveryRow).values(due_at=database_now(-1.0)))
        self.deliver()

    def told(self) -> list[dict[str, object]]:
        return [json.loads(body) for _, _, body in self.receiver.got]

    def log(self) -> list[LoggedDelivery]:
        return list(reversed(deliveries.deliveries_of(self.store, self.campus.course, "webhook")))


@pytest.fixture
def site(tmp_path: Path, empty_database: Path) -> Iterator[HookSite]:
    store = Store(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'grader.db')}")
    campus = Campus(store)
    settings = Settings(public_url=SITE, state_dir=tmp_path, webhook_private=True)
    with receiving() as receiver:
        hook = add_webhook(store, campus.course, receiver.url, CHOSEN, actor_id=campus.ines)
        yield HookSite(campus, receiver, DeliveryContext(store, settings, SECRET), hook)
    store.close()


def test_a_verdict_and_what_it_makes_of_the_grade_are_told(site: HookSite) -> None:
    campus = site.campus
    attempt = campus.judge(campus.anna, grade=verdict_of(points=92.0))
    site.deliver()
    judged, grade = sorted(site.told(), key=lambda one: str(one["type"]))
    assert (judged["type"], grade["type"]) == ("attempt.judged", "grade.changed")
    assert judged["data"] == {
        "course": {"id": campus.course, "name": "ddp", "title": "Distributed training"},
        "person": {"id": campus.anna, "login": "anna", "name": "Anna", "external_id": None},
        "task": {"id": campus.task, "name": "ddp-toy", "title": "ddp-toy"},
        "attempt": {"id": attempt, "url": f"{SITE}/attempts/{attempt}"},
        "verdict": "accepted",
        "points": 92.0,
        "max_points": 100.0,
    }
    assert site.receiver.got[0][0] == "/hook?course=1"
    campus.judge(campus.anna, grade=verdict_of(points=50.0))
    site.deliver()
    assert [one["type"] for one in site.told()[2:]] == ["attempt.judged"], "a worse one changes no grade"


def test_a_grade_is_told_whenever_it_changes_and_only_then(site: HookSite) -> None:
    campus, store = site.campus, site.store
    attempt = campus.judge(campus.anna, grade=verdict_of(Verdict.REJECTED, 40.0))
    reviews.override(store, attempt, Verdict.ACCEPTED, 80.0, "fine", actor_id=campus.ines)
    reviews.withdraw_override(store, attempt, actor_id=campus.ines)
    extensions.extend(
        store, campus.task, Extension(datetime.now(UTC) + timedelta(days=1)), actor_id=campus.ines
    )
    batch = regrades.queue_new_runs(store, [attempt], actor_id=campus.ines)
    claimed = campus.claim()
    from grader.store.attempts import attempt_endings

    attempt_endings.finish(store, claimed.attempt_id, claimed.lease_token, verdict_of(points=60.0))
    site.deliver()
    before = len(site.told())
    regrades.apply(store, batch, actor_id=campus.ines)
    site.deliver()
    grades = [one["data"] for one in site.told() if one["type"] == "grade.changed"]
    assert [one["points"] for one in grades] == [40.0, 80.0, 40.0, 60.0]  # type: ignore[index]
    assert len(site.told()) == before + 2, "the regrade's verdict, and the grade"


def test_whoever_has_the_secret_can_prove_it(site: HookSite) -> None:
    """As docs/api.md tells it: that very code is run."""
    from tests.delivery.documented import receiver_example

    secret = webhook_secret(SECRET, site.hook)
    queue_test(site.store, site.hook)
    site.deliver()
    ((_, headers, body),) = site.receiver.got
    is_ours = receiver_example()
    assert is_ours(secret, headers, body)
    assert not is_ours(secret, headers, body + b" ")
    assert not is_ours(webhook_secret("t" * 40, site.hook), headers, body)
    assert not is_ours(secret, {**headers, "webhook-id": "evt_0"}, body)
    old = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 3600)}
    assert not is_ours(secret, old, body)


def test_another_secret_holds_at_once_and_none_is_kept(site: HookSite) -> None:
    first = webhook_secret(SECRET, site.hook)
    changed = webhooks.change_secret(site.store, site.campus.course, site.hook.id, actor_id=site.campus.ines)
    assert changed is not None
    second = webhook_secret(SECRET, changed)
    assert first != second
    with site.store.read() as connection:
        rows = str(connection.execute(WebhookRow.__table__.select()).all())
    assert second.removeprefix("whsec_") not in rows


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_receiver_that_fails_is_asked_again_with_the_same_id(site: HookSite, status: int) -> None:
    site.receiver.status = status
    queue_test(site.store, site.hook)
    site.deliver()
    (one,) = site.log()
    assert one.state is DeliveryState.WAITING
    assert (one.answer or "").startswith(f"{status} in ")
    site.receiver.status = 200
    site.again()
    (one,) = site.log()
    assert one.state is DeliveryState.DELIVERED
    first, second = site.receiver.got
    assert first[1]["webhook-id"] == second[1]["webhook-id"]
    assert first[2] == second[2]


def test_it_is_asked_again_when_it_says_so(site: HookSite) -> None:
    site.receiver.status, site.receiver.headers = 429, {"Retry-After": "1800"}
    queue_test(site.store, site.hook)
    site.deliver()
    (one,) = site.log()
    assert one.tried_at is not None
    assert 1790 <= (one.due_at - one.tried_at).total_seconds() <= 1830


def test_redirects_are_not_followed(site: HookSite) -> None:
    site.receiver.status, site.receiver.headers = 302, {"Location": site.receiver.url}
    queue_test(site.store, site.hook)
    site.deliver()
    (one,) = site.log()
    assert one.state is DeliveryState.GIVEN_UP
    assert "it leads elsewhere" in (one.answer or "")
    assert len(site.receiver.got) == 1


@pytest.mark.parametrize("fault", ["mute", "drip"])
def test_one_that_never_ends_its_answer_is_left(
    site: HookSite, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(public_network, "WITHIN_S", 0.5)
    setattr(site.receiver, fault, True)
    queue_test(site.store, site.hook)
    queue_test(site.store, site.hook)
    site.deliver()
    assert len(site.receiver.got) == 1, "and asked nothing else for a while"
    assert [one.state for one in site.log()] == [DeliveryState.WAITING] * 2
    assert "no answer" in (site.log()[0].answer or "")


def test_one_that_is_away_for_long_is_disabled_and_told_again_what_it_missed(site: HookSite) -> None:
    store, course = site.store, site.campus.course
    site.receiver.status = 500
    for _ in range(9):
        queue_test(store, site.hook)
    site.deliver()
    assert webhooks.webhooks_of(store, course)[0].disabled_at is None
    with store.write() as connection:
        connection.execute(
            update(WebhookRow).values(failed_since=database_now(-webhooks.DISABLE_AFTER_S - 1))
        )
    queue_test(store, site.hook)
    site.again()
    (hook,) = webhooks.webhooks_of(store, course)
    assert hook.disabled_at is not None
    assert "500" in (hook.problem or "")
    site.again()
    before = len(site.receiver.got)
    site.campus.judge(site.campus.anna)
    site.again()
    assert len(site.receiver.got) == before, "it is told nothing more"
    site.receiver.status = 200
    webhooks.enable(store, course, hook.id, actor_id=None)
    site.again()
    assert {one.state for one in site.log()} == {DeliveryState.DELIVERED}


def test_where_staff_may_not_look_nothing_is_sent(site: HookSite) -> None:
    site.context.settings = Settings(public_url=SITE)
    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"):
        url = f"https://{host}:{site.receiver.port}/"
        hook = add_webhook(site.store, site.campus.course, url, CHOSEN, actor_id=None)
        queue_test(site.store, hook)
        site.deliver()
        webhooks.remove_webhook(site.store, site.campus.course, hook.id, actor_id=None)
    assert site.receiver.got == []
    assert {one.state for one in site.log()} == {DeliveryState.GIVEN_UP}
    assert all("private network" in (one.answer or "") for one in site.log()), site.log()
    queue_test(site.store, site.hook)
    site.deliver()
    assert "https://" in (site.log()[-1].answer or ""), "nor anything without TLS"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *(
            "224.0.0.1",
            "::1",
            "fe80::1%eth0",
            "fc00::1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ),
    ],
)
def test_addresses_of_private_networks(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_internet() -> None:
    assert all(is_public(one) for one in ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"))


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x", "https://", "https://u:p@x.org", "https://x.org/#a", "https://x.org/ä", "https://x:y/"],
)
def test_what_is_no_receivers_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        receiver_url(url)


def test_of_somebody_who_is_gone_nothing_is_told(site: HookSite) -> None:
    from grader.store.files import open_files
    from grader.store.people.erasure import erase

    site.campus.judge(site.campus.anna)
    erase(site.store, open_files(site.store, "database", Path()), site.campus.anna, actor_id=None)
    site.deliver()
    assert site.receiver.got == []
    assert people.account(site.store, site.campus.anna) is None


def test_only_chosen_events_are_told(site: HookSite) -> None:
    store, course = site.store, site.campus.course
    webhooks.remove_webhook(store, course, site.hook.id, actor_id=None)
    add_webhook(store, course, site.receiver.url, [WebhookEvent.GRADE_CHANGED], actor_id=None)
    site.campus.judge(site.campus.anna)
    site.deliver()
    assert [one["type"] for one in site.told()] == ["grade.changed"]
    with pytest.raises(UsageError, match="at least one"):
        add_webhook(store, course, site.receiver.url, [], actor_id=None)


def test_of_a_task_that_is_graded_anonymously_nobody_is_named(site: HookSite) -> None:
    campus = site.campus
    set_grading_rules(site.store, campus.course, GradingRules(anonymous=True), actor_id=campus.ines)
    attempt = campus.judge(campus.anna)
    site.deliver()
    shown = attempts.attempt(site.store, attempt)
    assert shown is not None
    nobody = {"id": None, "login": shown.person, "name": shown.person, "external_id": None}
    told = [one["data"] for one in site.told()]
    assert told
    assert all(isinstance(one, dict) and one["person"] == nobody for one in told)
    assert "anna" not in json.dumps(told).lower()
