"""Judge a run from the files it left, without running anything: the same files give the same bytes.

Reads evidence, asks the checks and the score, and puts their answers into one Attempt; decides nothing itself.
"""

from __future__ import annotations

from grader.attempts import AttemptFacts, read_facts, read_logs
from grader.catalog import load_task
from grader.checks.diagnosis import diagnose
from grader.checks.judge import judge, judge_source_only
from grader.checks.seen import Seen
from grader.checks.text.source import Script, parse
from grader.checks.told.ledger import Ledger
from grader.errors import UsageError
from grader.evaluate import calibration as calibrations
from grader.evaluate.score import Outcome, score
from grader.evaluate.stored import read_evaluation
from grader.evaluate.timing import measured_s
from grader.model.attempt import Attempt
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Finding
from grader.model.grade import CheckResult, Grade
from grader.model.task import Profile, Task
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace


def regrade(workspace: Workspace, task: Task | None = None) -> Attempt:
    """Judge a stored attempt from its files alone.

    Raises:
        UsageError: the attempt's files are missing or damaged.
        TaskError: the task has a mistake.
    """
    facts = read_facts(workspace)
    task = task or load_task(facts.task)
    if not facts.timed:
        task = task.without_time()
    profile = task.profile(facts.profile)
    if profile is None:
        raise UsageError(
            f"task {task.name} no longer has the profile {facts.profile!r} that this attempt was run in"
        )
    script = parse(facts.submission)
    if script.syntax_errors:
        return _unrun(task, profile, facts, script)
    record = read_record(workspace.record)
    trace = read_trace([workspace.trace(rank) for rank in range(record.world_size)])
    evaluation = read_evaluation(workspace.evaluation)
    calibration = calibrations.read(workspace.calibration)
    logs = read_logs(workspace, record.world_size)
    # Where the data is only there to be used, nothing is known of the samples that a script makes up instead.
    num_train, num_validation = (facts.num_train, facts.num_validation) if task.scored else (None, None)
    ledger = Ledger.of(trace, num_train, num_validation)
    seen = Seen(
        script=script,
        record=record,
        trace=trace,
        ledger=ledger,
        evaluation=evaluation,
        profile=facts.profile,
        num_train=num_train,
        num_validation=num_validation,
        logs=logs,
        expected=task.expected,
        calibration=calibration,
    )
    findings, checks = judge(task, seen)
    outcome = score(
        task,
        profile,
        facts.dataset,
        findings,
        checks,
        record=record,
        trace=trace,
        evaluation=evaluation,
        calibration=calibration,
        repeated_s=repeated_s(workspace, profile),
    )
    phases = {**record.phases_s, "run": record.wall_s}
    if evaluation is not None:
        phases["evaluate"] = evaluation.seconds
    notes = (
        ()
        if record.isolated
        else (
            f"Run in the {record.runtime!r} runtime, which does not isolate: the script had the judge's own rights.",
        )
    )
    if gap := str(record.environment.get("isolation_gap", "")):
        notes = (*notes, gap)
    if not facts.timed:
        notes = (*notes, "Time targets were left out of this judging, and their points out of the total.")
    if not task.scored and evaluation is not None and evaluation.problem is not None:
        notes = (*notes, f"{evaluation.detail} No points depend on it: this task scores no weights.")
    return Attempt(
        task=task,
        submission=facts.submission,
        grade=_grade(
            task, facts, outcome, findings, checks, phases, record.environment, notes, diagnose(seen)
        ),
        record=record,
        trace=trace,
        evaluation=evaluation,
        calibration=calibration,
        logs=logs,
        coverage=ledger.coverage(),
    )


def _unrun(task: Task, profile: Profile, facts: AttemptFacts, script: Script) -> Attempt:
    """A submission that does not parse: judged by its text alone."""
    findings, checks = judge_source_only(task, script)
    outcome = score(task, profile, facts.dataset, findings, checks)
    return Attempt(task, facts.submission, _grade(task, facts, outcome, findings, checks, {}, {}, ()))


def _grade(
    task: Task,
    facts: AttemptFacts,
    outcome: Outcome,
    findings: tuple[Finding, ...],
    checks: tuple[CheckResult, ...],
    phases: dict[str, float],
    environment: dict[str, object],
    notes: tuple[str, ...],
    diagnosis: Diagnosis | None = None,
) -> Grade:
    return Grade(
        task=task.name,
        task_version=task.version,
        submission=facts.submission.name,
        digest=facts.submission.digest,
        profile=facts.profile,
        dataset=facts.dataset,
        world_size=facts.world_size,
        runtime=facts.runtime,
        verdict=outcome.verdict,
        verdict_reason=outcome.reason,
        points=outcome.points,
        max_points=outcome.max_points,
        rubric=outcome.rubric,
        findings=findings,
        checks=checks,
        metrics=outcome.metrics,
        phases=phases,
        environment=environment,
        notes=(*notes, *outcome.notes),
        review=outcome.review,
        diagnosis=diagnosis,
    )


def repeated_s(workspace: Workspace, profile: Profile) -> tuple[float, ...]:
    """Seconds that each repeat took, infinite where it did not complete."""
    records = [read_record(workspace.repeat(n).record) for n in range(workspace.num_repeats)]
    # A repeat that failed counts as one that took for ever; not counted, it would be asked for again and again.
    return tuple(time if (time := measured_s(r, profile)) is not None else float("inf") for r in records)
