"""A text held against a task before anything runs: findings sorted by what they come to there, as a grade's cards are.

The rules that the task judges, its rubric, its scale and its profile decide, and nothing else: what is told before
handing in and what a grade says afterwards of the same fault never differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from grader.catalog.tasks.kept_tasks import tasks_folder
from grader.checks.limited_reading import read_within
from grader.checks.lint import lint_script
from grader.checks.readiness import steps_for
from grader.checks.rubric_step import RubricStep
from grader.checks.rule_failures import parted
from grader.checks.source.script import SyntaxProblem, parse
from grader.evaluate.points.foresight import Foresight, foresee
from grader.model.finding import Finding
from grader.model.notebook_lines import by_cell
from grader.model.submission import Submission
from grader.model.task import Task
from grader.plugins.garbage import without_collections
from grader.readers import ReadingLimits
from grader.report.findings.cards import COSTS, costs_as_read, weigh
from grader.settings import in_course


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a submission shows for one task: findings, and each item as a step; none where it does not parse.

    A finding's severity is what it comes to: `error` gates, `warning` costs the points that its details tell, and
    `hint` is free. `failures`: rules that failed on it, see `checks.rule_failures`.
    """

    findings: tuple[Finding, ...]
    steps: tuple[RubricStep, ...]
    failures: tuple[Finding, ...] = ()


def read_for(task: Task, submission: Submission, profile: str = "") -> Reading:
    """Read a submission's text and hold it against a task.

    Args:
        task: what it is held against; submission: what is read.
        profile: where it would be judged; the task's first where it has none of that name.
    """
    # A reader is a process of its own, which knows the rules of no course but by its task.
    with in_course(tasks_folder(task)), without_collections():
        script = parse(submission, launched=task.launcher != "python")
        if script.syntax_errors:
            return Reading(lint_script(script), ())
        seen = foresee(script, task, task.profile(profile) or task.profiles[0])
        known, failures = parted(seen.findings)
        findings = _weighed(known, seen)
        # What cannot show there is worth nothing, so nothing of it is asked.
        shown = tuple(replace(one.item, points=one.points) for one in seen.items if not one.left_out)
        steps = steps_for(script, submission, replace(task, rubric=shown), findings)
        return by_cell(Reading(findings, steps, failures), submission)


def read_within_limits(
    limits: ReadingLimits, task: Task, submission: Submission, profile: str = ""
) -> Reading:
    """As `read_for`; of a text that cannot be read within limits that alone.

    Raises:
        BusyError: the machine has too much else to do.
    """
    return read_within(limits, submission, read_for, task, submission, profile, otherwise=_unread)


def _unread(problem: SyntaxProblem) -> Reading:
    return Reading((problem.finding(),), ())


def _weighed(findings: Iterable[Finding], seen: Foresight) -> tuple[Finding, ...]:
    """The findings with what they come to, and with what they would cost, which counts no points twice."""
    effects = [replace(one, severity=weigh(one, seen.rubric, seen.gating)) for one in findings]
    costs = costs_as_read(effects, seen.rubric)
    told = (
        replace(one, details={**one.details, COSTS: costs[id(one)]}) if costs[id(one)] else one
        for one in effects
    )
    return tuple(sorted(told, key=lambda one: one.severity.rank))
