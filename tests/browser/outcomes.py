"""Attempts of every outcome, in one school: what is judged comes first, because a worker takes what waits in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from grader.judging.attempt import Attempt
from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.store import events
from grader.store.attempts import attempt_endings
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.grading import reviews
from grader.store.grading.grades import NewGrade, new_grade
from grader.store.queue import claims
from grader.store.tables.course_task import LatePolicy
from tests.report import factory
from tests.web.conftest import School
from tests.web.staff.test_similarity import SHARED, renamed


def held() -> Attempt:
    """A rejected attempt that an instructor has to look at first."""
    attempt = factory.rejected()
    grade = replace(attempt.grade, verdict=Verdict.HELD, review=("TRUST002: the trace was written by hand.",))
    return replace(attempt, grade=grade)


def earlier() -> Attempt:
    """A rejected attempt that was judged on the scale before this one, with a total of its own."""
    attempt = factory.rejected()
    grade = replace(attempt.grade, schema=1, max_points=85.0)
    return replace(attempt, grade=grade)


@cache
def _judged(draw: Callable[[], Attempt]) -> tuple[NewGrade, dict[str, bytes]]:
    attempt = draw()
    files = {
        "report.html": to_html(attempt, factory.PAGES).encode(),
        "report-staff.html": to_html(attempt, factory.PAGES, Audience.STAFF).encode(),
        "grade.json": b"{}",
    }
    return new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF)), files


def show(school: School, draw: Callable[[], Attempt], task: int | None = None) -> int:
    """Have it judged, and leave the reports that a worker leaves."""
    grade, files = _judged(draw)
    return school.judge("anna", f"# {next(school.numbers)}\n{factory.SOURCE}", grade, task=task, files=files)


def _terms(school: School, task: int, **changes: Any) -> None:
    set_task = courses.course_task(school.store, task)
    assert set_task is not None
    courses.set_task(
        school.store, school.course, set_task.task, set_task.profile, replace(set_task.terms, **changes)
    )


def _claim(school: School) -> claims.Claimed:
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    return lease


def attempts_of_every_outcome(school: School) -> dict[str, int]:
    """What became of an attempt → its number. The later ones of the first task still wait or run."""
    store, ines, now = school.store, school.people["ines"], datetime.now(UTC)
    fashion = school.tasks["ddp-fashion"]
    _terms(school, school.task, due_at=now + timedelta(days=3), max_per_day=30, max_total=40)
    _terms(school, fashion, due_at=now - timedelta(hours=5), late_policy=LatePolicy.REDUCED, late_loss=0.1)
    secret = courses.set_task(
        store,
        school.course,
        "ddp-secret",
        "cpu",
        TaskTerms("Told afterwards", "0" * 64, due_at=now + timedelta(days=1), hidden_until_due=True),
    )
    courses.set_task(store, school.course, "ddp-draft", "cpu", TaskTerms("A draft", "a" * 64), draft=True)
    rejected = show(school, factory.rejected)
    reviews.comment(store, rejected, "Look here first.", author_id=ines, path="train.py", line=23)
    overridden = show(school, factory.rejected)
    reviews.override(store, overridden, Verdict.ACCEPTED, 70, "Explained it to me.", actor_id=ines)
    waits = show(school, held)
    reviews.ask(store, waits, "Did you write the trace yourself?", author_id=ines)
    found = {
        "rejected": rejected,
        "overridden": overridden,
        "held": waits,
        "deadlocked": show(school, factory.deadlocked),
        "crashed": show(school, factory.crashed),
        "earlier scale": show(school, earlier),
        "late": show(school, factory.accepted, fashion),
        "unread": school.judge("ben", task=fashion),
        "hidden": school.judge("anna", task=secret),
        "accepted": show(school, factory.accepted),
    }
    school.judge("ben", SHARED)
    failed = school.hand_in("ben")
    attempt_endings.fail(store, failed, _claim(school).lease_token, "no space left on w1", retry=False)
    cancelled = school.hand_in("anna")
    attempt_endings.cancel(store, cancelled, actor_id=None)
    running = school.hand_in("anna", f"# it runs\n{factory.SOURCE}")
    said: list[tuple[str, dict[str, Any]]] = [
        ("phase", {"phase": "run"}),
        ("epoch", {"epoch": 2, "of": 6, "loss": 0.51}),
        ("log", {"rank": 0, "stream": "stdout", "text": "step 1 of many\n" * 40}),
        ("log", {"rank": 1, "stream": "stderr", "text": "a warning " * 40}),
    ]
    events.add_live_events(store, running, _claim(school).lease_token, said)
    waiting = school.hand_in("ben", f"{renamed(SHARED)}{factory.SOURCE}")
    return {**found, "failed": failed, "cancelled": cancelled, "running": running, "waiting": waiting}
