"""The whole flow on one screen: run a submission, bring back the evidence, judge it.

`Pipeline.grade` runs, reads the evidence from the files that the run left, and judges it, so that judging them again
later gives the same bytes. Rendering is `report`'s.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from grader.catalog.data.datasets import find_dataset
from grader.catalog.tasks.kept_tasks import keep_task
from grader.checks.diagnosis import load_explanations
from grader.checks.limited_reading import BEFORE_RUN, problem_within
from grader.checks.rule import load_rules
from grader.errors import InfraError, UsageError
from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.measurement_files import write_stored
from grader.evaluate.time import calibration as calibrations
from grader.evaluate.time.machine_watch import MachineWatch, quiet_now, undisturbed
from grader.evaluate.time.measured_run import MeasuredRun, read_measured
from grader.evaluate.time.timing import needs_repeat
from grader.judging.attempt import Attempt
from grader.judging.attempt_folder import check_out, new_attempt_name, new_workspace, write_facts
from grader.judging.judge import judge
from grader.judging.machine_fault import refuse_machine_fault
from grader.judging.second_look import look_again, steps_to_look_at
from grader.judging.stored_evidence import read_evidence
from grader.model.attempt_facts import AttemptFacts
from grader.model.calibration import Calibration
from grader.model.run_options import Options, Setting
from grader.model.submission import Submission
from grader.model.task import Task
from grader.run.class_labels import label_files, labels_of
from grader.run.hash_order import launcher_for
from grader.run.record_completion import note_disturbed
from grader.run.record_reader import read_record
from grader.run.registry import open_runtime
from grader.run.runtime import Job, Progress
from grader.run.workspace import Workspace
from grader.settings import settings

OnProgress = Callable[[Progress], None]


def _silent(_sign: Progress) -> None:
    """Nobody waits for a sign of life."""


def _relabelled(setting: Setting, submission: Submission) -> Setting:
    """The same for one submission, whose classes have labels of its own."""
    drawn = labels_of(submission, setting.dataset.visible_dir, settings())
    return replace(setting, dataset=replace(setting.dataset, class_labels=drawn))


def _announce(on_progress: OnProgress, name: str, number: int, total: int) -> None:
    on_progress(Progress(f"calibrate {number}/{total} {name}", 0.0))


class Pipeline:
    """A warm runtime and a warm scorer, and what to do with them. Use as a context manager.

    Entering starts both in the background; leaving ends every process.
    """

    def __init__(self, runtime: str | None = None) -> None:
        """A pipeline on the runtime of that name; None: the setting's.

        Raises:
            UsageError: there is no such runtime.
        """
        self.runtime = open_runtime(runtime or settings().runtime)
        self._evaluator = Evaluator(local=not self.runtime.isolates)

    def __enter__(self) -> Self:
        self.runtime.__enter__()
        try:
            self._evaluator.__enter__()
        except BaseException:
            self.runtime.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._evaluator.__exit__(kind, error, trace)
        finally:
            self.runtime.__exit__(kind, error, trace)

    def setting(self, task: Task, options: Options) -> Setting:
        """Resolve options against a task.

        Raises:
            UsageError: the task has no such profile, the data is not prepared, or ranks or nodes are too many here.
        """
        name = options.profile or settings().profile
        profile = task.profile(name)
        if profile is None:
            known = ", ".join(p.name for p in task.profiles)
            raise UsageError(f"task {task.name} has no profile {name!r}; it has: {known}")
        nproc = options.nproc_per_node
        if nproc is not None and not 1 <= nproc <= 64:
            raise UsageError(f"--nproc-per-node {nproc}: give a number from 1 to 64")
        nnodes = options.nnodes or profile.nnodes
        if not 1 <= nnodes <= 16:
            raise UsageError(f"--nnodes {nnodes}: give a number from 1 to 16")
        launcher = options.launcher_of(task, nnodes)
        if nnodes > 1 and not self.runtime.spans_nodes:
            raise UsageError(
                f"the {self.runtime.name} runtime has one node, not {nnodes}: use --runtime docker"
            )
        on_cpu = options.on_cpu and profile.backend == "nccl"
        return Setting(
            task=task,
            profile=profile,
            dataset=find_dataset(task, options.dataset or settings().dataset, profile),
            nproc_per_node=nproc or profile.nproc_per_node,
            nnodes=nnodes,
            launcher=launcher,
            seed=options.seed,
            # A profile's times are its GPUs'.
            timed=options.timed and not on_cpu,
            on_cpu=on_cpu,
        )

    def warm(self, setting: Setting, on_progress: OnProgress = _silent) -> None:
        """Wait until both can start at once, so that imports are not measured as judging.

        Raises:
            InfraError: one of them never will.
        """
        on_progress(Progress("warm up", 0.0))
        self.runtime.warm(self._job(setting, self._facts(setting, Submission("", ()))))
        self._evaluator.warm(setting.task, setting.dataset)

    def grade(
        self,
        task: Task,
        submission: Submission,
        *,
        options: Options,
        on_progress: OnProgress = _silent,
        out: Path | None = None,
    ) -> tuple[Attempt, Workspace]:
        """Run and judge one submission; the evidence stays in the returned workspace.

        Args:
            task: what was asked.
            submission: what was handed in.
            options: how to run.
            on_progress: told signs of life.
            out: folder for the evidence, new or an earlier attempt's; None: one in the state folder.

        Raises:
            UsageError: a name, number or folder is wrong; nothing is left behind.
            TaskError: a rule or a diagnosis of the course's own needs mending.
            InfraError: the machine or the grader failed; try again.
        """
        setting = self.setting(task, options)
        if options.own_numbers and task.permute_labels:
            setting = _relabelled(setting, submission)
        # What judges is looked at first: a rule that does not fit must not cost a run.
        load_rules()
        load_explanations()
        if out is not None:
            check_out(out)
        problem = problem_within(BEFORE_RUN, submission)
        runs = problem is None
        calibration = self._reference(setting, on_progress) if runs else None
        keep_task(task)
        workspace = new_workspace(task.name, submission, out)
        facts = replace(self._facts(setting, submission), unread=problem.unread if problem else None)
        write_facts(facts, workspace)
        if runs:
            if calibration is not None:
                write_stored(workspace.calibration, calibration)
            on_progress(Progress("prepare", 0.0))  # calibrating is over, what comes is the submission's
            self._run(setting, facts, workspace, on_progress)
        evidence = refuse_machine_fault(read_evidence(workspace), last_try=options.last_try)
        # A narrow miss, or one of a busy machine, is run again; and that decides only in the learner's favour.
        while needs_repeat(evidence, setting.task):
            self._run(setting, facts, workspace.repeat(workspace.num_repeats), on_progress)
            evidence = read_evidence(workspace)
        attempt = judge(evidence, task)
        steps = steps_to_look_at(attempt)
        if steps is not None:
            look_again(self.runtime, self._job(setting, facts), workspace, steps, on_progress)
            attempt = judge(read_evidence(workspace), task)
        return attempt, workspace

    def calibration(self, setting: Setting, on_progress: OnProgress = _silent) -> Calibration:
        """The stored calibration, or a provisional one made now: the reference, and the skeleton on one rank."""
        self.warm(setting, on_progress)
        return calibrations.stored_or_provisional(
            setting,
            partial(self._measure, setting, on_progress),
            quiet_now=partial(quiet_now, setting.world_size),
            on_run=partial(_announce, on_progress),
        )

    def _reference(self, setting: Setting, on_progress: OnProgress) -> Calibration | None:
        """What a run is held against: nothing is measured where no time is asked for."""
        if setting.timed and setting.task.target("time") is not None:
            return self.calibration(setting, on_progress)
        self.warm(setting, on_progress)
        return calibrations.load(setting) if setting.timed else None

    def calibrate(
        self, task: Task, num_runs: int, *, options: Options, on_progress: OnProgress = _silent
    ) -> tuple[Calibration, Path]:
        """Measure every accepted style `num_runs` times and the skeleton on one rank; store and return the result.

        Raises:
            TaskError: one of the task's own submissions does not run to its end.
        """
        setting = self.setting(task, options)
        self.warm(setting, on_progress)
        made = calibrations.make(
            setting,
            partial(self._measure, setting, on_progress),
            num_runs=num_runs,
            on_run=partial(_announce, on_progress),
        )
        return made, calibrations.save(made, setting)

    def _measure(
        self, setting: Setting, on_progress: OnProgress, submission: Submission, num_ranks: int
    ) -> MeasuredRun:
        """One run of one of the task's own submissions, for calibration."""
        if num_ranks != setting.world_size:
            setting = replace(setting, nproc_per_node=num_ranks, nnodes=1)
        facts = self._facts(setting, submission)
        with tempfile.TemporaryDirectory(prefix="grader-calibrate-") as folder:
            workspace = Workspace(Path(folder))
            self._run(setting, facts, workspace, on_progress)
            try:
                return read_measured(workspace, in_rows=setting.task.counted_in_rows)
            except InfraError as error:
                raise InfraError(
                    f"{setting.task.name} cannot be calibrated: {submission.name} on {num_ranks} rank(s): {error}"
                ) from error

    def _facts(self, setting: Setting, submission: Submission) -> AttemptFacts:
        name = new_attempt_name(submission)
        return AttemptFacts.planned(setting, name, submission, self.runtime.name)

    def _run(
        self, setting: Setting, facts: AttemptFacts, workspace: Workspace, on_progress: OnProgress
    ) -> None:
        """Run and score; everything learned is in the workspace afterwards."""
        workspace.root.mkdir(parents=True, exist_ok=True)
        try:
            with MachineWatch() as watch:
                self.runtime.run(self._job(setting, facts), workspace, on_progress)
            if not undisturbed(watch.free_cores(read_record(workspace.record)), setting.world_size):
                note_disturbed(workspace)
            on_progress(Progress("evaluate", 0.0))
            self._evaluator.evaluate(
                setting.task, workspace, setting.dataset, self.runtime.scorer, setting.profile.model_size
            )
        finally:
            self.runtime.release()

    def _job(self, setting: Setting, facts: AttemptFacts) -> Job:
        return Job(
            attempt=facts.attempt,
            submission=facts.submission,
            entry_point=setting.task.entry_point,
            argv=facts.arguments,
            shims=facts.shims,
            data_dir=setting.dataset.visible_dir,
            nproc_per_node=facts.nproc_per_node,
            nnodes=facts.nnodes,
            limits=setting.profile.limits,
            model_size=setting.profile.model_size,
            launcher=launcher_for(facts.launcher, facts.submission),
            seed=facts.seed,
            gpus_per_node=setting.gpus_per_node,
            cores_per_rank=1 if setting.on_cpu else setting.profile.cores_per_rank,
            hidden_dir=setting.dataset.hidden_dir if setting.task.scored else None,
            own_data=label_files(setting.dataset.visible_dir, setting.dataset.class_labels),
        )
