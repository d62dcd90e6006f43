"""Who came by a provider gets exactly as far as with a password: every route is held against its door."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader.store.people import identities
from grader.store.people.identities import VouchedIdentity
from grader.web.security.access import AccessRule
from grader.web.sign_on.provider import Provider, SignOnSettings
from tests.web.access.test_access_matrix import (
    Campus,
    _ask,
    _assert_refused,
    _assert_tells_nothing,
    _everything,
    campus,
)
from tests.web.access.test_sign_on import come, provider, served_provider, set_person, who
from tests.web.access_promises import is_open
from tests.web.conftest import School
from tests.web.sign_on_provider import CLIENT, SECRET, FakeProvider

__all__ = ["campus", "provider", "served_provider"]


@pytest.fixture
def signed_on(campus: Campus, provider: FakeProvider) -> Iterator[School]:
    """The campus, where passwords open nothing."""
    ours = Provider("uni", "University account", provider.issuer, CLIENT, SECRET)
    before = campus.school.service
    service = replace(before, sign_on=SignOnSettings((ours,), local_passwords=False))
    campus.school.app.state.service = service
    yield replace(campus.school, service=service)
    campus.school.app.state.service = before


@pytest.mark.parametrize("login", ["anna", "otto"])
def test_nobody_gets_further_by_signing_on(
    campus: Campus,
    signed_on: School,
    provider: FakeProvider,
    login: str,
) -> None:
    set_person(signed_on, login, password_hash=None)
    identity = VouchedIdentity(provider.issuer, f"s-{login}", login, login)
    identities.link(signed_on.store, signed_on.people[login], identity)
    provider.person = {"sub": f"s-{login}", "name": login}
    browser = signed_on.client()
    assert come(browser, provider).status_code == 303
    assert who(browser) == login
    browser.service = signed_on.service
    browser.headers["X-CSRF-Token"] = browser.csrf()
    before = _everything(signed_on)
    for way in campus.ways:
        # That somebody took along all that is kept of them is noted.
        if way.access_rule is AccessRule.PUBLIC or way.path == "/account/data.zip":
            continue
        if not is_open(way, login):
            answer = _ask(browser, way, campus.own)
            _assert_refused(answer, way, login)
            _assert_tells_nothing(answer, way, login)
        elif way.path == "/password":
            assert _ask(browser, way, campus.own).status_code == 403
        elif not way.changes and set(way.parameters) <= {"course_id", "course_task_id", "attempt_id"}:
            assert _ask(browser, way, campus.own).status_code in (200, 303), way.path
    assert _everything(signed_on) == before
