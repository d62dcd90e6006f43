"""A full course, written straight into the tables: 500 learners, 9 tasks, 5 attempts each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.store.database import Store
from grader.store.grading.standings import recompute_standings
from grader.store.tables import (
    AttemptRow,
    EnrolmentRow,
    GradeCodeRow,
    GradeRow,
    PersonRow,
    SourceRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role
from tests.store.campus import VERSION, Campus

LEARNERS, TASKS, TRIES = 500, 9, 5
START = datetime(2026, 1, 1, tzinfo=UTC)


def full_course(store: Store) -> Campus:
    """Fill an empty database; the course besides has what every campus has."""
    campus = Campus(store)
    tasks = [campus.set_task(f"task-{number}") for number in range(TASKS)]
    people = [
        {"id": 1000 + n, "login": f"l{n}", "name": f"L {n:03}", "role": Role.LEARNER, "created_at": START,
         "must_change": False, "session_epoch": 0}
        for n in range(LEARNERS)
    ]  # fmt: skip
    made = [
        (
            1 + number,
            1000 + number % LEARNERS,
            tasks[number // LEARNERS % TASKS],
            number // (LEARNERS * TASKS),
        )
        for number in range(LEARNERS * TASKS * TRIES)
    ]
    with store.write() as connection:
        connection.execute(insert(PersonRow), people)
        connection.execute(
            insert(EnrolmentRow),
            [
                {"course_id": campus.course, "person_id": p["id"], "role": Role.LEARNER, "created_at": START}
                for p in people
            ],
        )
        connection.execute(insert(SourceRow).values(digest=VERSION, files=[["train.py", "x"]], size=1))
        connection.execute(
            insert(SubmissionRow).values(digest=VERSION, name="train"),
            [
                {"id": i, "person_id": p, "course_task_id": t, "submitted_at": START + timedelta(hours=k)}
                for i, p, t, k in made
            ],
        )
        connection.execute(
            insert(AttemptRow).values(
                digest=VERSION, task="t", task_version=VERSION, profile="cpu", need="cpu", lane=Lane.INTERACTIVE,
                state=AttemptState.JUDGED, forced=False, counts=True, lease_token=1, tries=1, event_seq=3,
            ),
            [
                {"id": i, "submission_id": i, "person_id": p, "course_task_id": t, "queued_at": START,
                 "available_at": START, "claimed_at": START, "finished_at": START + timedelta(hours=k)}
                for i, p, t, k in made
            ],
        )  # fmt: skip
        connection.execute(
            insert(GradeRow).values(max_points=100.0, document="{}", created_at=START),
            [
                {
                    "attempt_id": i,
                    "verdict": Verdict.ACCEPTED if k == TRIES - 1 and p % 2 else Verdict.REJECTED,
                    "points": 20.0 * k,
                }
                for i, p, _, k in made
            ],
        )
        connection.execute(
            insert(GradeCodeRow),
            [
                {"attempt_id": i, "code": f"DATA00{1 + (p + c) % 9}", "severity": Severity.ERROR,
                 "course_task_id": t, "person_id": p}
                for i, p, t, k in made
                for c in range(TRIES - 1 - k)
            ],
        )  # fmt: skip
        for task in tasks:
            recompute_standings(connection, task)
    with store.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("ANALYZE")
    return campus
