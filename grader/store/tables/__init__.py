"""What is kept: one table's noun per module. Never reads or writes; importing this package makes all of them known."""

from __future__ import annotations

from grader.store.tables.announcement import AnnouncementRow
from grader.store.tables.api_token import ApiTokenRow
from grader.store.tables.artifact import ArtifactRow, BlobRow
from grader.store.tables.attempt import AttemptRow
from grader.store.tables.base import Base
from grader.store.tables.certificate import CertificateRow
from grader.store.tables.comparison import ComparisonRow, SimilarPairRow
from grader.store.tables.course import CourseRow
from grader.store.tables.course_task import CourseTaskRow
from grader.store.tables.delivery import DeliveryChannelRow, DeliveryRow
from grader.store.tables.ended_session import EndedSessionRow
from grader.store.tables.enrolment import EnrolmentRow, ExtensionRow
from grader.store.tables.event import EventRow
from grader.store.tables.exam_sitting import ExamSittingRow
from grader.store.tables.grade import GradeCodeRow, GradeRow
from grader.store.tables.grading_rules import GradingRulesRow, TaskGradingRow
from grader.store.tables.group_role import GroupRoleRow
from grader.store.tables.identity import IdentityRow
from grader.store.tables.invitation import InvitationRow
from grader.store.tables.late_day_use import LateDayUseRow
from grader.store.tables.leaderboard_name import LeaderboardNameRow
from grader.store.tables.learner_group import CreditRow, GroupMemberRow, LearnerGroupRow
from grader.store.tables.lti_context import (
    LtiContextRow,
    LtiLineItemRow,
    LtiLinkRow,
    LtiMemberRow,
    LtiScoreRow,
)
from grader.store.tables.lti_launch import LtiLaunchRow
from grader.store.tables.lti_platform import LtiPlatformRow, LtiRegistrationRow
from grader.store.tables.mail import BouncedAddressRow, MailChoiceRow
from grader.store.tables.membership import MembershipRow
from grader.store.tables.one_time_password import OneTimePasswordRow
from grader.store.tables.outbox import OutboxRow
from grader.store.tables.person import PersonRow
from grader.store.tables.queue import GateRow, TurnRow, WorkerRow
from grader.store.tables.regrade_request import RegradeRequestRow
from grader.store.tables.retention import DeletedContentRow, RetentionRuleRow
from grader.store.tables.review import CommentEntryRow, CommentRow, OverrideRow
from grader.store.tables.roster_import import RosterImportRow
from grader.store.tables.standing import StandingRow
from grader.store.tables.submission import SourceRow, SubmissionRow
from grader.store.tables.task_version import TaskVersionRow
from grader.store.tables.webhook import WebhookRow

__all__ = [
    "AnnouncementRow",
    "ApiTokenRow",
    "ArtifactRow",
    "AttemptRow",
    "Base",
    "BlobRow",
    "BouncedAddressRow",
    "CertificateRow",
    "CommentEntryRow",
    "CommentRow",
    "ComparisonRow",
    "CourseRow",
    "CourseTaskRow",
    "CreditRow",
    "DeletedContentRow",
    "DeliveryChannelRow",
    "DeliveryRow",
    "EndedSessionRow",
    "EnrolmentRow",
    "EventRow",
    "ExamSittingRow",
    "ExtensionRow",
    "GateRow",
    "GradeCodeRow",
    "GradeRow",
    "GradingRulesRow",
    "GroupMemberRow",
    "GroupRoleRow",
    "IdentityRow",
    "InvitationRow",
    "LateDayUseRow",
    "LeaderboardNameRow",
    "LearnerGroupRow",
    "LtiContextRow",
    "LtiLaunchRow",
    "LtiLineItemRow",
    "LtiLinkRow",
    "LtiMemberRow",
    "LtiPlatformRow",
    "LtiRegistrationRow",
    "LtiScoreRow",
    "MailChoiceRow",
    "MembershipRow",
    "OneTimePasswordRow",
    "OutboxRow",
    "OverrideRow",
    "PersonRow",
    "RegradeRequestRow",
    "RetentionRuleRow",
    "RosterImportRow",
    "SimilarPairRow",
    "SourceRow",
    "StandingRow",
    "SubmissionRow",
    "TaskGradingRow",
    "TaskVersionRow",
    "TurnRow",
    "WebhookRow",
    "WorkerRow",
]
