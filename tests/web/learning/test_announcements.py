"""Announcements: staff writes, all who take part read, and nothing in them acts on a page."""

from __future__ import annotations

import re

from sqlalchemy import select

from grader.store.courses import announcements
from grader.store.delivery.delivery_channels import note_channel
from grader.store.people.mailboxes import set_address
from grader.store.tables import DeliveryRow
from tests.web.access.test_confirmations import yes
from tests.web.conftest import School


def test_what_staff_writes_stands_on_the_courses_page(school: School) -> None:
    here, ines, anna = f"/courses/{school.course}/announcements", school.client("ines"), school.client("anna")
    assert "New announcement" not in anna.get(here).text
    written = {
        "title": "No lecture",
        "text": "On **Monday** <script>alert(1)</script> [x](javascript:alert(1))",
    }
    assert ines.post(here, data=written).status_code == 303
    for page in (anna.get(f"/courses/{school.course}").text, anna.get(here).text):
        assert "No lecture" in page
        assert "<strong>Monday</strong>" in page
        assert "Ines" in page
        assert "&lt;script&gt;" in page
        assert 'href="javascript' not in page
    assert anna.post(here, data=written).status_code == 404
    assert school.client("olga").get(here).status_code == 404


def test_the_newest_and_the_pinned_stand_first(school: School) -> None:
    here, ines = f"/courses/{school.course}/announcements", school.client("ines")
    for number in range(5):
        ines.post(here, data={"title": f"News {number}", "text": "…"})
    (_, _, _, _, first) = announcements.announcements_of(school.store, school.course)
    ines.post(f"{here}/{first.id}/pin", data={"pinned": "on"})
    page = school.client("anna").get(f"/courses/{school.course}").text
    assert re.findall(r">(News \d)</h3>", page) == ["News 0", "News 4", "News 3"]
    assert "All announcements (5)" in page
    ines.post(f"{here}/{first.id}/pin")
    page = school.client("anna").get(f"/courses/{school.course}").text
    assert re.findall(r">(News \d)</h3>", page) == ["News 4", "News 3", "News 2"]


def test_removing_one_asks_first(school: School) -> None:
    here, ines = f"/courses/{school.course}/announcements", school.client("ines")
    ines.post(here, data={"title": "A mistake", "text": "…"})
    (one,) = announcements.announcements_of(school.store, school.course)
    asked = ines.post(f"{here}/{one.id}/remove")
    assert "Remove this announcement?" in asked.text
    assert announcements.announcements_of(school.store, school.course) == (one,)
    yes(ines, asked)
    assert announcements.announcements_of(school.store, school.course) == ()
    assert ines.post(f"{here}/{one.id}/remove").status_code == 404


def test_what_cannot_be_announced_is_shown_again(school: School) -> None:
    here, ines = f"/courses/{school.course}/announcements", school.client("ines")
    answer = ines.post(here, data={"title": "Kept", "text": "x" * 10_001})
    assert answer.status_code == 422
    assert "at most 10000 characters" in answer.text
    assert 'value="Kept"' in answer.text
    assert "A title is needed" in ines.post(here, data={"text": "Kept, too"}).text
    assert announcements.announcements_of(school.store, school.course) == ()


def test_staff_of_another_course_changes_nothing(school: School) -> None:
    here = f"/courses/{school.course}/announcements"
    school.client("ines").post(here, data={"title": "Ours", "text": "…"})
    (one,) = announcements.announcements_of(school.store, school.course)
    otto, theirs = school.client("otto"), f"/courses/{school.other_course}/announcements"
    assert otto.post(f"{theirs}/{one.id}/pin", data={"pinned": "on"}).status_code == 404
    assert otto.post(f"{theirs}/{one.id}/remove", data={"confirmed": "yes"}).status_code == 404
    assert announcements.announcements_of(school.store, school.course) == (one,)


def test_it_is_queued_for_those_with_an_address(school: School) -> None:
    note_channel(school.store, "mail", set_up=True, problem=None)
    set_address(school.store, school.people["anna"], "anna@example.org", actor_id=None)
    school.client("ines").post(
        f"/courses/{school.course}/announcements", data={"title": "Hello", "text": "all"}
    )
    with school.store.read() as connection:
        receivers = connection.execute(select(DeliveryRow.receiver)).scalars().all()
    assert receivers == [f"person:{school.people['anna']}"]
