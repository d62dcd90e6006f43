"""What a task's targets ask, in the reader's language; reports have the judge's own words for the same, in English."""

from __future__ import annotations

from grader.model.metric import Direction
from grader.model.task import TIME, Target, Task
from grader.translation import gettext, with_own_signs


def asked_figures(task: Task) -> tuple[tuple[str, str], ...]:
    """Of each target what it measures, as it begins a line, and what is asked of it."""
    return tuple((_heading(task, target), _asked(task, target)) for target in task.targets)


def _heading(task: Task, target: Target) -> str:
    metric = task.metric(target.metric)
    if metric is not None:
        return metric.heading
    return gettext("Time") if target.metric == TIME else target.metric.capitalize()


def _asked(task: Task, target: Target) -> str:
    metric = task.metric(target.metric)
    if metric is None or not target.levels:
        factor = with_own_signs(f"{target.factor or 0:g}")
        return gettext("at most {factor} times the slowest accepted solution’s").format(factor=factor)
    text = (
        gettext("at least {level} on {dataset}")
        if metric.direction is Direction.MAX
        else gettext("at most {level} on {dataset}")
    )
    return ", ".join(
        text.format(level=with_own_signs(metric.text(level)), dataset=dataset)
        for dataset, level in target.levels.items()
    )
