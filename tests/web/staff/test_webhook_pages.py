"""A course's webhooks on its pages: the secret is shown once, the log tells all, and other courses reach none of it."""

from __future__ import annotations

import re

import pytest

from grader.delivery.webhooks.signature import webhook_secret
from grader.store.delivery import deliveries, webhooks
from grader.store.delivery.deliveries import take
from grader.store.delivery.webhooks import Webhook
from tests.web.access.test_confirmations import yes
from tests.web.conftest import School

URL = "https://tools.example.edu/grades?key=1"


def hook_of(school: School) -> Webhook:
    (hook,) = webhooks.webhooks_of(school.store, school.course)
    return hook


@pytest.fixture
def here(school: School) -> str:
    place = f"/courses/{school.course}/webhooks"
    school.client("ines").post(place, data={"url": URL, "grade.changed": "on"})
    return place


def test_the_secret_is_shown_once(school: School) -> None:
    place, ines = f"/courses/{school.course}/webhooks", school.client("ines")
    made = ines.post(place, data={"url": URL, "grade.changed": "on", "attempt.judged": "on"})
    secret = webhook_secret(school.service.secret, hook_of(school))
    assert secret in made.text
    assert secret not in ines.get(place).text
    again = yes(ines, ines.post(f"{place}/{hook_of(school).id}/secret"))
    assert secret not in again.text
    assert webhook_secret(school.service.secret, hook_of(school)) in again.text


def test_what_cannot_be_told_is_shown_again(school: School) -> None:
    place, ines = f"/courses/{school.course}/webhooks", school.client("ines")
    answer = ines.post(place, data={"url": "ftp://x", "grade.changed": "on"})
    assert answer.status_code == 422
    assert "An address looks like https://host/path" in answer.text
    assert 'value="ftp://x"' in answer.text
    assert "Choose at least one" in ines.post(place, data={"url": URL}).text
    assert webhooks.webhooks_of(school.store, school.course) == ()


def test_the_log_says_what_came_of_each_and_tries_again(school: School, here: str) -> None:
    ines, log = school.client("ines"), f"{here}/{hook_of(school).id}"
    ines.post(f"{log}/test")
    page = ines.get(log).text
    assert "on its way" in page
    (taken,) = take(school.store, "webhook")
    deliveries.failed(school.store, taken, "404 in 0.12 s", retry_in_s=None)
    page = ines.get(log).text
    assert "given up" in page
    assert "404 in 0.12 s" in page
    (retry,) = re.findall(r'action="([^"]+/retry)"', page)
    ines.post(retry)
    (taken,) = take(school.store, "webhook")
    deliveries.delivered(school.store, taken, "200 in 0.10 s")
    page = ines.get(log).text
    assert "arrived" in page
    assert "/retry" not in page
    ines.post(retry)
    assert "It has arrived, or is under way." in ines.get(log).text


def test_one_that_failed_for_long_is_told_to_be_off_and_switched_on(school: School, here: str) -> None:
    from sqlalchemy import update

    from grader.store.clock import database_now
    from grader.store.tables import WebhookRow

    ines, hook = school.client("ines"), hook_of(school)
    webhooks.note_answer(school.store, hook.id, "500 in 0.10 s")
    assert "It fails (500 in 0.10 s)" in ines.get(f"{here}/{hook.id}").text
    with school.store.write() as connection:
        connection.execute(
            update(WebhookRow).values(
                num_failures=20, failed_since=database_now(-webhooks.DISABLE_AFTER_S - 1)
            )
        )
    assert webhooks.note_answer(school.store, hook.id, "500 in 0.10 s")
    assert "switched off" in ines.get(here).text
    assert "Webhooks that are switched off: 1" in ines.get(f"/courses/{school.course}").text
    ines.post(f"{here}/{hook.id}/enable")
    assert hook_of(school).disabled_at is None
    assert "switched off" not in ines.get(here).text


def test_removing_one_asks_first(school: School, here: str) -> None:
    ines, place = school.client("ines"), f"{here}/{hook_of(school).id}/remove"
    asked = ines.post(place)
    assert "Remove this webhook?" in asked.text
    yes(ines, asked)
    assert webhooks.webhooks_of(school.store, school.course) == ()


def test_learners_and_other_courses_reach_none_of_it(school: School, here: str) -> None:
    hook = hook_of(school)
    assert school.client("anna").get(here).status_code == 404
    otto, theirs = school.client("otto"), f"/courses/{school.other_course}/webhooks/{hook.id}"
    for action in ("", "/test", "/secret", "/enable", "/remove", "/deliveries/1/retry"):
        ask = otto.get if action == "" else otto.post
        assert ask(theirs + action).status_code == 404, action
    assert hook_of(school) == hook
