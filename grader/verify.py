"""Judge the tasks' own submissions and hold each outcome against what its folder and header promise.

A task that cannot be proved this way is not offered to learners.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from grader import outcomes
from grader.catalog import find_tasks, load_task, read_submission
from grader.catalog.changes import changes_since
from grader.catalog.selection import Shard, select
from grader.checks.rule import load_rules
from grader.errors import InfraError
from grader.lanes import side_by_side
from grader.model.attempt import Attempt
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.task import Profile, Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import Options, Pipeline
from grader.report.folder import write_reports
from grader.run.runtime import Progress
from grader.settings import settings

_POINTS_SLACK = 0.01
"""Points are rounded to hundredths."""


def verify(
    names: Iterable[str],
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
    jobs: int = 1,
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
        keep: folder for the attempts and their reports; None throws them away.
        jobs: submissions to judge side by side; those that a clock decides about are judged alone, after the others.

    Raises:
        UsageError: unknown task or revision, or no submission has such a name.
        TaskError: a task has a mistake.
    """
    tasks = [load_task(name) for name in tuple(names) or find_tasks()]
    changes = changes_since(changed_since) if changed_since is not None else None
    todo = select(tasks, only=only, changes=changes, shard=shard) * repeat
    asked = Pipeline(options, on_progress)
    cases: dict[int, VerifyCase] = {}
    for number, (task, promised) in enumerate(todo):
        _set_clock(asked, options, task, promised)
        case = _skipped(asked, task, promised)
        if case is None and cached:
            case = outcomes.recall(deciding_facts(asked, task, promised))
        if case is not None:
            on_case(case)
            cases[number] = case
    left = [n for n in range(len(todo)) if n not in cases]
    with tempfile.TemporaryDirectory(prefix="grader-verify-") as scratch:

        def judge(pipeline: Pipeline, number: int) -> VerifyCase:
            task, promised = todo[number]
            _set_clock(pipeline, options, task, promised)
            name = f"{number:03d}-{task.name}-{promised.name.replace('/', '-')}"
            case = _verify_one(pipeline, task, promised, (keep or Path(scratch)) / name, keep is not None)
            if cached:
                # Asked again: the run may have made the calibration that it was held against.
                outcomes.remember(deciding_facts(pipeline, task, promised), case)
            return case

        judged = side_by_side(
            left,
            judge,
            options=options,
            jobs=jobs,
            alone=lambda number: options.timed and clock_decides(*todo[number]),
            on_progress=on_progress,
            on_done=on_case,
        )
    cases.update(zip(left, judged, strict=True))
    return tuple(cases[number] for number in range(len(todo)))


def clock_decides(task: Task, promised: PromisedSubmission) -> bool:
    """Whether how long a submission takes can decide if it keeps its promise: by its acceptance or by its points.

    What is rejected for something else is judged without the clock: no calibration is waited for.
    """
    if task.target("time") is None:
        return False
    return promised.verdict == Verdict.ACCEPTED or promised.points is not None or not promised.codes


def _set_clock(pipeline: Pipeline, options: Options, task: Task, promised: PromisedSubmission) -> None:
    pipeline.options = replace(options, timed=options.timed and clock_decides(task, promised))


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
    profile = task.profile(pipeline.options.profile or settings().profile)
    if profile is not None and num_nodes(pipeline, profile) > 1 and not pipeline.runtime.spans_nodes:
        return _unsaid(
            task, promised, f"The {pipeline.runtime.name} runtime has one node; --runtime docker has several."
        )
    setting = pipeline.setting(task)
    if promised.verdict == Verdict.ACCEPTED or not _alone(setting.world_size, setting.profile):
        return None
    return _unsaid(task, promised, "One rank does not show what goes wrong among several.")


def num_nodes(pipeline: Pipeline, profile: Profile) -> int:
    """Machines that a run on this profile is spread over."""
    return pipeline.options.nnodes or profile.nnodes


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


def _verify_one(
    pipeline: Pipeline, task: Task, promised: PromisedSubmission, folder: Path, reports: bool
) -> VerifyCase:
    began = time.monotonic()
    try:
        attempt, workspace = pipeline.grade(task, read_submission(promised.path), folder)
        if reports:
            write_reports(attempt, workspace)
    except InfraError as error:
        return _case(task, promised, Verdict.JUDGE_ERROR.value, (), (), began, [str(error)])
    return case_of(task, promised, attempt, began)


def case_of(task: Task, promised: PromisedSubmission, attempt: Attempt, began: float) -> VerifyCase:
    """What an attempt at one of the task's own submissions shows; `began`: when it began, on the monotonic clock."""
    if _only_late(task, promised, attempt):
        return _unsaid(task, promised, "All that is wrong with it is its time, which was left out.")
    short = tuple(r.id for r in attempt.grade.rubric if r.earned < r.points - _POINTS_SLACK)
    verdict, codes = attempt.grade.verdict.value, found_codes(attempt)
    return _case(task, promised, verdict, codes, short, began, broken_promises(promised, attempt))


def _case(
    task: Task,
    promised: PromisedSubmission,
    verdict: str,
    codes: tuple[str, ...],
    short: tuple[str, ...],
    began: float,
    broken: list[str],
) -> VerifyCase:
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
        short=short,
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
