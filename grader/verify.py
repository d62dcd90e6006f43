"""Judge the tasks' own submissions and hold each outcome against what its folder and header promise.

A task that cannot be proved this way is not offered to learners.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from grader import outcomes
from grader.catalog import find_tasks, load_task, read_submission
from grader.catalog.changes import changes_since
from grader.catalog.selection import Shard, select
from grader.checks.rule import load_rules
from grader.errors import InfraError
from grader.model.attempt import Attempt
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.task import Profile, Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import Options, Pipeline
from grader.run.runtime import Progress

_POINTS_SLACK = 0.01
"""Points are rounded to hundredths."""


def verify(
    names: tuple[str, ...],
    options: Options,
    on_progress: Callable[[Progress], None],
    on_case: Callable[[VerifyCase], None],
    *,
    only: str | None = None,
    changed_since: str | None = None,
    shard: Shard | None = None,
    repeat: int = 1,
    cached: bool = False,
    keep: Path | None = None,
) -> tuple[VerifyCase, ...]:
    """Judge every promised submission of the named tasks (all, when none is named), each `repeat` times.

    Nothing is started where no submission has to be run.

    Args:
        names: tasks.
        options: how to run.
        on_progress: told signs of life.
        on_case: told each case as soon as it is known.
        only: keep submissions whose path below the task's folder contains this text.
        changed_since: keep those whose outcome may differ from that of this git revision.
        shard: keep this share of them.
        repeat: times to judge each.
        cached: take outcomes that are kept from earlier, and keep those of now.
        keep: folder for the attempts; None throws them away.

    Raises:
        UsageError: unknown task or revision, or no submission has such a name.
        TaskError: a task has a mistake.
    """
    tasks = [load_task(name) for name in names or find_tasks()]
    changes = changes_since(changed_since) if changed_since is not None else None
    todo = select(tasks, only=only, changes=changes, shard=shard) * repeat
    cases = []
    pipeline, running = Pipeline(options, on_progress), False
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grader-verify-")))
        for number, (task, promised) in enumerate(todo):
            folder = (keep or scratch) / f"{number:03d}-{task.name}-{promised.name.replace('/', '-')}"
            case = _skipped(pipeline, task, promised)
            if case is None and cached:
                case = outcomes.recall(deciding_facts(pipeline, task, promised))
            if case is None:
                if not running:
                    stack.enter_context(pipeline)
                    running = True
                case = _verify_one(pipeline, task, promised, folder)
                if cached:
                    # Asked again: the run may have made the calibration that it was held against.
                    outcomes.remember(deciding_facts(pipeline, task, promised), case)
            on_case(case)
            cases.append(case)
    return tuple(cases)


def deciding_facts(pipeline: Pipeline, task: Task, promised: PromisedSubmission) -> dict[str, object]:
    """Everything that decides the outcome of judging this submission here and now."""
    setting, options = pipeline.setting(task), pipeline.options
    return {
        **outcomes.world(),
        "task": task.name,
        "task_version": task.version,
        "submission": promised.name,
        "digest": read_submission(promised.path).digest,
        "profile": setting.profile.name,
        "nproc_per_node": setting.nproc_per_node,
        "nnodes": setting.nnodes,
        "dataset": f"{setting.dataset.name} {setting.dataset.version}",
        "runtime": pipeline.runtime.name,
        "launcher": setting.launcher,
        "seed": options.seed,
        "timed": options.timed,
        "calibrated": pipeline.calibrated(setting) if options.timed else "",
    }


def _skipped(pipeline: Pipeline, task: Task, promised: PromisedSubmission) -> VerifyCase | None:
    """A case without a run, where one rank is started and the flaw is one of several; None otherwise."""
    setting = pipeline.setting(task)
    if promised.verdict == Verdict.ACCEPTED or not _alone(setting.world_size, setting.profile):
        return None
    return _unsaid(task, promised, "One rank does not show what goes wrong among several.")


def _only_late(task: Task, promised: PromisedSubmission, attempt: Attempt) -> bool:
    """Whether nothing but its time was to reject a submission, and the clock was left out."""
    clock = any(item.must and item.metric == "time" for item in task.rubric)
    left_out = attempt.task.target("time") is None
    promises_no_other = promised.verdict == Verdict.REJECTED and not promised.codes
    return clock and left_out and promises_no_other and attempt.grade.verdict is Verdict.ACCEPTED


def _unsaid(task: Task, promised: PromisedSubmission, why: str) -> VerifyCase:
    return VerifyCase(
        task=task.name,
        submission=promised.path.relative_to(task.folder / "submissions").as_posix(),
        expected_verdict=promised.verdict,
        verdict="",
        expected_codes=tuple(sorted(promised.codes)),
        codes=(),
        seconds=0.0,
        message="",
        ok=True,
        skipped=why,
    )


def _alone(world_size: int, profile: Profile | None) -> bool:
    """Whether one rank is started where the task means several to be."""
    return world_size == 1 and profile is not None and profile.nproc_per_node > 1


def _verify_one(pipeline: Pipeline, task: Task, promised: PromisedSubmission, folder: Path) -> VerifyCase:
    began = time.monotonic()
    try:
        attempt, _ = pipeline.grade(task, read_submission(promised.path), folder)
        if _only_late(task, promised, attempt):
            return _unsaid(task, promised, "All that is wrong with it is its time, which was left out.")
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


def _points_hold(attempt: Attempt) -> bool:
    """Whether all points can be earned here: not where the clock is left out, nor on one rank alone."""
    whole = attempt.task.max_points > 100 - _POINTS_SLACK
    return whole and not _alone(attempt.grade.world_size, attempt.task.profile(attempt.grade.profile))


def found_codes(attempt: Attempt) -> tuple[str, ...]:
    """Codes of all findings, those for staff included, sorted, each once."""
    return tuple(sorted({finding.code for finding in attempt.grade.findings}))


def broken_promises(promised: PromisedSubmission, attempt: Attempt) -> list[str]:
    """What the outcome and the promise disagree about, as sentences; empty when it was kept.

    A promise holds for every number of ranks; on one rank alone, what only several can show may be missing.
    """
    grade = attempt.grade
    broken = []
    if grade.verdict.value != promised.verdict:
        broken.append(f"verdict {grade.verdict.value}, promised {promised.verdict} ({grade.verdict_reason})")
    codes, expected = set(found_codes(attempt)), set(promised.codes)
    # A busy machine must not break a promise that says nothing about its clock.
    codes -= {rule.code for rule in load_rules() if rule.clocked} - expected
    if codes - expected:
        broken.append(f"found but not promised: {' '.join(sorted(codes - expected))}")
    if expected - codes and not _alone(grade.world_size, attempt.task.profile(grade.profile)):
        broken.append(f"promised but not found: {' '.join(sorted(expected - codes))}")
    if grade.verdict is Verdict.ACCEPTED:
        errors = sorted({f.code for f in grade.findings if f.severity is Severity.ERROR})
        if errors:
            broken.append(f"accepted with findings of severity error: {' '.join(errors)}")
    if promised.points is not None and _points_hold(attempt):
        low, high = promised.points
        if not low - _POINTS_SLACK <= grade.points <= high + _POINTS_SLACK:
            wanted = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            broken.append(f"{grade.points:g} points, promised {wanted}")
    for marker in promised.markers:
        places = {
            (place.path, place.line) for f in grade.findings if f.code == marker.code for place in f.where
        }
        path, line = marker.where.path, marker.where.line
        if marker.code in codes and (path, line) not in places:
            seen = ", ".join(f"{p}:{n}" for p, n in sorted(places)) or "no line"
            broken.append(f"{marker.code} points at {seen}, the marker stands at {path}:{line}")
    return broken
