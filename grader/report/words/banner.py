"""Verdict, points, lateness, an instructor's decision and a hold, as the one sentence that every page begins with.

In the present language, as pages and mails are; reports are made where that is English.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Grade, Verdict
from grader.report.words.wording import HEADLINES, TONES, VERDICTS, points_text
from grader.translation import counted, gettext, moment_text


def _utc(at: datetime) -> str:
    return f"{moment_text(at)} UTC"


def headline(result: AttemptResult, when: Callable[[datetime], str] = _utc) -> str:
    """The sentence's first words: `Accepted`, `Accepted by an instructor`, `With the instructors since …`.

    `when`: how a page writes a moment.
    """
    if result.held_since is not None:
        return gettext("With the instructors since {when}").format(when=when(result.held_since))
    if not result.decided:
        return HEADLINES[result.verdict]
    if result.verdict is Verdict.ACCEPTED:
        return gettext("Accepted by an instructor")
    if result.verdict is Verdict.REJECTED:
        return gettext("Not accepted by an instructor")
    return gettext("Set to “{verdict}” by an instructor").format(verdict=VERDICTS[result.verdict])


def sentence(result: AttemptResult, when: Callable[[datetime], str] = _utc) -> str:
    """The whole of it, such as `Accepted by an instructor: 92 of 100 (judged 76.67; 2 days late, −10 %)`."""
    return f"{headline(result, when)}: {outcome(result)}"


def outcome(result: AttemptResult) -> str:
    """What stands behind the headline: points, and in brackets why they are not those that were judged."""
    if result.verdict is Verdict.JUDGE_ERROR:
        return gettext("it does not count")
    if result.verdict is Verdict.HELD:
        return gettext("it counts as nothing until they decide")
    asides = "; ".join(_asides(result))
    points = _points(result)
    return f"{points} ({asides})" if asides else points


def as_judged(grade: Grade, result: AttemptResult) -> str:
    """Why it was judged as it was, below the banner; named as the judge's where an instructor decided what counts."""
    if not result.decided:
        return grade.verdict_reason
    judged = f"As judged: {HEADLINES[grade.verdict]}."
    # What a held attempt waited for is over once it was decided.
    return judged if grade.verdict is Verdict.HELD else f"{judged} {grade.verdict_reason}"


@dataclass(frozen=True, slots=True)
class SumLine:
    """A line below the sum of a rubric; `change`: such as `−20`, "" where it changes no number; `last`: what counts."""

    text: str
    change: str
    last: bool = False


def sum_lines(result: AttemptResult, by: str = "an instructor") -> tuple[SumLine, ...]:
    """From what was judged to what counts, a line for each change and one for the end; none where nothing changed it.

    `by`: who decided, as a page may name them.
    """
    if result.held_since is not None:
        return (SumLine("Held: counts as nothing until the instructors decide", ""), _end(result))
    if result.decided:
        # An override is given as it is: lateness was before the instructor's eyes and is not taken off again.
        return (SumLine(f"Set by {by}", _change(result)), _end(result))
    lines = []
    if result.comment_points:
        lines.append(SumLine("Comments", signed(result.comment_points)))
    if lost := round(result.points - result.judged_points - result.comment_points, 2):
        lines.append(SumLine(_late(result), signed(lost)))
    return (*lines, _end(result)) if lines else ()


def _end(result: AttemptResult) -> SumLine:
    return SumLine("Counts", _points(result), last=True)


def _points(result: AttemptResult) -> str:
    points, most = points_text(result.points), points_text(result.max_points)
    return gettext("{points} of {max_points}").format(points=points, max_points=most)


def _change(result: AttemptResult) -> str:
    return signed(round(result.points - result.judged_points, 2))


def signed(change: float) -> str:
    """A change of points, such as `−20` or `+2.5`."""
    return f"{'+' if change > 0 else '−' if change < 0 else '±'}{points_text(abs(change))}"


def _late(result: AttemptResult) -> str:
    told = [counted("%(num)s day late", "%(num)s days late", result.late_days)]
    if result.free_days:
        told.append(counted("%(num)s late day used", "%(num)s late days used", result.free_days))
    if result.late_loss:
        told.append(f"−{result.late_loss:.0%}".replace("%", " %"))
    return ", ".join(told)


def tone(result: AttemptResult) -> str:
    """`good`, `bad` or `warn`."""
    return TONES[result.verdict]


def _asides(result: AttemptResult) -> list[str]:
    asides = []
    if result.decided or result.points != result.judged_points:
        asides.append(_judged(result))
    if result.comment_points and not result.decided:
        asides.append(gettext("comments {points}").format(points=signed(result.comment_points)))
    if result.late_days:
        asides.append(_late(result))
    if result.earlier_scale:
        asides.append(gettext("on an earlier scale"))
    return asides


def _judged(result: AttemptResult) -> str:
    points = points_text(result.judged_points)
    if not result.decided or result.judged_verdict in (result.verdict, Verdict.HELD):
        return gettext("judged {points}").format(points=points)
    verdict = VERDICTS[result.judged_verdict]
    return gettext("judged {verdict}, {points}").format(verdict=verdict, points=points)
