"""Attempts as a small curve: points over time. Says where things lie; the template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.report.wording import TONES, VERDICTS, points_text
from grader.store.attempts import StoredAttempt

WIDTH, HEIGHT = 320, 110
_LEFT, _RIGHT, _TOP, _BOTTOM = 28, 8, 10, 22
_MOST = 20


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """One judged attempt: where it lies, its tone, and what it says when pointed at."""

    x: float
    y: float
    tone: str
    text: str
    attempt_id: int


@dataclass(frozen=True, slots=True)
class PointsChart:
    """The curve: `line` for an SVG polyline, the height of no points and of all, a sentence for who cannot see it."""

    dots: tuple[ChartPoint, ...]
    line: str
    low: float
    high: float
    summary: str


def points_chart(history: Sequence[StoredAttempt]) -> PointsChart | None:
    """The last judged attempts, oldest first; None where there are fewer than two.

    Args:
        history: attempts, newest first.
    """
    judged = [one for one in reversed(history) if one.points is not None and one.max_points][-_MOST:]
    if len(judged) < 2:
        return None
    low, high = float(HEIGHT - _BOTTOM), float(_TOP)
    step = (WIDTH - _LEFT - _RIGHT) / (len(judged) - 1)
    dots = []
    for index, one in enumerate(judged):
        share = min(1.0, max(0.0, (one.points or 0.0) / (one.max_points or 1.0)))
        verdict = one.verdict
        text = f"Attempt {one.id}: {points_text(one.points or 0.0)} of {points_text(one.max_points or 0.0)} points"
        dots.append(
            ChartPoint(
                round(_LEFT + index * step, 1),
                round(low - share * (low - high), 1),
                TONES[verdict] if verdict is not None else "quiet",
                f"{text}, {VERDICTS[verdict]}" if verdict is not None else text,
                one.id,
            )
        )
    first, last = judged[0].points or 0.0, judged[-1].points or 0.0
    summary = f"{len(judged)} judged attempts, from {points_text(first)} to {points_text(last)} points."
    return PointsChart(tuple(dots), " ".join(f"{dot.x},{dot.y}" for dot in dots), low, high, summary)
