"""A first look for newcomers: the accepted reference and two flawed submissions of `ddp-fashion`, judged for real."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.catalog.data.datasets import find_dataset
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError
from grader.judging.attempt import Attempt
from grader.model.promise import PromisedSubmission
from grader.model.run_options import Options
from grader.pipeline import OnProgress, Pipeline
from grader.promises.comparison import broken_promises
from grader.report.folder import write_reports
from grader.run.workspace import Workspace

TASK = "ddp-fashion"
SHOWN = (
    "accepted/distributed_sampler",
    "rejected/no_distributed_sampler",
    "deadlocked/collective_on_rank_zero",
)


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One judged submission; `kept` says whether it got what its folder promises."""

    promised: PromisedSubmission
    attempt: Attempt
    workspace: Workspace
    kept: bool


def demonstrate(out: Path, on_progress: OnProgress) -> Iterator[DemoStep]:
    """Judge the three submissions on the embedded data with two ranks, one after the other.

    Raises:
        TaskError: the task has lost one of them.
        InfraError: this machine cannot run them.
    """
    task = load_task(TASK)
    by_name = {p.name: p for p in submissions_of(task)}
    missing = [name for name in SHOWN if name not in by_name]
    if missing:
        raise TaskError(
            f"the demo shows these submissions of task {TASK}, but they are not there: {', '.join(missing)}"
        )
    find_dataset(task, "digits")
    options = Options(dataset="digits", nproc_per_node=2, profile="cpu", own_numbers=False)
    with Pipeline("process") as pipeline:
        for name in SHOWN:
            promised, folder = by_name[name], out / name.replace("/", "-")
            attempt, workspace = pipeline.grade(
                task, promised.submission, options=options, on_progress=on_progress, out=folder
            )
            write_reports(attempt, workspace)
            yield DemoStep(promised, attempt, workspace, kept=not broken_promises(promised, attempt))
