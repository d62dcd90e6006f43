"""What is kept: one table's noun per module. Never reads or writes; importing this package makes all of them known."""

from __future__ import annotations

from grader.store.tables.api_token import ApiTokenRow
from grader.store.tables.artifact import ArtifactRow, BlobRow
from grader.store.tables.attempt import AttemptRow
from grader.store.tables.base import Base
from grader.store.tables.certificate import CertificateRow
from grader.store.tables.comparison import ComparisonRow, SimilarPairRow
from grader.store.tables.course import CourseRow
from grader.store.tables.course_task import CourseTaskRow
from grader.store.tables.ended_session import EndedSessionRow
from grader.store.tables.enrolment import EnrolmentRow, ExtensionRow
from grader.store.tables.event import EventRow
from grader.store.tables.grade import GradeCodeRow, GradeRow
from grader.store.tables.identity import IdentityRow
from grader.store.tables.invitation import InvitationRow
from grader.store.tables.membership import MembershipRow
from grader.store.tables.outbox import OutboxRow
from grader.store.tables.person import PersonRow
from grader.store.tables.queue import GateRow, TurnRow, WorkerRow
from grader.store.tables.retention import DeletedContentRow, RetentionRuleRow
from grader.store.tables.review import CommentRow, OverrideRow
from grader.store.tables.standing import StandingRow
from grader.store.tables.submission import SourceRow, SubmissionRow
from grader.store.tables.task_version import TaskVersionRow

__all__ = [
    "ApiTokenRow",
    "ArtifactRow",
    "AttemptRow",
    "Base",
    "BlobRow",
    "CertificateRow",
    "CommentRow",
    "ComparisonRow",
    "CourseRow",
    "CourseTaskRow",
    "DeletedContentRow",
    "EndedSessionRow",
    "EnrolmentRow",
    "EventRow",
    "ExtensionRow",
    "GateRow",
    "GradeCodeRow",
    "GradeRow",
    "IdentityRow",
    "InvitationRow",
    "MembershipRow",
    "OutboxRow",
    "OverrideRow",
    "PersonRow",
    "RetentionRuleRow",
    "SimilarPairRow",
    "SourceRow",
    "StandingRow",
    "SubmissionRow",
    "TaskVersionRow",
    "TurnRow",
    "WorkerRow",
]
