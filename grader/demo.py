"""A first look for newcomers: the accepted reference and two flawed submissions of `ddp-fashion`, judged for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.catalog import load_task, read_submission, submissions_of
from grader.catalog.datasets import find_dataset
from grader.errors import TaskError
from grader.model.attempt import Attempt
from grader.model.promise import PromisedSubmission
from grader.pipeline import Options, Pipeline
from grader.report.folder import write_reports
from grader.run.runtime import Progress
from grader.run.workspace import Workspace
from grader.verify import broken_promises

TASK = "ddp-fashion"
SHOWN = (
    "accepted/distributed_sampler.py",
    "rejected/no_distributed_sampler.py",
    "deadlocked/collective_on_rank_zero.py",
)


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One judged submission; `kept` says whether it got what its folder promises."""

    promised: PromisedSubmission
    attempt: Attempt
    workspace: Workspace
    kept: bool


def demonstrate(out: Path, on_progress: Callable[[Progress], None]) -> Iterator[DemoStep]:
    """Judge the three submissions on the embedded data with two ranks, one after the other.

    Raises:
        TaskError: the task has lost one of them.
        InfraError: this machine cannot run them.
    """
    task = load_task(TASK)
    by_path = {p.path.relative_to(task.folder / "submissions").as_posix(): p for p in submissions_of(task)}
    missing = [path for path in SHOWN if path not in by_path]
    if missing:
        raise TaskError(
            f"the demo shows these submissions of task {TASK}, but they are not there: {', '.join(missing)}"
        )
    find_dataset(task, "digits")
    with Pipeline(
        Options(dataset="digits", nproc_per_node=2, runtime="process", profile="cpu"), on_progress
    ) as pipeline:
        for path in SHOWN:
            promised = by_path[path]
            folder = out / Path(path).with_suffix("").as_posix().replace("/", "-")
            attempt, workspace = pipeline.grade(task, read_submission(promised.path), folder)
            write_reports(attempt, workspace)
            yield DemoStep(promised, attempt, workspace, kept=not broken_promises(promised, attempt))
