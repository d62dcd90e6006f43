"""The audit log as a page: who is named in it, and that no event is lost between its pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from grader.store.audit_trail import AuditFilter, audit_page
from grader.store.courses import enrolments
from grader.store.courses.course_time_zone import set_time_zone
from grader.store.courses.extensions import Extension, extend
from grader.store.courses.grading_rules import TaskGrading, set_task_grading
from grader.store.events import audit
from tests.web.conftest import School


def test_whoever_left_is_still_named_and_no_longer_to_choose(school: School) -> None:
    school.join("carl")
    ines, at = school.client("ines"), f"/courses/{school.course}/audit"
    choice = f'<option value="{school.people["carl"]}">Carl</option>'
    assert choice in ines.get(at).text
    enrolments.leave(school.store, school.course, school.people["carl"], actor_id=school.people["ada"])
    text = ines.get(at).text
    assert choice not in text
    assert '<span class="kind">Carl</span>' in text
    assert "<td>Ada</td>" in text, "who teaches nothing here is named, too"


def test_a_long_log_is_read_to_its_end(school: School) -> None:
    with school.store.write() as connection:
        for number in range(330):
            audit(connection, f"course:{school.course}", "words_changed", actor_id=None, number=number)
    ines, place, seen = school.client("ines"), f"/courses/{school.course}/audit?kind=words_changed", []
    while place:
        text = ines.get(place).text
        seen += re.findall(r'<span class="kind">number: (\d+)</span>', text)
        older = re.search(r'rel="next" href="([^"]+)"', text)
        place = older[1].replace("&amp;", "&") if older is not None else ""
    assert seen == [str(number) for number in reversed(range(330))]


def test_a_class_that_came_is_one_line_however_large(school: School) -> None:
    subject, num_more = f"course:{school.course}", 700
    with school.store.write() as connection:
        audit(connection, subject, "words_changed", actor_id=None)
        for _ in range(num_more):
            audit(connection, subject, "enrolled", actor_id=school.people["ines"])
    first, second, *_ = audit_page(school.store, subject, AuditFilter()).lines
    assert (first.event.kind, first.number, second.event.kind) == ("enrolled", num_more, "words_changed")


def test_words_and_moments_of_the_code_are_told_in_the_readers_language(school: School) -> None:
    due = datetime(2027, 1, 5, 16, 30, tzinfo=UTC)
    anna, ines = school.people["anna"], school.people["ines"]
    extend(school.store, school.task, Extension(due, reason="ill"), person_ids=[anna], actor_id=ines)
    set_task_grading(
        school.store, school.course, school.task, TaskGrading(leaderboard="points"), actor_id=ines
    )
    set_time_zone(school.store, school.course, "Europe/Berlin", actor_id=ines)
    german = {"Accept-Language": "de"}
    text = school.client("ines").get(f"/courses/{school.course}/audit", headers=german).text
    assert '<span class="kind">Punkte</span>' in text
    assert "05.01.2027, 17:30" in text
    assert "2027-01-05" not in re.sub(r'datetime="[^"]*"', "", text)
