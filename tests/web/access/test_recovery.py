"""The way in where nothing else lets anybody in: a link that whoever runs the service makes, and that works once."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from itsdangerous import URLSafeTimedSerializer

from grader import cli
from grader.settings import settings
from grader.store.events import audit_of
from grader.store.people import people
from tests.web.conftest import School


@pytest.fixture
def recover(school: School, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Run `grader recover LOGIN` beside the school's database, and return what it made."""
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("GRADER_SECRET_KEY", school.service.secret)
    monkeypatch.setenv("GRADER_PUBLIC_URL", "https://grader.example")
    settings.cache_clear()
    yield lambda login: cli.main(["recover", login, "--json"])
    settings.cache_clear()


def test_a_link_opens_one_account_once(
    school: School, recover: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(recover)
    assert recover("ADA") == 0
    url = json.loads(capsys.readouterr().out)["url"]
    assert url.startswith("https://grader.example/recover?key=")
    key = parse_qs(urlsplit(url).query)["key"][0]
    browser, place = school.client(), f"/recover?key={key}"
    for _ in range(2):
        assert "Ada" in browser.get(place).text, "looking uses nothing up"
    form = browser.form(place)
    assert browser.post("/recover", data=form).headers["location"] == "/account"
    assert browser.get("/api/v1/me").json()["login"] == "ada"
    other = school.client()
    assert other.get(place).status_code == 403
    assert other.post("/recover", data={**other.form("/sign-in"), "key": key}).status_code == 403
    assert "recovery_link_made" in [e.kind for e in audit_of(school.store, f"person:{school.people['ada']}")]


def test_a_link_ends_with_the_sessions_of_its_account(
    school: School, recover: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(recover)
    recover("ines")
    url = json.loads(capsys.readouterr().out)["url"]
    people.set_enabled(school.store, school.people["ines"], False, actor_id=None)
    place = url.removeprefix("https://grader.example")
    assert school.client().get(place).status_code == 403
    assert recover("ines") == 2
    assert "closed" in capsys.readouterr().err


@pytest.mark.parametrize("login", ["nobody", "robot"])
def test_there_are_none_for_nobody_and_for_programs(
    recover: object, capsys: pytest.CaptureFixture[str], login: str
) -> None:
    assert callable(recover)
    assert recover(login) == 2
    assert "no account of a person" in capsys.readouterr().err


def test_no_other_signed_word_of_ours_is_a_key(school: School) -> None:
    browser = school.client("anna")
    epoch = people.account(school.store, school.people["ada"])
    assert epoch is not None
    forged = URLSafeTimedSerializer("x" * 40, salt="grader.recovery").dumps(
        [epoch.id, epoch.session_epoch, "n"]
    )
    for key in ("", "x", forged, browser.cookies["session"]):
        assert browser.get("/recover", params={"key": key}).status_code == 403
