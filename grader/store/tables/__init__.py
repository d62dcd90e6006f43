"""What is kept: one table's noun per module. Never reads or writes; importing this package makes all of them known."""

from __future__ import annotations

from grader.store.tables.api_token import ApiToken
from grader.store.tables.artifact import Artifact, Blob
from grader.store.tables.attempt import Attempt
from grader.store.tables.base import Base
from grader.store.tables.certificate import Certificate
from grader.store.tables.course import Course
from grader.store.tables.course_task import CourseTask
from grader.store.tables.enrolment import Enrolment, Extension
from grader.store.tables.event import Event
from grader.store.tables.grade import GradeCode, GradeRecord
from grader.store.tables.invitation import Invitation
from grader.store.tables.outbox import OutboxRow
from grader.store.tables.person import Person
from grader.store.tables.queue import Gate, Turn, WorkerRow
from grader.store.tables.review import Comment, Override
from grader.store.tables.standing import Standing
from grader.store.tables.submission import Source, SubmissionRow

__all__ = [
    "ApiToken",
    "Artifact",
    "Attempt",
    "Base",
    "Blob",
    "Certificate",
    "Comment",
    "Course",
    "CourseTask",
    "Enrolment",
    "Event",
    "Extension",
    "Gate",
    "GradeCode",
    "GradeRecord",
    "Invitation",
    "OutboxRow",
    "Override",
    "Person",
    "Source",
    "Standing",
    "SubmissionRow",
    "Turn",
    "WorkerRow",
]
