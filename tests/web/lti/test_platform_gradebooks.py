"""The gradebook for Canvas and for Moodle, read as those two read it."""

from __future__ import annotations

from sqlalchemy import update

from grader.model.grade import Verdict
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.tables import EnrolmentRow, PersonRow
from tests.store.campus import VERSION, verdict_of
from tests.web.conftest import School
from tests.web.platform_readers import read_canvas, read_moodle


def title_of(school: School, task: str) -> str:
    return next(one.terms.title for one in courses.tasks_of(school.store, school.course) if one.task == task)


def exported(school: School, name: str) -> bytes:
    answer = school.client("ines").get(f"/courses/{school.course}/exports/{name}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-disposition"] == f'attachment; filename="ddp-{name}"'
    return answer.content


def with_class(school: School) -> None:
    """Anna has points, Ben's are held, the robot's are not judged; Anna is known elsewhere by a number."""
    with school.store.write() as connection:
        connection.execute(
            update(EnrolmentRow)
            .where(EnrolmentRow.person_id == school.people["anna"], EnrolmentRow.course_id == school.course)
            .values(external_id="00042", section="Tuesday")
        )
        connection.execute(
            update(PersonRow).where(PersonRow.id == school.people["anna"]).values(email="anna@uni.example")
        )
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 87.5))
    school.judge("ben", grade=verdict_of(Verdict.HELD, 90.0))
    school.hand_in("robot")


def test_canvas_reads_points_of_possible_points_by_sis_id_and_login(school: School) -> None:
    with_class(school)
    read, task = read_canvas(exported(school, "canvas.csv")), title_of(school, "ddp-toy")
    assert set(read.possible.values()) == {100.0}
    assert list(read.scores) == ["anna", "ben", "robot"]
    assert {login: scores[task] for login, scores in read.scores.items()} == {
        "anna": "87.5",
        "ben": "",
        "robot": "",
    }, "what is held or waits has no points yet"
    assert (read.sis_ids["anna"], read.sections["anna"], read.sis_ids["ben"]) == ("00042", "Tuesday", "")


def test_canvas_takes_no_title_for_a_number_of_its_own_or_for_its_own_columns(school: School) -> None:
    for task, title in (("ddp-toy", "Lab (2)"), ("ddp-fashion", "Final Score of the race")):
        courses.set_task(school.store, school.course, task, "cpu", TaskTerms(title, VERSION))
    read = read_canvas(exported(school, "canvas.csv"))
    assert list(read.possible) == ["Lab [2]", "Final-Score of the race"]
    assert not read.known_ids


def test_no_name_makes_a_learner_the_row_of_possible_points(school: School) -> None:
    with school.store.write() as connection:
        connection.execute(
            update(PersonRow).where(PersonRow.id == school.people["ben"]).values(name="Points Possible")
        )
    school.judge("ben", grade=verdict_of(Verdict.ACCEPTED, 1.0))
    read = read_canvas(exported(school, "canvas.csv"))
    assert set(read.possible.values()) == {100.0}
    assert read.scores["ben"][title_of(school, "ddp-toy")] == "1"


def test_moodle_reads_grades_by_id_number_username_and_address(school: School) -> None:
    with_class(school)
    data, task = exported(school, "moodle.csv"), title_of(school, "ddp-toy")
    assert read_moodle(data, "ID number", [task]) == {"00042": {task: 87.5}}
    assert read_moodle(data, "Email address", [task]) == {"anna@uni.example": {task: 87.5}}
    assert read_moodle(data, "Username", [task]) == {
        "anna": {task: 87.5},
        "ben": {task: None},
        "robot": {task: None},
    }


def test_what_learners_do_not_see_is_no_column_and_two_of_one_title_are_two(school: School) -> None:
    terms = TaskTerms("The same", VERSION)
    for task in ("ddp-toy", "ddp-fashion"):
        courses.set_task(school.store, school.course, task, "cpu", terms)
    courses.set_task(school.store, school.course, "ddp-draft", "cpu", TaskTerms("Exam", VERSION), draft=True)
    titles = list(read_canvas(exported(school, "canvas.csv")).possible)
    assert titles == ["The same, ddp-toy cpu", "The same, ddp-fashion cpu"]


def test_only_staff_gets_them(school: School) -> None:
    for name in ("canvas.csv", "moodle.csv"):
        place = f"/courses/{school.course}/exports/{name}"
        assert school.client("anna").get(place).status_code == 404
        assert school.client("otto").get(place).status_code == 404
