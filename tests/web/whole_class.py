"""A class in which each learner has handed in one script: what became of all of them, told at every place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.model.grade import Verdict
from grader.store import schema
from grader.store.courses import enrolments
from grader.store.database import Store
from grader.store.grading import reviews
from grader.store.people import people
from grader.store.tables.person import Role
from tests.web.conftest import make_school
from tests.web.told_outcomes import Left, certify, hold, judge_again, only_required


def hold_for_class(left: Sequence[Left], folder: Path) -> None:
    """One number everywhere for all of these: as they were judged, and after a regrade with an override.

    Args:
        left: what a worker left of each attempt.
        folder: an empty one, for the database and its files.
    """
    database = folder / "grader.db"
    store = Store(f"sqlite:///{database}")
    schema.upgrade(store)
    store.close()
    school = make_school(database, folder)
    only_required(school)
    logins = {}
    for number, (grade, files) in enumerate(left):
        login = f"learner{number:03d}"
        school.people[login] = people.add_person(school.store, login, login.title())
        enrolments.enrol(school.store, school.course, school.people[login], Role.LEARNER)
        logins[school.judge(login, grade=grade, files=files)] = login
    # What staff read of each alone is the web's own tests'.
    hold(school, logins, readers=("learner",))
    # Judged again each is what its neighbour was: whatever still told the old number would be seen.
    again = judge_again(school, dict(zip(logins, [*left[1:], *left[:1]], strict=True)))
    regraded = dict(zip(again, logins.values(), strict=True))
    for number in regraded:
        points = 40 + number % 60
        reviews.override(
            school.store, number, Verdict.ACCEPTED, points, "seen", actor_id=school.people["ines"]
        )
    hold(school, regraded, readers=("learner",))
    for number, login in regraded.items():
        certify(school, login, number)
    school.store.close()
