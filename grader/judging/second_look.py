"""A second run of a submission that was not accepted, only to see which of its lines is to blame.

Made at once, for the steps in which the ranks' models came to differ, and bounded to the first run's time. Nothing of
it is scored.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

from grader.checks.evidence import Evidence
from grader.checks.run.models.traced_steps import steps_to_trace
from grader.errors import InfraError
from grader.judging.attempt import Attempt
from grader.model.grade import Verdict
from grader.run.record_reader import read_record
from grader.run.runtime import Job, Progress, Runtime
from grader.run.workspace import Workspace

_LEAST_S = 3.0
"""A start alone may take this long; shorter runs are given as much."""


def steps_to_look_at(attempt: Attempt) -> tuple[int, int] | None:
    """First and last step (from 0) of a second look; None where the first run has said all there is to say."""
    evidence = attempt.evidence
    if attempt.grade.verdict is Verdict.ACCEPTED or not attempt.task.second_look:
        return None
    return steps_to_trace(evidence) if isinstance(evidence, Evidence) else None


def look_again(
    runtime: Runtime,
    job: Job,
    workspace: Workspace,
    steps: tuple[int, int],
    on_progress: Callable[[Progress], None],
) -> None:
    """Run a job once more, line by line; what it tells lies in the workspace's `second_look`."""

    def told(sign: Progress) -> None:
        # What the ranks print was shown the first time.
        on_progress(Progress("second look", sign.elapsed_s))

    told(Progress("prepare", 0.0))
    second = workspace.second_look
    wall_s = min(job.limits.wall_s, max(_LEAST_S, read_record(workspace.record).wall_s))
    second.root.mkdir(parents=True, exist_ok=True)
    try:
        runtime.run(replace(job, limits=replace(job.limits, wall_s=wall_s), traced_steps=steps), second, told)
    except InfraError:
        # The first run has been judged already: all that is lost is a line.
        shutil.rmtree(second.root, ignore_errors=True)
    finally:
        runtime.release()
    for needless in (second.outputs, second.submission):
        shutil.rmtree(needless, ignore_errors=True)
