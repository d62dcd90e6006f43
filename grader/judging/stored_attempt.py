"""A stored attempt judged again, by the task as it is now or as it was handed in for, and what that changes.

Its evidence stays as the run left it. Where the task scores otherwise by now, the weights are scored anew if they were
kept; else the old score holds, and that is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.catalog.data.datasets import find_dataset
from grader.catalog.tasks.kept_tasks import changed_files, load_kept, tasks_folder
from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError, UsageError
from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.measurement_files import read_stored
from grader.judging.attempt import Attempt
from grader.judging.attempt_folder import read_facts
from grader.judging.judge import regrade
from grader.model.attempt_facts import AttemptFacts
from grader.model.evaluation import Evaluation
from grader.model.task import Task
from grader.run.workspace import Workspace
from grader.settings import in_course

_SCORES_NOTHING = ("task.toml", "figures/", "skeleton/", "rules/", "diagnoses/")


@dataclass(frozen=True, slots=True)
class JudgedVersion:
    """By which version a stored attempt is judged again, and how that differs from the one that it was handed in for.

    Attributes:
        facts: what was judged; task: what judges now.
        before: the task as it was handed in for, None where nobody kept that.
        changed: files that the two differ in; empty where they are the same, or nobody can tell.
    """

    facts: AttemptFacts
    task: Task
    before: Task | None
    changed: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether it is judged by the version that it was handed in for."""
        return self.task.version == self.facts.task_version

    @property
    def scores_otherwise(self) -> bool:
        """Whether the scorer may come to another answer, as far as can be told."""
        if self.same:
            return False
        before = self.before
        if before is None or (before.artifacts, before.scored) != (self.task.artifacts, self.task.scored):
            return True
        return any(not one.startswith(_SCORES_NOTHING) and not one.endswith(".md") for one in self.changed)


def judged_version(workspace: Workspace, *, as_handed_in: bool) -> JudgedVersion:
    """What judges a stored attempt again.

    Raises:
        UsageError: it is to be judged as it was handed in for, and nobody kept that version; or its files are damaged.
        TaskError: the task has a mistake.
    """
    facts = read_facts(workspace)
    name, version = facts.task, facts.task_version
    if as_handed_in:
        task = load_task(name, version)
        return JudgedVersion(facts, task, task, ())
    try:
        before = load_kept(name, version)
    except TaskError:
        # Of an earlier grader; what judges now need not know.
        before = None
    try:
        task = load_task(name)
    except UsageError as error:
        if before is None:
            raise
        raise UsageError(f"{error} A copy of the task was kept: `--version kept` judges by it.") from None
    if before is None and task.version == version:
        before = task
    return JudgedVersion(facts, task, before, () if before is None else changed_files(before, task))


def judge_again(workspace: Workspace, chosen: JudgedVersion) -> Attempt:
    """Judge it; the grade's notes say by what, and whether it was scored anew.

    Raises:
        UsageError: its files are missing or damaged, or the task has its profile no more.
        TaskError: the task's scorer or a rule of its course needs mending. InfraError: the scorer failed.
    """
    with in_course(tasks_folder(chosen.task)):
        scored, said = _scored(workspace, chosen)
        attempt = regrade(scored, chosen.task)
    if chosen.same:
        return attempt
    note = (
        f"Judged again by version {chosen.task.version[:12]} of the task; it was handed in for version "
        f"{chosen.facts.task_version[:12]}. {_difference(chosen)}{said}"
    )
    return replace(attempt, grade=replace(attempt.grade, notes=(*attempt.grade.notes, note)))


def _difference(chosen: JudgedVersion) -> str:
    if chosen.before is None:
        return "Nobody kept that one, so what has changed cannot be told."
    return f"Changed since: {', '.join(chosen.changed)}."


def _scored(workspace: Workspace, chosen: JudgedVersion) -> tuple[Workspace, str]:
    """The workspace with the score that is to be judged, and what is to be said of it."""
    old = read_stored(workspace.evaluation, Evaluation)
    if old is None or not chosen.scores_otherwise:
        return workspace, ""
    anew = Workspace(workspace.root, scored_by=chosen.task.version)
    if not anew.evaluation.is_file():
        if not _weights_kept(workspace, old):
            return workspace, " The files that it left were not kept, so the score is still that of the run."
        problem = _score(anew, chosen, old)
        if problem:
            return workspace, f" The score is still that of the run: {problem}"
    return anew, " What it left was scored anew."


def _weights_kept(workspace: Workspace, old: Evaluation) -> bool:
    if not workspace.outputs.is_dir():
        return False
    return not old.artifact or (workspace.outputs / old.artifact).is_file()


def _score(anew: Workspace, chosen: JudgedVersion, old: Evaluation) -> str:
    """Score what was left by the task that judges now; returns why it could not be, "" where it was."""
    facts, task = chosen.facts, chosen.task
    profile = task.profile(facts.profile)
    try:
        dataset = find_dataset(task, facts.dataset, profile)
    except UsageError as error:
        return str(error)
    if (dataset.num_train, dataset.num_hidden) != (facts.num_train, facts.num_hidden):
        return f"{facts.dataset} is not prepared here as it was then."
    with Evaluator() as evaluator:
        dataset = replace(dataset, class_labels=old.class_labels)
        evaluator.evaluate(task, anew, dataset, model_size=profile.model_size if profile else "")
    return ""
