"""One promise of each task kept in containers, too: what a process finds around it may be missing there.

A task that is proved in processes alone can still lean on a file outside its folder, a package of the machine, or data
that reaches no container.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from grader.errors import TaskError
from grader.model.promise import PromisedSubmission
from grader.model.task import Task
from grader.model.verify_case import VerifyCase
from grader.pipeline import OnProgress
from grader.promises.verification import Reuse, Verification, verify
from grader.run.registry import open_runtime
from grader.settings import settings

CONTAINERS = "docker"


def for_containers(
    todo: Sequence[tuple[Task, PromisedSubmission]], how: Verification
) -> tuple[tuple[Task, PromisedSubmission], ...]:
    """The reference of each task that is among `todo`.

    None where everything runs in containers anyway, there are none here, or devices would be needed.
    """
    runtime = open_runtime(how.runtime or settings().runtime)
    named = {promised.path: (task, promised) for task, promised in todo if _is_reference(task, promised)}
    chosen = tuple(pair for pair in named.values() if _needs_no_gpu(pair[0], how))
    if runtime.isolates or not chosen or how.reuse is Reuse.ONLY:
        return ()
    return chosen if open_runtime(CONTAINERS).self_test().usable else ()


def check_containers(
    chosen: Sequence[tuple[Task, PromisedSubmission]],
    how: Verification,
    on_progress: OnProgress,
    on_case: Callable[[VerifyCase], None],
    on_start: Callable[[str], None],
) -> tuple[VerifyCase, ...]:
    """Judge what is `for_containers` once more, there and without the clock.

    Raises:
        TaskError: the task's own code fails there.
    """
    if not chosen:
        return ()
    folder = how.folder / CONTAINERS if how.folder is not None else None
    here = replace(
        how,
        runtime=CONTAINERS,
        besides=CONTAINERS,
        folder=folder,
        jobs=1,
        options=replace(how.options, timed=False),
    )
    try:
        return verify(chosen, here, on_progress, on_case, on_start=on_start)
    except TaskError as error:
        raise TaskError(f"In {CONTAINERS}, where nothing but the task's folder is there: {error}") from error


def _is_reference(task: Task, promised: PromisedSubmission) -> bool:
    return promised.path == task.folder / "submissions" / task.reference


def _needs_no_gpu(task: Task, how: Verification) -> bool:
    profile = task.profile(how.options.profile or settings().profile)
    return profile is not None and (profile.backend != "nccl" or how.options.on_cpu)
