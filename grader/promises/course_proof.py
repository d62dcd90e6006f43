"""Prove a course: that its tasks keep their promises, that full points can be had, that nobody passes by doing nothing.

A task is run where it can be: on the runtime asked for, or, if it spans several machines, on the one that has some.
What could not be run here is said and never counts as proved. The course file itself is the catalog's to read.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from grader.catalog.courses.course_notes import course_notes
from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.submissions.submission_selection import select
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.checks.policy import applicable
from grader.errors import InfraError, TaskError
from grader.model.course import Course
from grader.model.grade import Verdict
from grader.model.run import Ending
from grader.model.run_options import Options
from grader.model.task import Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import OnProgress, Pipeline
from grader.promises.container_check import CONTAINERS, check_containers, for_containers
from grader.promises.parallel_pipelines import side_by_side
from grader.promises.verification import Verification, verify
from grader.run.registry import open_runtime
from grader.run.runtime import Progress

SPANS_NODES = "docker"
"""Where tasks of several machines are proved."""


def skeleton_name(task: str) -> str:
    """What the case of a task's skeleton is called."""
    return f"skeletons/{task}"


@dataclass(frozen=True, slots=True)
class SkeletonCase:
    """How a task's starting point did.

    Attributes:
        task, runtime: where it was run.
        alone: how one process of it ended, "" where one process was not tried.
        verdict: what judging it as a submission gave.
        problem: what must not be, one sentence; "" when all is well.
    """

    task: str
    runtime: str
    alone: str
    verdict: str
    problem: str

    @property
    def name(self) -> str:
        """What it is called in lists of cases."""
        return skeleton_name(self.task)


class Onlooker(Protocol):
    """Who is told how a proof goes."""

    def start(self, name: str) -> None:
        """A submission or a skeleton begins to run; by several threads where there are jobs."""

    def progress(self, sign: Progress) -> None:
        """It is alive."""

    def case(self, case: VerifyCase) -> None:
        """A submission is judged."""

    def skeleton(self, case: SkeletonCase) -> None:
        """A skeleton is judged."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found out about a course.

    Attributes:
        course: the course.
        cases: one per submission and runtime, in the order of the course, and the runtime of each.
        skeletons: one per task and runtime.
        problems: everything that is wrong, as sentences; unproved: what could not be run here.
        notes: what its author should know besides.
    """

    course: Course
    cases: tuple[tuple[str, VerifyCase], ...]
    skeletons: tuple[SkeletonCase, ...]
    problems: tuple[str, ...]
    unproved: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; what could not be run is not wrong."""
        return not self.problems

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Every task with every runtime that it was run in, in the order of the course."""
        been = {(c.task, r) for r, c in self.cases} | {(s.task, s.runtime) for s in self.skeletons}
        order = [i.task for i in self.course.items]
        return tuple(sorted(been, key=lambda pair: (order.index(pair[0]), pair[1])))

    @property
    def seconds(self) -> dict[str, float]:
        """Task → seconds that judging its submissions took."""
        found: dict[str, float] = defaultdict(float)
        for _, case in self.cases:
            found[case.task] += case.seconds
        return dict(found)


def num_runs(course: Course, runtimes: Sequence[str], how: Verification, *, containers: bool = False) -> int:
    """How many submissions and skeletons `prove` judges, for those who wait."""
    tasks, plan = _load(course), _plan(course, runtimes)
    total = sum((len(submissions_of(tasks[name])) + 1) * len(where) for name, where in plan.items())
    for here, names in _places(course, plan, how) if containers and CONTAINERS not in runtimes else ():
        total += len(for_containers(select([tasks[name] for name in names]), here))
    return total


def prove(
    course: Course,
    runtimes: Sequence[str],
    how: Verification,
    onlooker: Onlooker,
    *,
    containers: bool = False,
) -> Proof:
    """Run everything that a course promises.

    Args:
        course: as it was loaded.
        runtimes: where; a task that none of them can run goes to the one that can.
        how: the rest; profile and runtime are the course's and those asked for.
        onlooker: told as it goes.
        containers: judge each task's reference in containers, too, where there are any and nothing else ran there.

    Raises:
        TaskError: tasks have mistakes; the text names those of all of them.
        UsageError: there is no such runtime.
    """
    tasks, plan = _load(course), _plan(course, runtimes)
    cases: list[tuple[str, VerifyCase]] = []
    skeletons: list[SkeletonCase] = []
    unproved: list[str] = []

    def skeleton(options: Options, pipeline: Pipeline, task: Task, on_sign: OnProgress) -> SkeletonCase:
        onlooker.start(skeleton_name(task.name))
        return judge_skeleton(options, pipeline, task, on_sign)

    for here, names in _places(course, plan, how):
        runtime = here.runtime or ""
        able = open_runtime(runtime).self_test()
        if not able.usable:
            unproved += [f"{name} was not run in {runtime}: {able.reason}" for name in names]
            continue
        todo = select([tasks[name] for name in names])
        found = verify(todo, here, onlooker.progress, onlooker.case, on_start=onlooker.start)
        cases += [(runtime, case) for case in found]
        if containers and CONTAINERS not in runtimes:
            again = for_containers(todo, here)
            extra = check_containers(again, here, onlooker.progress, onlooker.case, onlooker.start)
            cases += [(CONTAINERS, case) for case in extra]
        skeletons += side_by_side(
            [tasks[name] for name in names],
            partial(skeleton, replace(here.options, own_numbers=False)),
            runtime=runtime,
            jobs=how.jobs,
            alone=lambda task: how.options.timed and task.target("time") is not None,
            on_progress=onlooker.progress,
            on_done=onlooker.skeleton,
        )
    return Proof(
        course=course,
        cases=tuple(cases),
        skeletons=tuple(skeletons),
        problems=(
            *(
                f"{c.task}/{c.submission} in {r}: {c.message}{f'. {c.way_on}' if c.way_on else ''}"
                for r, c in cases
                if not c.ok
            ),
            *(text for name in tasks for text in _out_of_reach(tasks[name], cases)),
            *(f"{s.name} in {s.runtime}: {s.problem}" for s in skeletons if s.problem),
            *_unpromised(tasks.values()),
        ),
        unproved=tuple(
            dict.fromkeys(
                (*unproved, *(f"{c.task}/{c.submission}: {c.skipped}" for _, c in cases if c.skipped))
            )
        ),
        notes=course_notes(course, tasks.values()),
    )


def _load(course: Course) -> dict[str, Task]:
    """All tasks of the course, or all that is wrong with any of them."""
    found: dict[str, Task] = {}
    wrong: list[str] = []
    for item in course.items:
        try:
            found[item.task] = load_task(item.task)
        except TaskError as error:
            wrong.append(str(error))
    if wrong:
        raise TaskError("\n".join(wrong))
    return found


def _plan(course: Course, runtimes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Where each task is run."""
    spanning = {name: open_runtime(name).spans_nodes for name in (*runtimes, SPANS_NODES)}
    plan = {}
    for item in course.items:
        profile = load_task(item.task).profile(item.profile)
        spans = profile is not None and profile.nnodes > 1
        able = tuple(name for name in dict.fromkeys(runtimes) if spanning[name] or not spans)
        plan[item.task] = able or (SPANS_NODES,)
    return plan


def _places(
    course: Course, plan: Mapping[str, Sequence[str]], how: Verification
) -> Iterator[tuple[Verification, list[str]]]:
    """Each runtime and profile that tasks of the course are judged with, and these tasks."""
    for runtime, profile in {(runtime, i.profile): None for i in course.items for runtime in plan[i.task]}:
        names = [i.task for i in course.items if runtime in plan[i.task] and i.profile == profile]
        folder = how.folder / f"{runtime}-{profile}" if how.folder is not None else None
        options = replace(how.options, profile=profile)
        yield replace(how, options=options, runtime=runtime, folder=folder), names


def _out_of_reach(task: Task, cases: Sequence[tuple[str, VerifyCase]]) -> list[str]:
    """Points that no accepted submission earns: a target, or an item, that nobody is known to reach."""
    mine = [c for _, c in cases if c.task == task.name and not c.skipped]
    accepted = [c for c in mine if c.expected_verdict == c.verdict == Verdict.ACCEPTED]
    never = set.intersection(*(set(c.short) for c in accepted)) if accepted else set()
    return [
        f"{task.name}: none of its {len(accepted)} accepted submissions earns all points of “{item.title}”"
        for item in task.rubric
        if item.id in never
    ]


def _unpromised(tasks: Iterable[Task]) -> Iterator[str]:
    """Rules of the course's own that judge here, and that no submission shows at work."""
    own = {rule.code: rule.file.path for task in tasks for rule in applicable(task) if rule.file.of_course}
    # Tasks that are not this course's may show it: several courses share a folder.
    for name in find_tasks() if own else ():
        with suppress(TaskError):
            for promise in submissions_of(load_task(name)):
                own = {code: path for code, path in own.items() if code not in promise.codes}
    for code, path in sorted(own.items()):
        yield f"{path}: no submission shows what it finds; add one with `# expect: {code}` in its first lines."


def judge_skeleton(options: Options, pipeline: Pipeline, task: Task, on_progress: OnProgress) -> SkeletonCase:
    """Run a starting point as it is, on one process, and judge it as if it were handed in."""
    submission = read_submission(task.skeleton / task.entry_point)
    alone, verdict, problem = "", "", ""
    meant = task.profile(options.profile or "")
    try:
        with tempfile.TemporaryDirectory(prefix="grader-skeleton-") as folder:
            attempt, _ = pipeline.grade(
                *(task, submission),
                options=options,
                on_progress=on_progress,
                out=Path(folder) / "as-handed-in",
            )
            verdict = attempt.grade.verdict.value
            if meant is not None and meant.nproc_per_node * meant.nnodes > 1:
                attempt, _ = pipeline.grade(
                    *(task, submission),
                    options=replace(options, nproc_per_node=1, nnodes=1, timed=False),
                    on_progress=on_progress,
                    out=Path(folder) / "alone",
                )
            alone = attempt.record.ending.value if attempt.record is not None else "not run"
            why = attempt.record.ending_reason if attempt.record is not None else attempt.grade.verdict_reason
    except InfraError as error:
        return SkeletonCase(task.name, pipeline.runtime.name, alone, verdict, str(error))
    if alone != Ending.COMPLETED:
        problem = f"one process of it does not run to its end: {why}"
    elif verdict in (Verdict.ACCEPTED, Verdict.HELD, Verdict.JUDGE_ERROR):
        problem = f"handed in unchanged it is {verdict}; a learner would have nothing to do"
    return SkeletonCase(task.name, pipeline.runtime.name, alone, verdict, problem)
