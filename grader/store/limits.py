"""Whether one more submission is allowed, as data that a page can explain: which limit, and when it is lifted.

Pure: what was read from the database goes in, times included. Reads nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from grader.store.tables.attempt import AttemptState
from grader.store.tables.course_task import LatePolicy

DAY = timedelta(days=1)


class Limit(StrEnum):
    """What can stand in the way."""

    NOT_ENROLLED = "not_enrolled"
    COURSE_CLOSED = "course_closed"
    NOT_OPEN = "not_open"
    PAST_DUE = "past_due"
    CONCURRENT = "concurrent"
    PER_DAY = "per_day"
    TOTAL = "total"
    KEY_REUSED = "key_reused"
    """The client named another submission by the same idempotency key."""


_OF_DATES = (Limit.COURSE_CLOSED, Limit.NOT_OPEN, Limit.PAST_DUE)


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
class Dates:
    """When a task opens and is due for one learner, and what comes afterwards."""

    opens_at: datetime | None
    due_at: datetime | None
    late_policy: LatePolicy
    late_days: int | None


@dataclass(frozen=True, slots=True)
class Caps:
    """How many attempts one learner has; None: as many as they like."""

    per_day: int | None
    total: int | None
    concurrent: int | None


def counts_against_limits(state: AttemptState, claimed_at: datetime | None, cached_from: int | None) -> bool:
    """Whether an attempt counts against the learner's limits: our faults and answers from before do not."""
    if state is AttemptState.FAILED or cached_from is not None:
        return False
    # Cancelled while it waited it cost nothing; cancelled while it ran it may have told something.
    return not (state is AttemptState.CANCELLED and claimed_at is None)


def days_late(now: datetime, due_at: datetime | None) -> int:
    """Days begun after the due date; 0 up to it."""
    if due_at is None or now <= due_at:
        return 0
    return math.ceil((now - due_at) / DAY)


def late_factor(policy: LatePolicy, loss: float, num_days: int) -> float:
    """Share of the points that is left after so many days begun, 0 to 1."""
    return max(0.0, 1.0 - loss * num_days) if policy is LatePolicy.REDUCED else 1.0


def refused_by_dates(now: datetime, dates: Dates) -> Refusal | None:
    """The date that stands in the way, or None."""
    if dates.opens_at is not None and now < dates.opens_at:
        return Refusal(Limit.NOT_OPEN, lifted_at=dates.opens_at)
    late = days_late(now, dates.due_at)
    if late and (
        dates.late_policy is LatePolicy.CLOSED or (dates.late_days is not None and late > dates.late_days)
    ):
        return Refusal(Limit.PAST_DUE)
    return None


def group_due_date(dates: Sequence[datetime | None]) -> datetime | None:
    """When those who hand in together do so in time, the sender's own date first: the latest of theirs."""
    own, *others = dates
    return None if own is None else max((own, *(at for at in others if at is not None)))


def group_refusal(refusals: Sequence[Refusal | None]) -> Refusal | None:
    """What stands in the way of those who hand in together, the sender's own first; None: nothing.

    A date does where it stands in the way of all of them, and a count where it does of one: it is an attempt of each.
    """
    in_time = [one for one in refusals if one is None or one.limit not in _OF_DATES]
    return next((one for one in in_time if one is not None), None) if in_time else refusals[0]


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
