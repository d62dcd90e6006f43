"""Judge the tasks' own submissions and hold each outcome against what its folder and header promise.

A task that cannot be proved this way is not offered to learners.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from grader.catalog import find_tasks, load_task, read_submission, submissions_of
from grader.checks.rule import load_rules
from grader.errors import InfraError, UsageError
from grader.model.attempt import Attempt
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.task import Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import Options, Pipeline
from grader.run.runtime import Progress


def verify(
    names: tuple[str, ...],
    options: Options,
    on_progress: Callable[[Progress], None],
    on_case: Callable[[VerifyCase], None],
    *,
    only: str | None = None,
    repeat: int = 1,
    keep: Path | None = None,
) -> tuple[VerifyCase, ...]:
    """Judge every promised submission of the named tasks (all, when none is named), each `repeat` times.

    Args:
        names: tasks.
        options: how to run.
        on_progress: told signs of life.
        on_case: told each case as soon as it is known.
        only: keep submissions whose path below the task's folder contains this text.
        repeat: times to judge each.
        keep: folder for the attempts; None throws them away.

    Raises:
        UsageError: unknown task, or nothing to verify.
        TaskError: a task has a mistake.
    """
    tasks = [load_task(name) for name in names or find_tasks()]
    todo = [
        (task, promised)
        for _ in range(repeat)
        for task in tasks
        for promised in submissions_of(task)
        if only is None or only in promised.path.relative_to(task.folder).as_posix()
    ]
    if not todo:
        raise UsageError(f"no submission matches --only {only!r}; `grader tasks TASK` lists them")
    cases = []
    with (
        tempfile.TemporaryDirectory(prefix="grader-verify-") as scratch,
        Pipeline(options, on_progress) as pipeline,
    ):
        for number, (task, promised) in enumerate(todo):
            folder = (keep or Path(scratch)) / f"{number:03d}-{task.name}-{promised.name.replace('/', '-')}"
            case = _verify_one(pipeline, task, promised, folder)
            on_case(case)
            cases.append(case)
    return tuple(cases)


def _verify_one(pipeline: Pipeline, task: Task, promised: PromisedSubmission, folder: Path) -> VerifyCase:
    began = time.monotonic()
    try:
        attempt, _ = pipeline.grade(task, read_submission(promised.path), folder)
        broken = broken_promises(promised, attempt)
        verdict, codes = attempt.grade.verdict.value, found_codes(attempt)
    except InfraError as error:
        broken, verdict, codes = [str(error)], Verdict.JUDGE_ERROR.value, ()
    return VerifyCase(
        task=task.name,
        submission=promised.path.relative_to(task.folder / "submissions").as_posix(),
        expected_verdict=promised.verdict,
        verdict=verdict,
        expected_codes=tuple(sorted(promised.codes)),
        codes=codes,
        seconds=time.monotonic() - began,
        message="; ".join(broken),
        ok=not broken,
    )


def found_codes(attempt: Attempt) -> tuple[str, ...]:
    """Codes of all findings, those for staff included, sorted, each once."""
    return tuple(sorted({finding.code for finding in attempt.grade.findings}))


def broken_promises(promised: PromisedSubmission, attempt: Attempt) -> list[str]:
    """What the outcome and the promise disagree about, as sentences; empty when it was kept."""
    grade = attempt.grade
    broken = []
    if grade.verdict.value != promised.verdict:
        broken.append(f"verdict {grade.verdict.value}, promised {promised.verdict} ({grade.verdict_reason})")
    codes, expected = set(found_codes(attempt)), set(promised.codes)
    # A busy machine must not break a promise that says nothing about its clock.
    codes -= {rule.code for rule in load_rules() if rule.clocked} - expected
    if codes - expected:
        broken.append(f"found but not promised: {' '.join(sorted(codes - expected))}")
    if expected - codes:
        broken.append(f"promised but not found: {' '.join(sorted(expected - codes))}")
    if grade.verdict is Verdict.ACCEPTED:
        errors = sorted({f.code for f in grade.findings if f.severity is Severity.ERROR})
        if errors:
            broken.append(f"accepted with findings of severity error: {' '.join(errors)}")
    for marker in promised.markers:
        places = {
            (place.path, place.line) for f in grade.findings if f.code == marker.code for place in f.where
        }
        path, line = marker.where.path, marker.where.line
        if marker.code in codes and (path, line) not in places:
            seen = ", ".join(f"{p}:{n}" for p, n in sorted(places)) or "no line"
            broken.append(f"{marker.code} points at {seen}, the marker stands at {path}:{line}")
    return broken
