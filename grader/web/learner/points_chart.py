"""Attempts as a small curve: points over time. Says where things lie; the template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.model.attempt_result import AttemptResult
from grader.report.words.banner import sentence, tone
from grader.report.words.wording import ordinal, points_text
from grader.translation import counted, gettext

WIDTH, HEIGHT = 320, 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 28, 8, 10, 22
_MOST = 20


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One judged attempt: where it lies, its tone, and what it says when pointed at; the list beside it has links."""

    x: float
    y: float
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class PointsChart:
    """The curve: `line` for an SVG polyline, the height of no points and of all, a sentence for who cannot see it.

    `most`: how many points all are.
    """

    dots: tuple[ChartPoint, ...]
    line: str
    low: float
    high: float
    most: str
    summary: str


def points_chart(history: Sequence[tuple[int, AttemptResult]]) -> PointsChart | None:
    """The last judged attempts, oldest first; None where there are fewer than two.

    Args:
        history: attempts with a grade, by the learner's own count and with what they count as, newest first. What is
            held has no points to show before it is decided, and is left out.
    """
    judged = [(n, one) for n, one in reversed(history) if one.held_since is None and one.max_points][-_MOST:]
    if len(judged) < 2:
        return None
    low, high = float(HEIGHT - _BOTTOM), float(_TOP)
    step = (WIDTH - _LEFT - _RIGHT) / (len(judged) - 1)
    dots = tuple(
        ChartPoint(
            round(_LEFT + index * step, 1),
            round(low - min(1.0, max(0.0, one.points / one.max_points)) * (low - high), 1),
            tone(one),
            gettext("{ordinal} attempt: {outcome}").format(ordinal=ordinal(number), outcome=sentence(one)),
        )
        for index, (number, one) in enumerate(judged)
    )
    first, last = judged[0][1].points, judged[-1][1].points
    summary = counted(
        "%(num)s judged attempt, from {first} to {last} points.",
        "%(num)s judged attempts, from {first} to {last} points.",
        len(judged),
    ).format(first=points_text(first), last=points_text(last))
    line = " ".join(f"{dot.x},{dot.y}" for dot in dots)
    return PointsChart(dots, line, low, high, points_text(judged[-1][1].max_points), summary)
