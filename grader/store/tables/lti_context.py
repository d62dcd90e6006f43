"""A platform's course as it is connected to one of ours: its people, links to our tasks, the grades that it is told."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, ForeignKeyConstraint, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, JsonText, SafeString


class LtiContextRow(Base):
    """One course of a platform.

    Attributes:
        deployment, context: the platform's ids of where it lies and of itself.
        course_id: the course of ours that it is connected to.
        members_url: where its list of people is read; None: it shows none.
        line_items_url: where its columns for grades are made; None: it takes none, or only those of single links.
        scopes: what it allows us to do with grades.
        roster_at: when its list was last read; roster_problem: why that failed last, None: it did not.
        num_left_out: people on that list who are not let in by themselves (mentors).
    """

    __tablename__ = "lti_contexts"
    __table_args__ = (UniqueConstraint("platform_id", "deployment", "context"),)

    id: Mapped[Id]
    platform_id: Mapped[int] = mapped_column(ForeignKey("lti_platforms.id", ondelete="CASCADE"))
    deployment: Mapped[str] = mapped_column(SafeString(255))
    context: Mapped[str] = mapped_column(SafeString(255))
    title: Mapped[str] = mapped_column(SafeString(200))
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    members_url: Mapped[str | None]
    line_items_url: Mapped[str | None]
    scopes: Mapped[list[str]] = mapped_column(JsonText())
    created_at: Mapped[datetime]
    roster_at: Mapped[datetime | None]
    roster_problem: Mapped[str | None]
    num_left_out: Mapped[int] = mapped_column(default=0)


class LtiMemberRow(Base):
    """One person of it.

    Attributes:
        subject: what the platform calls them; grades are told under it.
        left_at: since when the platform's list is without them; None: they are on it, or came by a launch.
    """

    __tablename__ = "lti_members"

    context_id: Mapped[int] = mapped_column(
        ForeignKey("lti_contexts.id", ondelete="CASCADE"), primary_key=True
    )
    person_id: Mapped[int] = mapped_column(
        ForeignKey("people.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    subject: Mapped[str] = mapped_column(SafeString(255))
    left_at: Mapped[datetime | None]


class LtiLinkRow(Base):
    """One link of the platform's course, and the task that it opens."""

    __tablename__ = "lti_links"
    __table_args__ = (UniqueConstraint("context_id", "resource_link"),)

    id: Mapped[Id]
    context_id: Mapped[int] = mapped_column(ForeignKey("lti_contexts.id", ondelete="CASCADE"))
    resource_link: Mapped[str] = mapped_column(SafeString(255))
    course_task_id: Mapped[int] = mapped_column(ForeignKey("course_tasks.id", ondelete="CASCADE"), index=True)


class LtiLineItemRow(Base):
    """The column of a platform's gradebook that holds the points of one task."""

    __tablename__ = "lti_line_items"

    context_id: Mapped[int] = mapped_column(
        ForeignKey("lti_contexts.id", ondelete="CASCADE"), primary_key=True
    )
    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    url: Mapped[str]


class LtiScoreRow(Base):
    """What a platform is told of one person in one task.

    Attributes:
        says: the grade as it is now, in the form in which it is compared.
        revision: how often that changed; sent_revision: the last one that the platform took.
        stamped_at: the time that the last message bore; the next one bears a later one, as the specification wants it.
    """

    __tablename__ = "lti_scores"
    __table_args__ = (
        ForeignKeyConstraint(
            ["context_id", "person_id"],
            ["lti_members.context_id", "lti_members.person_id"],
            name="fk_lti_scores_member",
            ondelete="CASCADE",
        ),
    )

    context_id: Mapped[int] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(primary_key=True)
    course_task_id: Mapped[int] = mapped_column(
        ForeignKey("course_tasks.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    says: Mapped[str]
    revision: Mapped[int]
    sent_revision: Mapped[int]
    stamped_at: Mapped[datetime | None]
    sent_at: Mapped[datetime | None]
