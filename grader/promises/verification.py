"""Hold the tasks' own submissions against what they promise: verdict, findings, points, lines.

Each is run for real, or, where evidence of an earlier run still fits, judged again from that. What a submission
promises is the catalog's to read; nothing is printed here.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from grader.errors import InfraError
from grader.judging.judge import judge
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.model.run_options import Options
from grader.model.task import Profile, Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import OnProgress, Pipeline
from grader.promises.comparison import (
    case_name,
    case_of,
    effects_of,
    not_run,
    one_rank_of_several,
    promise_case,
)
from grader.promises.kept_evidence import KeptRun, run_key
from grader.promises.parallel_pipelines import side_by_side
from grader.report.audience import Audience
from grader.report.folder import write_reports
from grader.report.json_report import to_json
from grader.report.words.wording import plural
from grader.run.workspace import Workspace
from grader.settings import settings


class Reuse(Enum):
    """Whether evidence of earlier runs is judged again in the place of a run; `ONLY`: and nothing is run."""

    NEVER = "never"
    WHERE_KEPT = "where kept"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class Verification:
    """How promises are held.

    Attributes:
        options: how to run; runtime: where, None for the setting's.
        reuse: what to do with evidence of earlier runs.
        jobs: submissions to run side by side; those that a clock decides about are run alone, after the others.
        folder: for the attempts and their reports; None throws them away.
        besides: the runtime, as its cases name it, where others are judged in another.
    """

    options: Options = field(default_factory=Options)
    runtime: str | None = None
    reuse: Reuse = Reuse.NEVER
    jobs: int = 1
    folder: Path | None = None
    besides: str = ""


def _silent(_line: str) -> None:
    """Nobody asked."""


def verify(
    todo: Sequence[tuple[Task, PromisedSubmission]],
    how: Verification,
    on_progress: OnProgress,
    on_case: Callable[[VerifyCase], None],
    on_rerun: Callable[[str], None] = _silent,
    on_start: Callable[[str], None] = _silent,
) -> tuple[VerifyCase, ...]:
    """Judge promised submissions and compare. Nothing is started where no submission has to be run.

    Args:
        todo: submissions of tasks; one that stands there twice is judged twice.
        how: where and how.
        on_progress: told signs of life.
        on_case: told each case as soon as it is known.
        on_rerun: told in one line what has changed since evidence was kept, and how much is run again for it.
        on_start: told each case that is run, by its name, as it begins; by several threads where there are jobs.

    Returns:
        One case for each, in the same order.

    Raises:
        UsageError: data is missing, or there is no such runtime or profile.
    """
    cases: dict[int, VerifyCase] = {}
    again: Counter[tuple[str, ...]] = Counter()
    idle = Pipeline(how.runtime)
    with tempfile.TemporaryDirectory(prefix="grader-verify-") as scratch:

        def folder(number: int) -> Path:
            task, promised = todo[number]
            name = f"{number:03d}-{task.name}-{promised.name.replace('/', '-')}"
            return (how.folder or Path(scratch)) / name

        def run(pipeline: Pipeline, number: int, on_sign: OnProgress) -> VerifyCase:
            on_start(case_name(*todo[number], how.besides))
            case = _run(pipeline, *todo[number], how, folder(number), on_sign)
            return _with_way_on(case, how, folder(number))

        for number, (task, promised) in enumerate(todo):
            case = _skipped(idle, task, promised, how.options)
            if case is None and how.reuse is not Reuse.NEVER:
                kept = _entry(idle, task, promised, how.options)
                case = _replayed(kept, task, promised, how, folder(number))
                if case is None and (changed := kept.changed()):
                    again[changed] += 1
            if case is not None:
                cases[number] = _with_way_on(case, how, folder(number))
                on_case(cases[number])
        for changed, num in again.items():
            on_rerun(
                f"Changed since they were run: {', '.join(changed)}. Run again: {plural(num, 'submission')}."
            )
        left = [n for n in range(len(todo)) if n not in cases]
        judged = side_by_side(
            left,
            run,
            runtime=how.runtime,
            jobs=how.jobs,
            alone=lambda number: how.options.timed and clock_decides(*todo[number]),
            on_progress=on_progress,
            on_done=on_case,
        )
    cases.update(zip(left, judged, strict=True))
    return tuple(cases[number] for number in range(len(todo)))


def clock_decides(task: Task, promised: PromisedSubmission) -> bool:
    """Whether how long a submission takes can decide if it keeps its promise: by its acceptance or by its points.

    What is rejected for something else, or did not end, is judged without the clock: no calibration is waited for.
    """
    if task.target("time") is None:
        return False
    refused_for_time = promised.verdict == Verdict.REJECTED and not promised.codes
    return promised.verdict == Verdict.ACCEPTED or promised.points is not None or refused_for_time


def _promised_options(options: Options, task: Task, promised: PromisedSubmission) -> Options:
    """The options for one of the task's own: timed only where that decides, classes under the numbers as prepared."""
    timed = options.timed and clock_decides(task, promised)
    return replace(options, timed=timed, own_numbers=False)


def _entry(pipeline: Pipeline, task: Task, promised: PromisedSubmission, options: Options) -> KeptRun:
    setting = pipeline.setting(task, _promised_options(options, task, promised))
    key = run_key(setting, promised.submission, pipeline.runtime.name)
    return KeptRun(task.name, promised.name, key)


def _skipped(
    pipeline: Pipeline, task: Task, promised: PromisedSubmission, options: Options
) -> VerifyCase | None:
    """A case without a run, where one rank is started and the flaw is one of several; None otherwise."""
    profile = task.profile(options.profile or settings().profile)
    if profile is not None and num_nodes(options, profile) > 1 and not pipeline.runtime.spans_nodes:
        return not_run(
            task, promised, f"The {pipeline.runtime.name} runtime has one node; --runtime docker has several."
        )
    setting = pipeline.setting(task, options)
    if promised.verdict == Verdict.ACCEPTED or not one_rank_of_several(setting.world_size, setting.profile):
        return None
    return not_run(task, promised, "One rank does not show what goes wrong among several.")


def num_nodes(options: Options, profile: Profile) -> int:
    """Machines that a run on this profile is spread over."""
    return options.nnodes or profile.nnodes


def _with_way_on(case: VerifyCase, how: Verification, folder: Path) -> VerifyCase:
    """The case as it is told: where it was judged, and how its author comes to see what broke its promise."""
    report = Workspace(folder).report
    if case.ok or case.verdict == Verdict.JUDGE_ERROR:
        way_on = ""
    elif how.folder is not None:
        way_on = f"Its report: {report}"
    else:
        only = f"grader verify {case.task} --only {case.submission} --keep build/verify"
        way_on = f"To see its report: {only}{' --replay' * case.cached}"
    return replace(case, runtime=how.besides, way_on=way_on)


def _run(
    pipeline: Pipeline,
    task: Task,
    promised: PromisedSubmission,
    how: Verification,
    folder: Path,
    on_progress: OnProgress,
) -> VerifyCase:
    began = time.monotonic()
    options = _promised_options(how.options, task, promised)
    try:
        attempt, workspace = pipeline.grade(
            task, promised.submission, options=options, on_progress=on_progress, out=folder
        )
    except InfraError as error:
        return promise_case(task, promised, Verdict.JUDGE_ERROR.value, (), (), began, [str(error)])
    if how.folder is not None:
        write_reports(attempt, workspace)
    case = case_of(task, promised, attempt, began)
    # What broke once is always looked at again.
    if case.ok and not case.skipped:
        workspace.grade.write_text(to_json(attempt.grade, audience=Audience.STAFF), encoding="utf-8")
        _entry(pipeline, task, promised, how.options).keep(workspace)
    return case


def _replayed(
    kept: KeptRun, task: Task, promised: PromisedSubmission, how: Verification, folder: Path
) -> VerifyCase | None:
    """What the judge of now makes of an earlier run; None where there is no evidence of one that still fits."""
    began = time.monotonic()
    found = kept.fetch(folder)
    if found is None:
        if how.reuse is Reuse.ONLY:
            changed = kept.changed()
            since = f" Changed since it was run: {', '.join(changed)}." if changed else ""
            return not_run(task, promised, f"No evidence is kept of a run as it would be now.{since}")
        return None
    evidence, before = found
    attempt = judge(evidence, task)
    case = case_of(task, promised, attempt, began)
    effects = effects_of(before, attempt.grade)
    if how.folder is not None:
        write_reports(attempt, Workspace(folder))
    return replace(case, cached=True, effects=effects)
