"""People who come to the school by a launch of the test platform, in browsers of their own, as browsers do it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from httpx2 import Response
from sqlalchemy import func, select

from grader.delivery.channel import DeliveryContext, find_channels
from grader.delivery.runner import DeliveryRunner
from grader.lti import platform_http
from grader.lti.platform_keys import forget_keys
from grader.settings.schema import Settings
from grader.store.clock import database_now
from grader.store.lti import lti_platforms
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.tables import DeliveryRow
from grader.store.tables.delivery import DeliveryState
from tests.web.conftest import Browser, School
from tests.web.learning_platform import TestPlatform, address, query, rsa_key, running_platform

Claims = Callable[[str], dict[str, Any]]


def add_platform(school: School, platform: TestPlatform, **more: Any) -> int:
    return lti_platforms.add_platform(
        school.store, PlatformTerms(**platform.terms(**more)), actor_id=school.people["ada"]
    )


def begin(browser: Browser, platform: TestPlatform, **more: str) -> dict[str, str]:
    """Begin a launch, and return what the platform is asked for."""
    answer = browser.get(address("/lti/login", **platform.login(**more)))
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(f"{platform.url}/auth?")
    return query(answer.headers["location"])


def launch(
    browser: Browser,
    platform: TestPlatform,
    claims: Claims,
    *,
    sign: Callable[[dict[str, Any]], str] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """A whole launch; the answer to the platform's form."""
    asked = begin(browser, platform)
    token = (sign or platform.sign)(claims(asked["nonce"]))
    return browser.post("/lti/launch", data={"state": asked["state"], "id_token": token}, headers=headers)


def arrive(browser: Browser, first: Response) -> Response:
    """Follow our own redirects, as a browser does."""
    answer = first
    while answer.status_code == 303:
        answer = browser.get(answer.headers["location"])
    return answer


def come(
    school: School, platform: TestPlatform, subject: str = "u1", role: str = "Learner", /, **more: Any
) -> tuple[Browser, Response]:
    """Somebody follows a link of the platform, and this is where they end."""
    browser = school.client()
    answer = launch(browser, platform, lambda nonce: platform.claims(nonce, subject, role, **more))
    return browser, arrive(browser, answer)


def fields(page: Response | str) -> dict[str, str]:
    """The hidden fields of a page's forms."""
    text = page if isinstance(page, str) else page.text
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', text))


def connect_as_ines(school: School, platform: TestPlatform) -> Browser:
    """Ines, who has an account and teaches the course, opens a link for the first time and connects it."""
    browser = school.client("ines")
    browser.headers.pop("X-CSRF-Token")
    page = arrive(
        browser, launch(browser, platform, lambda nonce: platform.claims(nonce, "t1", "Instructor"))
    )
    page = arrive(browser, browser.post("/lti/continue/account", data=fields(page) | {"account": "mine"}))
    assert "Which course is" in page.text, page.text
    form = {"csrf": fields(page)["csrf"], "course": str(school.course)}
    page = arrive(browser, browser.post("/lti/continue/course", data=form))
    assert page.status_code == 200
    return browser


def deliver(school: School) -> None:
    """Let the real runner bring out whatever is due, until nothing is."""
    settings = Settings(state_dir=school.service.state_dir)
    over = threading.Event()
    runner = DeliveryRunner(
        [one for one in find_channels() if one.name.startswith("lti_")],
        lambda: DeliveryContext(school.store, settings, school.service.secret),
        poll_s=0.01,
    )
    runner.start(over)
    deadline = time.monotonic() + 30
    while num_due(school):
        assert time.monotonic() < deadline, "deliveries do not end"
        time.sleep(0.01)
    over.set()
    runner.join(10)


def num_due(school: School) -> int:
    with school.store.read() as connection:
        return connection.execute(
            select(func.count()).where(
                DeliveryRow.state == DeliveryState.WAITING,
                DeliveryRow.due_at <= database_now(),
                DeliveryRow.channel.in_(["lti_grade", "lti_roster"]),
            )
        ).scalar_one()


@contextmanager
def platform_of(school: School) -> Iterator[TestPlatform]:
    """A platform that knows the school's keys; they were made once for all tests."""
    forget_keys()
    (school.service.state_dir / "lti_key.pem").write_bytes(rsa_key("school").as_pem(private=True))
    with running_platform(school.service.tool_keys.public) as made:
        yield made
    close_connections()


def close_connections() -> None:
    """End what is kept open to platforms, which are gone."""
    platform_http._client().close()
    platform_http._client.cache_clear()
