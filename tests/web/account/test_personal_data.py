"""What somebody may take away of what is kept about them: all of it, nothing of anybody else, nothing too early."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

from grader.model.grade import Verdict
from grader.store.courses import courses, extensions
from grader.store.courses.courses import TaskTerms
from grader.store.courses.extensions import Extension
from grader.store.grading import reviews
from grader.store.lti.lti_contexts import note_member
from grader.store.people.personal_records import TOLD_ELSEWHERE, personal_tables
from grader.store.tables import Base
from tests.store.campus import verdict_of
from tests.store.platforms import connected
from tests.web.conftest import School
from tests.web.grades import graded

BY_THEM = {"announcements", "comments", "events", "gates", "overrides", "roster_imports"}
"""Tables that name people only as those who did something to somebody else's: theirs as well."""
REPORT = b'<!doctype html><title>report</title><div class="page">the report</div></body>'


def data(school: School, login: str) -> zipfile.ZipFile:
    answer = school.client(login).get("/account/data.zip")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="{login}-data.zip"'
    found = zipfile.ZipFile(io.BytesIO(answer.content))
    assert found.testzip() is None
    return found


def whole(found: zipfile.ZipFile) -> str:
    return "\n".join([*found.namelist(), *(found.read(name).decode() for name in found.namelist())])


def test_records_attempts_scripts_comments_and_reports_are_in_it(school: School) -> None:
    number = school.judge(
        "anna",
        "print('mine')\n",
        graded(Verdict.REJECTED),
        files={
            "report.html": REPORT,
            "report-staff.html": b"only-staff-may-read-this",
            "grade-learner.json": b'{"schema": 4}',
            "evidence.tar.gz": b"only-staff-may-read-this",
        },
    )
    reviews.comment(school.store, number, "Look at the sampler.", author_id=school.people["ines"])
    due = datetime.now(UTC) + timedelta(days=3)
    extensions.extend(
        school.store,
        school.task,
        Extension(due, reason="ill"),
        person_ids=[school.people["anna"]],
        actor_id=school.people["ines"],
    )
    school.token("anna")
    found = data(school, "anna")
    at = "attempts/ddp/ddp-toy-cpu/attempt-01"
    assert found.read(f"{at}/script/train.py") == b"print('mine')\n"
    assert b"the report" in found.read(f"{at}/report.html")
    assert f"{at}/grade-learner.json" in found.namelist()
    (said,) = json.loads(found.read(f"{at}/reviews.json"))["comments"]
    assert (said["author"], said["text"]) == ("Ines", "Look at the sampler.")
    assert json.loads(found.read(f"{at}/attempt.json"))["verdict"] == "rejected"
    assert json.loads(found.read("records/people.json"))[0]["login"] == "anna"
    assert json.loads(found.read("records/extensions.json"))[0]["reason"] == "ill"
    assert len(json.loads(found.read("records/enrolments.json"))) == 1
    text = whole(found)
    assert "argon2" not in text, "no hash of a password"
    assert "only-staff-may-read-this" not in text
    assert json.loads(found.read("events.json"))[-1]["kind"] == "data_downloaded"


def test_nothing_of_anybody_else_is_in_it(school: School) -> None:
    school.judge("ben", "print('of ben alone')\n", graded())
    bens = school.judge("ben")
    reviews.comment(school.store, bens, "About Ben.", author_id=school.people["ines"])
    school.judge("anna", "print('mine')\n")
    for login in ("anna", "ines"):
        text = whole(data(school, login)).casefold()
        for word in ("ben", "olga", "otto"):
            assert word not in text.replace("been", ""), (login, word)


def test_how_an_attempt_went_is_not_in_it_before_it_may_be_seen(school: School) -> None:
    first = courses.tasks_of(school.store, school.course)[0]
    due = datetime.now(UTC) + timedelta(days=1)
    terms = TaskTerms(first.terms.title, first.terms.version, due_at=due, hidden_until_due=True)
    courses.set_task(school.store, school.course, first.task, first.profile, terms)
    # A platform is to be told of it, too, once it may be known.
    platform = connected(school.store, school.course, school.people["ines"])
    with school.store.write() as connection:
        note_member(connection, platform, school.people["anna"], "u1")
    number = school.judge(
        "anna", grade=verdict_of(Verdict.REJECTED, 12.25, ("DATA001",)), files={"report.html": REPORT}
    )
    reviews.comment(school.store, number, "Too early to read.", author_id=school.people["ines"])
    text = whole(data(school, "anna"))
    for early in ("12.25", "DATA001", "report.html", "Too early", '"rejected"'):
        assert early not in text
    assert "attempt-01/script/train.py" in text


def test_it_is_for_whoever_is_signed_in_alone(school: School) -> None:
    assert school.client().get("/account/data.zip").status_code == 303
    assert "/account/data.zip" in school.client("anna").get("/account").text


def test_every_table_that_names_people_is_in_it_or_left_out_on_purpose() -> None:
    """A new table about people fails here until somebody has thought of what its rows tell whom."""
    naming = {
        table.name
        for table in Base.metadata.sorted_tables
        if any(key.column.table.name == "people" for key in table.foreign_keys)
    }
    assert naming <= {table.name for table in personal_tables()} | TOLD_ELSEWHERE | BY_THEM
