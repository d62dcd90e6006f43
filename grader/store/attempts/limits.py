"""Whether one more submission is allowed, as data that a page can explain: which limit, and when it is lifted.

Pure: what was read from the database goes in, times included. Reads nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from grader.store.tables.attempt import AttemptState
from grader.store.tables.course_task import LatePolicy

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
EXAM_GRACE = timedelta(seconds=30)
"""For so long after its end an exam takes what was on its way."""
UNRELEASED = datetime(9999, 12, 31, tzinfo=UTC)
"""Stands for the moment at which an exam's results are told, while nobody has said when that is."""


class Limit(StrEnum):
    """What can stand in the way."""

    NOT_ENROLLED = "not_enrolled"
    COURSE_CLOSED = "course_closed"
    COURSE_ARCHIVED = "course_archived"
    NOT_OPEN = "not_open"
    PAST_DUE = "past_due"
    EXAM_NOT_BEGUN = "exam_not_begun"
    EXAM_OVER = "exam_over"
    CONCURRENT = "concurrent"
    PER_DAY = "per_day"
    TOTAL = "total"
    KEY_REUSED = "key_reused"
    """The client named another submission by the same idempotency key."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not.

    Attributes:
        limit: what stands in the way.
        allowed, used: of limits that count.
        lifted_at: when it does so no longer, where the clock alone decides that; None: it doesn't.
    """

    limit: Limit
    allowed: int | None = None
    used: int | None = None
    lifted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ExamTime:
    """One learner's own time in an exam.

    Attributes:
        minutes: that everybody has; extra_minutes: that this learner has besides, and may end later by.
        begun_at: when they first looked; None: they have not.
        closes_at: when the exam closes for everybody, or for them by an extension.
    """

    minutes: int
    extra_minutes: int
    begun_at: datetime | None
    closes_at: datetime

    @property
    def last_end(self) -> datetime:
        """When it ends for this learner whenever they begin."""
        return self.closes_at + self.extra_minutes * MINUTE

    @property
    def ends_at(self) -> datetime | None:
        """When their own time ends; None: it has not begun."""
        if self.begun_at is None:
            return None
        return min(self.begun_at + (self.minutes + self.extra_minutes) * MINUTE, self.last_end)


@dataclass(frozen=True, slots=True)
class LateBank:
    """Late days that a course gives each learner: `total` in all, `per_task` at most for one task, None for any."""

    total: int
    per_task: int | None = None

    def available(self, used_elsewhere: int) -> int:
        """How many there are for one task, where so many are used for others."""
        left = max(0, self.total - used_elsewhere)
        return left if self.per_task is None else min(left, self.per_task)


@dataclass(frozen=True, slots=True)
class Dates:
    """When a task opens and is due for one learner, and what comes afterwards.

    `free_days`: late days that this learner could use for it; `exam`: their time, where it is an exam.
    """

    opens_at: datetime | None
    due_at: datetime | None
    late_policy: LatePolicy
    late_days: int | None
    grace_minutes: int | None = None
    free_days: int = 0
    exam: ExamTime | None = None


@dataclass(frozen=True, slots=True)
class Caps:
    """How many attempts one learner has; None: as many as they like."""

    per_day: int | None
    total: int | None
    concurrent: int | None

    def and_extra(self, per_day: int | None, total: int | None) -> Caps:
        """The same with so many more for one learner."""
        return Caps(
            None if self.per_day is None else self.per_day + (per_day or 0),
            None if self.total is None else self.total + (total or 0),
            self.concurrent,
        )


def counts_against_limits(state: AttemptState, claimed_at: datetime | None, cached_from: int | None) -> bool:
    """Whether an attempt counts against the learner's limits: our faults and answers from before do not."""
    if state is AttemptState.FAILED or cached_from is not None:
        return False
    # Cancelled while it waited it cost nothing; cancelled while it ran it may have told something.
    return not (state is AttemptState.CANCELLED and claimed_at is None)


def days_late(now: datetime, due_at: datetime | None, grace_minutes: int | None = None) -> int:
    """Days begun after the due date; 0 up to it, and so many minutes longer."""
    if due_at is None or now <= due_at + (grace_minutes or 0) * MINUTE:
        return 0
    return math.ceil((now - due_at) / DAY)


def late_factor(policy: LatePolicy, loss: float, num_days: int) -> float:
    """Share of the points that is left after so many days begun, 0 to 1."""
    return max(0.0, 1.0 - loss * num_days) if policy is LatePolicy.REDUCED else 1.0


def free_days_wanted(late: int, policy: LatePolicy, most_days: int | None) -> int:
    """How many late days an attempt takes so that being so many days late costs nothing.

    `most_days`: for how many days something is taken at all; what is taken at no cost takes none before they are over.
    """
    if policy is LatePolicy.ACCEPTED:
        return 0 if most_days is None else max(0, late - most_days)
    return late


def refused_by_dates(now: datetime, dates: Dates) -> Refusal | None:
    """The date that stands in the way, or None."""
    if dates.opens_at is not None and now < dates.opens_at:
        return Refusal(Limit.NOT_OPEN, lifted_at=dates.opens_at)
    ends_at = None if dates.exam is None else dates.exam.ends_at
    if ends_at is not None:
        return Refusal(Limit.EXAM_OVER) if now > ends_at + EXAM_GRACE else None
    late = days_late(now, dates.due_at, dates.grace_minutes) - dates.free_days
    if late > 0 and (
        dates.late_policy is LatePolicy.CLOSED or (dates.late_days is not None and late > dates.late_days)
    ):
        return Refusal(Limit.PAST_DUE)
    return None if dates.exam is None else Refusal(Limit.EXAM_NOT_BEGUN)


def group_due_date(dates: Sequence[datetime | None]) -> datetime | None:
    """When those who hand in together do so in time, the sender's own date first: the latest of theirs."""
    own, *others = dates
    return None if own is None else max((own, *(at for at in others if at is not None)))


def refused_by_caps(
    now: datetime, caps: Caps, counted: Sequence[datetime], num_unfinished: int
) -> Refusal | None:
    """The count that stands in the way, or None.

    Args:
        now: by the database's clock.
        caps: what is allowed.
        counted: when each attempt that counts was handed in, newest first.
        num_unfinished: attempts queued or running.
    """
    if caps.total is not None and len(counted) >= caps.total:
        return Refusal(Limit.TOTAL, caps.total, len(counted))
    if caps.per_day is not None:
        recent = [at for at in counted if at > now - DAY]
        if len(recent) >= caps.per_day:
            return Refusal(Limit.PER_DAY, caps.per_day, len(recent), recent[caps.per_day - 1] + DAY)
    if caps.concurrent is not None and num_unfinished >= caps.concurrent:
        return Refusal(Limit.CONCURRENT, caps.concurrent, num_unfinished)
    return None
