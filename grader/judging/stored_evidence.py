"""Read the evidence that a run left in its attempt's folder: everything, once, typed."""

from __future__ import annotations

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.source.script import Script, parse, unread
from grader.evaluate.files.measurement_files import read_stored
from grader.judging.attempt_folder import read_facts, read_logs
from grader.model.attempt_facts import AttemptFacts
from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.trace import Trace
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace


def read_evidence(workspace: Workspace) -> Evidence | SourceEvidence:
    """All evidence of an attempt; of a submission that does not parse, its text.

    Raises:
        UsageError: the attempt's files are missing or damaged.
        InfraError: files of the judge's own are damaged.
    """
    facts = read_facts(workspace)
    # Judged again it is no other than it was, on however fast a machine.
    script = unread(facts.submission, facts.unread) if facts.unread else _parsed(facts)
    if script.syntax_errors:
        return SourceEvidence(facts, script)
    record = read_record(workspace.record)
    return Evidence(
        facts=facts,
        script=script,
        record=record,
        trace=_read_traces(workspace, record.world_size),
        evaluation=read_stored(workspace.evaluation, Evaluation),
        calibration=read_stored(workspace.calibration, Calibration),
        logs=read_logs(workspace, record.world_size),
        repeats=tuple(read_record(workspace.repeat(n).record) for n in range(workspace.num_repeats)),
        second_look=_second_look(workspace.second_look, record.world_size),
    )


def _parsed(facts: AttemptFacts) -> Script:
    return parse(facts.submission, launched=facts.launcher != "python")


def _read_traces(workspace: Workspace, world_size: int) -> Trace:
    return read_trace([workspace.trace(rank) for rank in range(world_size)])


def _second_look(workspace: Workspace, world_size: int) -> Trace | None:
    return _read_traces(workspace, world_size) if workspace.root.exists() else None
