"""The whole flow on one screen: run a submission, bring back the evidence, judge it.

`Pipeline.grade` runs and then judges from the files it wrote; `regrade` is the second half alone, so both give the
same bytes. Rendering is `report`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from grader.attempts import AttemptFacts, new_attempt_name, new_workspace, read_facts, write_facts
from grader.catalog import load_task, read_submission, reference
from grader.catalog.datasets import PreparedDataset, find_dataset
from grader.checks.judge import judge, judge_source_only
from grader.checks.ledger import build_ledger
from grader.checks.seen import Seen
from grader.checks.source import parse
from grader.errors import UsageError
from grader.evaluate import calibration as calibrations
from grader.evaluate.evaluator import Evaluator, read_evaluation
from grader.evaluate.score import needs_repeat, score
from grader.model.attempt import Attempt
from grader.model.calibration import Calibration
from grader.model.submission import Submission
from grader.model.task import Profile, Task
from grader.run.record_reader import read_record
from grader.run.registry import open_runtime
from grader.run.runtime import Job, Progress
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace
from grader.settings import settings


@dataclass(frozen=True, slots=True)
class Options:
    """How to run; None takes the setting's or the task's default."""

    profile: str | None = None
    nproc_per_node: int | None = None
    dataset: str | None = None
    runtime: str | None = None
    launcher: str | None = None
    seed: int = 0


class Pipeline:
    """A warm runtime and a warm scorer, and what to do with them. Use as a context manager.

    Entering starts both in the background; leaving ends every process.
    """

    def __init__(self, options: Options, on_progress: Callable[[Progress], None]) -> None:
        self.options = options
        self.on_progress = on_progress
        self.runtime = open_runtime(options.runtime or settings().runtime)
        self.evaluator = Evaluator()

    def __enter__(self) -> Self:
        self.runtime.__enter__()
        try:
            self.evaluator.__enter__()
        except BaseException:
            self.runtime.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.evaluator.__exit__(kind, error, trace)
        finally:
            self.runtime.__exit__(kind, error, trace)

    def warm(self) -> None:
        """Wait until both can start at once, so that imports are not measured as judging.

        Raises:
            InfraError: one of them never will.
        """
        self.on_progress(Progress("warm up", 0.0))
        self.runtime.warm()
        self.evaluator.warm()

    def profile(self, task: Task) -> Profile:
        """The profile to run in.

        Raises:
            UsageError: the task has none of that name, or the number of ranks makes no sense.
        """
        name = self.options.profile or settings().profile
        profile = task.profile(name)
        if profile is None:
            known = ", ".join(p.name for p in task.profiles)
            raise UsageError(f"task {task.name} has no profile {name!r}; it has: {known}")
        if self.options.nproc_per_node is not None and not 1 <= self.options.nproc_per_node <= 64:
            raise UsageError(f"--nproc-per-node {self.options.nproc_per_node}: give a number from 1 to 64")
        return profile

    def grade(self, task: Task, submission: Submission, out: Path | None = None) -> tuple[Attempt, Workspace]:
        """Run and judge one submission; the evidence stays in the returned workspace.

        Raises:
            UsageError: a name, number or folder is wrong; nothing is left behind.
            InfraError: the machine or the grader failed; try again.
        """
        profile = self.profile(task)
        dataset = find_dataset(task, self.options.dataset or settings().dataset)
        script = parse(submission)
        calibration = None
        if not script.syntax_errors:
            self.warm()
            calibration = self.calibration(task, profile, dataset)
        workspace = new_workspace(task.name, submission, out)
        facts = AttemptFacts(
            attempt=new_attempt_name(submission),
            task=task.name,
            task_version=task.version,
            profile=profile.name,
            nproc_per_node=self.options.nproc_per_node or profile.nproc_per_node,
            runtime=self.runtime.name,
            launcher=self.options.launcher or task.launcher,
            seed=self.options.seed,
            dataset=dataset.name,
            num_train=dataset.num_train,
            num_validation=dataset.num_validation,
            num_hidden=dataset.num_hidden,
            submission=submission,
        )
        write_facts(facts, workspace)
        if script.syntax_errors:
            return regrade(workspace, task), workspace
        if calibration is not None:
            calibrations.write(calibration, workspace.calibration)
        self._run(task, profile, dataset, facts, workspace)
        attempt = regrade(workspace, task)
        # A run near the target is repeated; the median decides, and may only turn a miss into a hit.
        while needs_repeat(attempt.grade, calibration, num_repeats=len(workspace.repeats())):
            self._run(task, profile, dataset, facts, workspace.new_repeat())
            attempt = regrade(workspace, task)
        return attempt, workspace

    def calibration(self, task: Task, profile: Profile, dataset: PreparedDataset) -> Calibration | None:
        """The stored calibration, or a provisional one made now: the reference once, the skeleton once on one rank."""
        world_size = self.options.nproc_per_node or profile.nproc_per_node
        stored = calibrations.load(task, profile.name, dataset.name, world_size)
        if stored is not None:
            return stored
        return self.calibrate(task, num_runs=0)[0]

    def calibrate(self, task: Task, num_runs: int) -> tuple[Calibration, Path]:
        """Measure and store reference times; `num_runs` 0 makes the provisional calibration."""
        profile = self.profile(task)
        dataset = find_dataset(task, self.options.dataset or settings().dataset)
        self.warm()
        world_size = self.options.nproc_per_node or profile.nproc_per_node

        def measure(submission: Submission, nproc_per_node: int) -> calibrations.Timing:
            return self._measure(task, profile, dataset, submission, nproc_per_node)

        made = calibrations.make(task, profile.name, dataset.name, world_size, measure, num_runs=num_runs)
        return made, calibrations.store(made)

    def _measure(
        self, task: Task, profile: Profile, dataset: PreparedDataset, submission: Submission, nproc_per_node: int
    ) -> calibrations.Timing:
        """One run of one of the task's own submissions, for calibration."""
        import tempfile

        self.on_progress(Progress(f"calibrate {submission.name} on {nproc_per_node}", 0.0))
        with tempfile.TemporaryDirectory(prefix="grader-calibrate-") as folder:
            workspace = Workspace(Path(folder))
            facts = AttemptFacts(
                attempt=new_attempt_name(submission),
                task=task.name,
                task_version=task.version,
                profile=profile.name,
                nproc_per_node=nproc_per_node,
                runtime=self.runtime.name,
                launcher=self.options.launcher or task.launcher,
                seed=self.options.seed,
                dataset=dataset.name,
                num_train=dataset.num_train,
                num_validation=dataset.num_validation,
                num_hidden=dataset.num_hidden,
                submission=submission,
            )
            self._run(task, profile, dataset, facts, workspace)
            record = read_record(workspace.record)
            trace = read_trace([workspace.trace(rank) for rank in range(record.world_size)])
            return calibrations.Timing.of(record, trace, read_evaluation(workspace.evaluation))

    def _run(
        self, task: Task, profile: Profile, dataset: PreparedDataset, facts: AttemptFacts, workspace: Workspace
    ) -> None:
        """Run and score; everything learned is in the workspace afterwards."""
        job = Job(
            attempt=facts.attempt,
            submission=facts.submission,
            entry_point=task.entry_point,
            data_dir=dataset.visible_dir,
            nproc_per_node=facts.nproc_per_node,
            limits=profile.limits,
            launcher=facts.launcher,
            seed=facts.seed,
        )
        self.runtime.run(job, workspace, self.on_progress)
        self.on_progress(Progress("evaluate", 0.0))
        self.evaluator.evaluate(task, workspace, dataset)


def regrade(workspace: Workspace, task: Task | None = None) -> Attempt:
    """Judge a stored attempt from its files alone.

    Raises:
        UsageError: the attempt's files are missing or damaged.
        TaskError: the task has a mistake.
    """
    facts = read_facts(workspace)
    task = task or load_task(facts.task)
    script = parse(facts.submission)
    if script.syntax_errors:
        findings, checks = judge_source_only(task, script)
        return Attempt(task, facts.submission, score_unrun(task, facts, findings, checks))
    record = read_record(workspace.record)
    trace = read_trace([workspace.trace(rank) for rank in range(record.world_size)])
    evaluation = read_evaluation(workspace.evaluation)
    calibration = calibrations.read(workspace.calibration)
    ledger = build_ledger(trace)
    logs = read_logs(workspace, record.world_size)
    seen = Seen(
        script=script,
        record=record,
        trace=trace,
        ledger=ledger,
        evaluation=evaluation,
        profile=facts.profile,
        num_train=facts.num_train,
        num_validation=facts.num_validation,
        logs=logs,
    )
    findings, checks = judge(task, seen)
