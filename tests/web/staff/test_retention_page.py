"""What is kept, as staff sets it and as pages say it; the relay is what deletes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from celery import Celery
from sqlalchemy import update

from grader import cli
from grader.model.grade import Verdict
from grader.settings import settings
from grader.store.attempts.retention import RetentionRule, rule_of
from grader.store.clock import database_now
from grader.store.tables import AttemptRow
from grader.worker.relay import Relay
from grader.worker.retention_turn import RetentionTurn
from tests.web.conftest import School
from tests.web.grades import graded

REPORT = b'<!doctype html><style>a{}</style><div class="page"><p>the report</p></div></body>'


def old_attempt(school: School, login: str = "anna") -> int:
    files = {"report.html": REPORT, "grade-learner.json": b"{}", "evidence.tar.gz": b"evidence"}
    number = school.judge(login, grade=graded(Verdict.REJECTED), files=files)
    with school.store.write() as connection:
        connection.execute(
            update(AttemptRow).where(AttemptRow.id == number).values(finished_at=database_now(-100 * 86400.0))
        )
    return number


def test_a_rule_that_deletes_something_at_once_is_asked_first(school: School) -> None:
    old_attempt(school)
    ines, place = school.client("ines"), f"/courses/{school.course}/retention"
    asked = ines.post(place, data={"evidence": "", "scripts": "90"})
    assert asked.status_code == 200
    assert "the scripts of 1 attempt" in asked.text
    assert rule_of(school.store, school.course) == RetentionRule()
    answer = ines.post(place, data={"evidence": "", "scripts": "90", "confirmed": "yes"})
    assert answer.status_code == 303
    assert rule_of(school.store, school.course) == RetentionRule(None, 90)
    text = ines.get(place).text
    assert "Due now" in text
    assert 'value="90"' in text
    assert ines.post(place, data={"evidence": "-3", "scripts": "soon"}).status_code == 422
    assert school.client("otto").get(place).status_code == 404
    assert school.client("anna").get(place).status_code == 404


def test_the_relay_deletes_it_and_pages_say_so(school: School) -> None:
    number = old_attempt(school)
    anna, ines = school.client("anna"), school.client("ines")
    assert "the report" in anna.get(f"/attempts/{number}").text
    chore = RetentionTurn(school.store, school.files, RetentionRule(scripts_days=90))
    relay = Relay(school.store, Celery(broker="memory://"), chores=(chore,))
    relay.turn()
    text = anna.get(f"/attempts/{number}").text
    assert "the report" not in text
    assert "were deleted on" in text
    assert "40 of 100" in re.sub(r"<[^>]+>", "", text)
    assert f"/attempts/{number}/files/grade-learner.json" in text
    assert anna.get(f"/attempts/{number}/source").status_code == 404
    review = ines.get(f"/attempts/{number}/review")
    assert review.status_code == 200
    assert "The scripts were deleted" in review.text
    done = ines.post(f"/attempts/{number}/comment", data={"text": "Seen before it went."})
    assert done.status_code == 303, done.text
    assert ines.get(f"/courses/{school.course}/exports/submissions.zip").status_code == 200


@pytest.fixture
def site(school: School, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Commands work on this school."""
    monkeypatch.setenv("GRADER_DATABASE_URL", school.store.url.render_as_string(hide_password=False))
    settings.cache_clear()
    yield monkeypatch
    settings.cache_clear()


def test_the_command_says_what_is_due_and_deletes_nothing(
    school: School, site: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = old_attempt(school)
    assert cli.main(["db", "retention"]) == 0
    assert "kept for good" in capsys.readouterr().out
    site.setenv("GRADER_EVIDENCE_DAYS", "30")
    settings.cache_clear()
    assert cli.main(["db", "retention", "--json"]) == 0
    (course, _other) = json.loads(capsys.readouterr().out)["courses"]
    assert course["due"] == {"num_evidence": 1, "evidence_bytes": 8, "num_scripts": 0}
    assert cli.main(["db", "retention"]) == 0
    assert "evidence of 1 attempts (8 bytes)" in capsys.readouterr().out
    assert "evidence.tar.gz" in school.client("ines").get(f"/attempts/{number}").text
