"""A task's leaderboard: accepted attempts of those who want to be seen, by points or by a figure of their grades.

Figures are those that learners are told: scores on hidden data come in steps, and nothing here is finer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from grader.model.metric import Direction
from grader.report.audience import Audience, for_audience
from grader.report.json_report import from_json
from grader.report.words.wording import points_text
from grader.store.courses.courses import AssignedTask
from grader.store.courses.grading_rules import TaskGrading
from grader.store.database import Store
from grader.store.grading.grades import grade_of
from grader.store.grading.leaderboard import RankedAttempt, ranked_attempts
from grader.translation import ENGLISH, N_, current_language, gettext
from grader.web.lookups.catalog import cached_task
from grader.web.service import WebService

POINTS = "points"
_MOST = 100
_OF_EVERY_RUN = (
    ("wall_s", N_("Seconds of the run"), True),
    ("samples_per_s", N_("Samples per second"), False),
    ("speedup", N_("Speed-up"), False),
    ("efficiency", N_("Efficiency"), False),
)


@dataclass(frozen=True, slots=True)
class Measure:
    """What learners can be ranked by: its name in grades, what people call it, and whether less is better."""

    name: str
    title: str
    lowest_first: bool = False

    @property
    def choice(self) -> str:
        """As one chooses it: `by accuracy`."""
        title = self.title
        if current_language() == ENGLISH:
            title = title[0].lower() + title[1:]
        return gettext("by {measure}").format(measure=title)


@dataclass(frozen=True, slots=True)
class LeaderboardLine:
    """One line; those with equal figures share a place."""

    place: int
    name: str
    value: str
    own: bool


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """What is shown.

    Attributes:
        measure: what ranks; lines: the best first.
        own_place: of the visitor, whether they are on it or not; None: nothing of theirs is accepted.
    """

    measure: Measure
    lines: tuple[LeaderboardLine, ...]
    own_place: int | None
    own_value: str


def measures_of(service: WebService, task: AssignedTask) -> tuple[Measure, ...]:
    """What the learners of a task can be ranked by."""
    known = cached_task(service, task.task, task.terms.version)
    metrics = () if known is None else known.metrics
    return (
        Measure(POINTS, gettext("Points")),
        *(Measure(one.name, one.heading, one.direction is Direction.MIN) for one in metrics),
        *(Measure(name, gettext(title), lowest_first) for name, title, lowest_first in _OF_EVERY_RUN),
    )


def leaderboard(
    service: WebService, task: AssignedTask, grading: TaskGrading, person_id: int
) -> Leaderboard | None:
    """The leaderboard of a task as this person sees it; None where the course has none for it."""
    if grading.leaderboard is None:
        return None
    measure = next(
        (one for one in measures_of(service, task) if one.name == grading.leaderboard),
        Measure(grading.leaderboard, grading.leaderboard, grading.lowest_first),
    )
    # Who wants no name shown is read for themselves alone.
    candidates = [
        one
        for one in ranked_attempts(service.store, task.id)
        if one.name is not None or one.person_id == person_id
    ]
    values = {one.person_id: _value(service, one, measure.name) for one in candidates}
    ranked = sorted(
        (one for one in candidates if values[one.person_id] is not None),
        key=lambda one: (_order(values[one.person_id], measure), (one.name or "").casefold()),
    )
    seen = [one for one in ranked if one.name is not None]
    own = next((one for one in ranked if one.person_id == person_id), None)
    return Leaderboard(
        measure,
        tuple(
            LeaderboardLine(
                _place(one, seen, values, measure),
                one.name or "",
                _text(values[one.person_id]),
                one.person_id == person_id,
            )
            for one in seen[:_MOST]
        ),
        None if own is None else _place(own, seen, values, measure),
        "" if own is None else _text(values[person_id]),
    )


def _place(
    one: RankedAttempt,
    seen: Sequence[RankedAttempt],
    values: dict[int, float | None],
    measure: Measure,
) -> int:
    mine = _order(values[one.person_id], measure)
    return 1 + sum(_order(values[other.person_id], measure) < mine for other in seen)


def _order(value: float | None, measure: Measure) -> float:
    assert value is not None, "who has none is not ranked"
    return value if measure.lowest_first else -value


def _text(value: float | None) -> str:
    return "" if value is None else points_text(value)


def _value(service: WebService, one: RankedAttempt, name: str) -> float | None:
    return one.points if name == POINTS else _metrics(service.store, one.attempt_id).get(name)


@lru_cache(maxsize=4096)
def _metrics(store: Store, attempt_id: int) -> dict[str, float | None]:
    """The figures of a grade as learners read them; a grade never changes."""
    stored = grade_of(store, attempt_id)
    try:
        grade = None if stored is None else from_json(stored.document)
    except ValueError:
        grade = None
    return {} if grade is None else for_audience(grade, Audience.LEARNER).metrics
