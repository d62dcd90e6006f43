"""Two grades of the same attempt compared: verdict, points, items, targets and measures, line by line, for people."""

from __future__ import annotations

from grader.model.grade import Grade, RubricResult
from grader.report.safe_text import one_line
from grader.report.words.wording import points_text


def grade_changes(before: Grade, after: Grade) -> tuple[str, ...]:
    """What differs, one line each; empty where nothing does. Findings are told as they are by the grade itself."""
    lines = []
    if before.verdict is not after.verdict:
        lines.append(f"verdict: {before.verdict} → {after.verdict}")
    if before.points != after.points:
        lines.append(f"points: {points_text(before.points)} → {points_text(after.points)}")
    items = {item.id: item for item in before.rubric}
    for item in after.rubric:
        then = items.pop(item.id, None)
        if then is None or _worth(then) != _worth(item):
            old = "not asked for" if then is None else _worth(then)
            lines.append(f"“{one_line(item.title)}”: {old} → {_worth(item)}")
    lines += [f"“{one_line(item.title)}”: {_worth(item)} → not asked for" for item in items.values()]
    for name in sorted(before.metrics.keys() | after.metrics.keys()):
        old_value, new_value = before.metrics.get(name), after.metrics.get(name)
        if old_value != new_value:
            lines.append(f"{one_line(name)}: {_number(old_value)} → {_number(new_value)}")
    came = sorted({one.code for one in after.findings} - {one.code for one in before.findings})
    went = sorted({one.code for one in before.findings} - {one.code for one in after.findings})
    lines += [f"new: {code}" for code in came] + [f"gone: {code}" for code in went]
    return tuple(lines)


def _worth(item: RubricResult) -> str:
    return f"{points_text(item.earned)} of {points_text(item.points)}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
