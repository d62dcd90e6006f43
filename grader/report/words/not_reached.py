"""What an early end cost: how many points a run did not come to, and which step it would have had to reach first."""

from __future__ import annotations

from grader.model.grade import Grade, ItemState, Verdict
from grader.report.words.wording import plural, points_text

_STOPPED = {
    Verdict.DEADLOCKED: "the ranks stood still",
    Verdict.CRASHED: "the script crashed",
    Verdict.TIMED_OUT: "the time was up",
    Verdict.OUT_OF_MEMORY: "the memory was used up",
}


def not_reached_sentence(grade: Grade) -> str:
    """One sentence for an attempt whose run ended early, "" for any other and where nothing was left to reach."""
    # What was found wrong is lost, whatever would have come after it.
    items = [
        item
        for item in grade.rubric
        if item.state is ItemState.NOT_REACHED or (item.state is ItemState.PARTLY and not item.codes)
    ]
    missing = round(sum(item.points - item.earned for item in items), 2)
    stopped = _STOPPED.get(grade.verdict)
    if stopped is None or not missing:
        return ""
    points = f"{points_text(missing)} of {points_text(grade.max_points)} points were not reached"
    first = f"{points}, because {stopped} before “{items[0].title}”"
    return f"{first} and {plural(len(items) - 1, 'item')} after it." if items[1:] else f"{first}."
