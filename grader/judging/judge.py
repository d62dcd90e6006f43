"""Judge a run by its evidence: the same evidence gives the same bytes. `regrade` reads a stored attempt's first.

Asks the checks and the score, and puts their answers into one Attempt; runs nothing and decides nothing itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass

from grader.catalog.tasks.task_folders import load_task
from grader.checks.diagnosis import diagnose
from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.phrases import listed
from grader.checks.policy import apply_rules, apply_source_rules
from grader.errors import UsageError
from grader.evaluate.files.reported_metrics import known_keys
from grader.evaluate.points.score import Score, score
from grader.evaluate.time.timing import reference_notes
from grader.judging.attempt import Attempt
from grader.judging.stored_evidence import read_evidence
from grader.model.attempt_facts import AttemptFacts
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Finding
from grader.model.grade import CheckResult, Grade
from grader.model.notebook_lines import by_cell
from grader.model.run import UsedGpu
from grader.model.start_command import start_command
from grader.model.task import Task
from grader.run.workspace import Workspace

_SHIMS = {
    "nccl-to-gloo": "`init_process_group` began gloo where the script asks for NCCL",
    "batch-norm-on-cpu": "`SyncBatchNorm.convert_sync_batchnorm` left the network's `BatchNorm` layers as they are",
}
"""What each of `grader.launch.ranks.shims` did, as part of a sentence."""


def regrade(workspace: Workspace, task: Task | None = None) -> Attempt:
    """Judge a stored attempt again from its files alone; `task`: as it is now, unless another one is given.

    Raises:
        UsageError: the attempt's files are missing or damaged.
        TaskError: the task has a mistake.
    """
    evidence = read_evidence(workspace)
    return judge(evidence, task or load_task(evidence.facts.task))


def judge(evidence: Evidence | SourceEvidence, task: Task) -> Attempt:
    """Judge what a run left.

    Raises:
        UsageError: the task no longer has the profile that the attempt was run in.
    """
    facts = evidence.facts
    if task.profile(facts.profile) is None:
        raise UsageError(
            f"task {task.name} no longer has the profile {facts.profile!r} that this attempt was run in"
        )
    if isinstance(evidence, SourceEvidence):
        findings, checks = apply_source_rules(evidence.script, task)
        judged = _Judged(findings, checks, score(evidence, task, findings, checks))
        return Attempt(task, evidence, judged.grade(task, facts))
    evidence = evidence.of_task(task)
    findings, checks = apply_rules(evidence, task)
    diagnosis, failures = diagnose(evidence, findings)
    judged = _Judged(
        (*findings, *failures),
        checks,
        score(evidence, task, findings, checks),
        phases=_phases(evidence),
        environment=_environment(evidence),
        notes=(*_notes(evidence, task), *reference_notes(evidence, task)),
        diagnosis=diagnosis,
    )
    return Attempt(task, evidence, judged.grade(task, facts), evidence.ledger.coverage())


@dataclass(frozen=True, slots=True)
class _Judged:
    """Everything that a grade is made of besides what was judged."""

    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    score: Score
    phases: dict[str, float] | None = None
    environment: dict[str, object] | None = None
    notes: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None

    def grade(self, task: Task, facts: AttemptFacts) -> Grade:
        grade = Grade(
            task=task.name,
            task_version=task.version,
            submission=facts.submission.name,
            digest=facts.submission.digest,
            profile=facts.profile,
            dataset=facts.dataset,
            world_size=facts.world_size,
            runtime=facts.runtime,
            verdict=self.score.verdict,
            verdict_reason=self.score.reason,
            points=self.score.points,
            max_points=self.score.max_points,
            rubric=self.score.rubric,
            findings=self.findings,
            checks=self.checks,
            metrics=self.score.metrics,
            phases=self.phases or {},
            environment=self.environment or {},
            notes=(*self.notes, *self.score.notes),
            review=self.score.review,
            review_subjects=self.score.review_subjects,
            gating=self.score.gating,
            diagnosis=self.diagnosis,
            measures=task.metrics,
        )
        return by_cell(grade, facts.submission)


def _phases(evidence: Evidence) -> dict[str, float]:
    """Seconds of each phase."""
    phases = {**evidence.record.phases_s, "run": evidence.record.wall_s}
    if evidence.evaluation is not None:
        phases["evaluate"] = evidence.evaluation.seconds
    return phases


def _environment(evidence: Evidence) -> dict[str, object]:
    """Where it ran; GPUs by their facts."""
    devices = [asdict(device) for device in evidence.record.devices]
    told: dict[str, object] = {"devices": devices} if devices else {}
    return evidence.record.environment | told | ({"on_cpu": True} if evidence.facts.on_cpu else {})


def _gpus(devices: tuple[UsedGpu, ...]) -> str:
    """`4 × NVIDIA H100 (driver 580.65.06, CUDA 13.2, NCCL 2.30.7)`, by models."""
    models = Counter((one.name, one.driver, one.cuda, one.nccl) for one in devices)
    told = []
    for (name, *versions), num in models.items():
        known = [f"{what} {v}" for what, v in zip(("driver", "CUDA", "NCCL"), versions, strict=True) if v]
        told.append(f"{num} × {name}" + (f" ({', '.join(known)})" if known else ""))
    return " and ".join(told)


def _notes(evidence: Evidence, task: Task) -> tuple[str, ...]:
    """What a reader must know about how this was judged."""
    notes = []
    record, evaluation = evidence.record, evidence.evaluation
    if not record.isolated:
        notes.append(
            f"Run in the {record.runtime!r} runtime, which does not isolate: the script had the judge's own rights."
        )
    if gap := str(record.environment.get("isolation_gap", "")):
        notes.append(gap)
    if record.devices:
        notes.append(f"Run on {_gpus(record.devices)}.")
    facts = evidence.facts
    if left_out := facts.submission.left_out_note:
        notes.append(left_out)
    if facts.arguments or facts.launcher == "python":
        ranks = (facts.nproc_per_node, facts.nnodes)
        command = start_command(facts.launcher, task.entry_point, facts.arguments, *ranks)
        notes.append(f"Started as `{command}`.")
    if facts.shims:
        done = "; ".join(_SHIMS[name] for name in facts.shims)
        notes.append(f"No GPU was there, and the task stands in for one ({', '.join(facts.shims)}): {done}.")
    if facts.on_cpu:
        notes.append(
            f"The {facts.profile} profile was run on the CPU, under gloo, because that was asked for "
            "(--on-cpu). What it has learned is judged; how fast it is, and what only GPUs show, is not."
        )
    if not facts.timed:
        notes.append("Time targets were left out of this judging, and the other items share their points.")
    if not evidence.scored and evaluation is not None and evaluation.problem is not None:
        notes.append(f"{evaluation.detail} No points depend on it: this task scores no weights.")
    if evaluation is not None and evaluation.reported is not None and evaluation.reported.unknown:
        others = listed(f"`{key}`" for key in evaluation.reported.unknown)
        known = listed(f"`{key}`" for key in known_keys(evidence.metrics))
        notes.append(
            f"metrics.json reports {others}, which nobody reads here. Known to this task are {known}."
        )
    return tuple(notes)
