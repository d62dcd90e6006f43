"""One claimed attempt: the task at its version, the submission's files, the run and its judging, the reports.

Knows nothing of leases; whoever calls it holds one. An attempt names the version of the task that its course set when
it was handed in, and is judged by the copy that was kept of it, whatever has become of the task's folder since. Of a
version that nobody kept, before there were copies, a worker needs the folder: one whose folder is another version
refuses it, as judging by other terms than those that the learner read would be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.catalog.data.datasets import find_dataset
from grader.catalog.data.transfer import take_data
from grader.catalog.tasks.kept_tasks import load_kept, tasks_folder, unpack_task
from grader.catalog.tasks.task_folders import load_task
from grader.errors import InfraError, UsageError
from grader.model.grade import Grade, Verdict
from grader.model.run_options import Options
from grader.model.task import Task
from grader.pipeline import Pipeline
from grader.report.audience import Audience
from grader.report.json_report import to_json
from grader.settings import in_course, settings
from grader.store.attempts.attempt_endings import MAX_TRIES, StoredFile
from grader.store.grading import grades
from grader.store.grading.grades import NewGrade
from grader.store.queue.claims import Claimed
from grader.worker import artifacts
from grader.worker.coordinator import Coordinator, insist
from grader.worker.heartbeat import Heartbeat
from grader.worker.live_events import LiveEvents
from grader.worker.shared_state import SharedState


class OtherVersionError(InfraError):
    """The version that the attempt names was never kept, and this worker's folder is at another one."""


class FilesGoneError(InfraError):
    """The submission's files are not in the store any more: somebody's data was erased."""


class FailedToJudgeError(InfraError):
    """The verdict itself is that judging failed."""


@dataclass(frozen=True, slots=True)
class ExecutedAttempt:
    """A grade, and what it left in the file store."""

    judged: NewGrade
    files: tuple[StoredFile, ...]
    grade: Grade


def execute_attempt(
    claimed: Claimed,
    pipeline: Pipeline,
    coordinator: Coordinator,
    shared: SharedState,
    live: LiveEvents,
    heartbeat: Heartbeat,
    folder: Path,
) -> ExecutedAttempt:
    """Run what was claimed, have it judged, store what it left.

    Args:
        claimed: the attempt; pipeline: warm, idle.
        coordinator: where the submission is, and where reports go; shared: says whether there is time to wait for it.
        live: hears phases; heartbeat: hears how the run gets on, and may end it.
        folder: an empty or missing one, for the evidence while it is made.

    Raises:
        InfraError: the machine or the grader failed. UsageError: this worker lacks something, such as the data.
        TaskError: the task's author has to mend something.
        AttemptLeaseLostError, StoreUnavailableError: what the coordinator answered, or that it did not.
        AttemptAborted: the heartbeat said so; every process of the run is dead.
    """
    task = task_of(claimed, coordinator, shared)
    submission = insist(lambda: coordinator.source_of(claimed), shared)
    if submission is None:
        raise FilesGoneError("the submission's files are no longer in the store")
    options = Options(profile=claimed.profile, last_try=claimed.tries >= MAX_TRIES)

    def keep(name: str, data: bytes) -> StoredFile:
        return insist(lambda: coordinator.keep_file(claimed, name, data), shared)

    with in_course(tasks_folder(task)):
        bring_data(claimed, task, coordinator, shared)
        live.set_time_limit(pipeline.setting(task, options).profile.limits.wall_s)
        attempt, workspace = pipeline.grade(
            task, submission, options=options, on_progress=heartbeat.on_progress, out=folder
        )
        if attempt.grade.verdict is Verdict.JUDGE_ERROR:
            raise FailedToJudgeError(attempt.grade.verdict_reason)
        live.enter("report")
        heartbeat.raise_if_aborted()
        stored = artifacts.store_artifacts(keep, attempt, workspace)
        document = to_json(attempt.grade, audience=Audience.STAFF)
    return ExecutedAttempt(grades.new_grade(attempt.grade, document), stored, attempt.grade)


def bring_data(claimed: Claimed, task: Task, coordinator: Coordinator, shared: SharedState) -> None:
    """Fetch what the attempt is judged on where this host lacks it and the coordinator has it.

    Raises:
        AttemptLeaseLostError, StoreUnavailableError: what the coordinator answered, or that it did not.
        InfraError: what came is not what was offered, or the disk refuses.
    """
    try:
        find_dataset(task, settings().dataset, task.profile(claimed.profile))
    except UsageError:
        # Where nobody offers it, whoever prepares the run says how it is prepared here.
        offered = insist(lambda: coordinator.offered_data(claimed), shared)
        if offered is not None:
            take_data(
                offered,
                lambda number, offset: insist(
                    lambda: coordinator.data_piece(claimed, number, offset), shared
                ),
            )


def task_of(claimed: Claimed, coordinator: Coordinator, shared: SharedState) -> Task:
    """The task that an attempt is judged by: the copy that was kept of its version, fetched where it is not here yet.

    Raises:
        OtherVersionError: nobody kept that version, and no folder here is at it.
        TaskError: this grader cannot read it. InfraError: the copy is damaged.
        AttemptLeaseLostError, StoreUnavailableError: what the coordinator answered, or that it did not.
    """
    name, version = claimed.task, claimed.task_version
    if (kept := load_kept(name, version)) is not None:
        return kept
    packed = insist(lambda: coordinator.packed_task(claimed), shared)
    if packed is not None:
        return unpack_task(name, version, packed)
    try:
        return load_task(name, version)
    except UsageError as error:
        raise OtherVersionError(
            f"{error} Bring the folders of all workers to that version, or set the task in the course again, which "
            "keeps it, then regrade"
        ) from error
