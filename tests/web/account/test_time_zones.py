"""Staff writes dates in the course's own time zone, and reads beside each field which one that is."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.store import events
from grader.store.courses import courses
from grader.store.courses.courses import CourseFacts
from grader.store.courses.extensions import extensions_of
from grader.web.staff.form import SubmittedForm, local_field
from tests.web.conftest import School

TERMS = {"title": "A toy", "weight": "1", "late_policy": "closed"}


def settings(school: School, place: str = "") -> str:
    return f"/courses/{school.course}/settings{place}"


def due_at(school: School) -> datetime | None:
    found = courses.course_task(school.store, school.task)
    assert found is not None
    return found.terms.due_at


def in_field(text: str, name: str) -> str:
    (value,) = re.findall(rf'name="{name}" value="([^"]*)"', text)
    return str(value)


def test_dates_are_written_and_shown_in_the_course_s_zone(school: School) -> None:
    ines, task = school.client("ines"), f"/{school.task}"
    text = ines.get(settings(school, task)).text
    assert "Opens, UTC" in text
    assert "Due, UTC" in text
    ines.post(settings(school, task), data={**TERMS, "due_at": "2026-07-01T18:00"})
    assert due_at(school) == datetime(2026, 7, 1, 18, tzinfo=UTC)

    assert ines.post(settings(school, "/time-zone"), data={"time_zone": "Europe/Paris"}).status_code == 303
    assert due_at(school) == datetime(2026, 7, 1, 18, tzinfo=UTC), "no date moves"
    text = ines.get(settings(school, task)).text
    assert "Due, Europe/Paris" in text
    assert in_field(text, "due_at") == "2026-07-01T20:00"
    ines.post(settings(school, task), data={**TERMS, "due_at": "2026-07-01T20:00"})
    assert due_at(school) == datetime(2026, 7, 1, 18, tzinfo=UTC), "sent back as it came"
    ines.post(settings(school, task), data={**TERMS, "due_at": "2026-01-15T18:00"})
    assert due_at(school) == datetime(2026, 1, 15, 17, tzinfo=UTC), "winter has an offset of its own"

    extensions = f"/courses/{school.course}/extensions"
    assert "New due date, Europe/Paris" in ines.get(extensions).text
    anna = school.people["anna"]
    ines.post(extensions, data={"task": school.task, "person": anna, "due_at": "2026-08-01T12:00"})
    (moved,) = extensions_of(school.store, school.course)
    assert moved.given.due_at == datetime(2026, 8, 1, 10, tzinfo=UTC)

    (set_once,) = (
        e for e in events.audit_of(school.store, f"course:{school.course}") if e.kind == "time_zone_set"
    )
    assert (set_once.actor_id, set_once.data) == (school.people["ines"], {"time_zone": "Europe/Paris"})
    ines.post(settings(school, "/time-zone"), data={"time_zone": "UTC"})
    assert "Due, UTC" in ines.get(settings(school, task)).text


def test_what_only_staff_reads_is_in_the_zone_of_the_course(school: School) -> None:
    ines, attempt = school.client("ines"), school.judge()
    ines.post(settings(school, "/time-zone"), data={"time_zone": "Europe/Paris"})
    regrade = ines.post(f"/attempts/{attempt}/regrade").headers["location"]
    for page in (settings(school), f"/attempts/{attempt}/review", regrade):
        assert "Times: Europe/Paris" in ines.get(page).text, page
    assert "Times: Europe/Paris" not in ines.get(f"/attempts/{attempt}").text, "learners read it, too"


def test_an_hour_that_clocks_leave_out_is_a_mistake(school: School) -> None:
    ines = school.client("ines")
    ines.post(settings(school, "/time-zone"), data={"time_zone": "Europe/Paris"})
    answer = ines.post(settings(school, f"/{school.task}"), data={**TERMS, "due_at": "2026-03-29T02:30"})
    assert answer.status_code == 422
    assert "Clocks are put forward" in answer.text
    assert due_at(school) is None


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "europe/paris"])
def test_what_is_no_zone_is_refused(school: School, name: str) -> None:
    ines = school.client("ines")
    answer = ines.post(settings(school, "/time-zone"), data={"time_zone": name})
    assert "Choose one of the time zones" in ines.get(answer.headers["location"]).text
    found = courses.course(school.store, school.course)
    assert found is not None
    assert found.time_zone == "UTC"


def test_only_the_course_s_staff_sets_it(school: School) -> None:
    for login in ("anna", "otto"):
        answer = school.client(login).post(settings(school, "/time-zone"), data={"time_zone": "Asia/Tokyo"})
        assert answer.status_code == 404


@given(
    st.integers(0, 52_000_000),
    st.sampled_from(["UTC", "Europe/Paris", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_what_a_field_takes_it_shows_again(minutes: int, name: str) -> None:
    at = (datetime(2001, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)).replace(tzinfo=None)
    zone = CourseFacts(1, "c", "C", False, name, None, None).zone
    form = SubmittedForm({"at": [at.isoformat()]}, {})
    meant = form.time("at", zone)
    assert (meant is None) is bool(form.errors)
    if meant is not None:
        assert local_field(meant, zone) == at.strftime("%Y-%m-%dT%H:%M")
