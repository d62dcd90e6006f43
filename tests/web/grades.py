"""Whole grades to be stored: as a worker writes them, with something in them that only staff may read."""

from __future__ import annotations

from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import Grade, ItemState, RubricResult, Verdict
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.store.grading.grades import NewGrade, new_grade

FOR_STAFF = "only-staff-may-read-this"


def graded(
    verdict: Verdict = Verdict.REJECTED, *, name: str = "train", message: str = "No set_epoch was called."
) -> NewGrade:
    """A grade with one finding for the learner and one that is for staff."""
    grade = Grade(
        task="ddp-toy",
        task_version="a" * 64,
        submission=name,
        digest="b" * 64,
        profile="cpu",
        dataset="digits",
        world_size=2,
        runtime="process",
        verdict=verdict,
        verdict_reason=message,
        points=40.0,
        max_points=100.0,
        rubric=(
            RubricResult(
                id="shuffle",
                title="Shuffles anew in each epoch",
                must=True,
                points=60.0,
                full_points=60.0,
                earned=0.0,
                state=ItemState.LOST,
                evidence=(EvidenceKind.TRACE,),
                reason=message,
                codes=("DATA002",),
            ),
        ),
        findings=(
            Finding(
                "DATA002", Severity.ERROR, EvidenceKind.TRACE, message, "Call it.", (Location("train.py", 1),)
            ),
            Finding("TRUST001", Severity.REVIEW, EvidenceKind.TRACE, FOR_STAFF),
        ),
        checks=(),
        metrics={"accuracy": 0.9},
        phases={"run": 1.5},
        environment={"torch": "2"},
        review=(FOR_STAFF,),
    )
    return new_grade(grade, to_json(grade, Audience.STAFF))
