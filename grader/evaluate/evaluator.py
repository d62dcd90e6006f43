"""Has a scorer score what a run left: one request, one evaluation, stored beside the run.

Tells apart whose fault a failure is; decides nothing about points. The scorer is a process of this machine, or the one
that the runtime brings.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.errors import InfraError, TaskError
from grader.evaluate.audit.told_steps import told
from grader.evaluate.files.measurement_files import write_stored
from grader.evaluate.scorer.local_scorer import LocalScorer
from grader.evaluate.scorer.run_accounts import read_account
from grader.evaluate.scorer.run_scoring import ScoringRequest
from grader.evaluate.scorer.task_archive import packed
from grader.json_reader import read_value
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Evaluation
from grader.model.task import Task
from grader.run.runtime_scorer import RuntimeScorer
from grader.run.workspace import Workspace


class Evaluator:
    """A warm scorer; a context manager that starts it without waiting and ends it with everything it started.

    Attributes:
        wall_s: time one scoring may take, seconds.
    """

    def __init__(self, wall_s: float = 60.0, *, local: bool = True) -> None:
        """`local` False starts no process: every run comes with a scorer of its runtime's."""
        self.wall_s = wall_s
        self._local = LocalScorer() if local else None

    def __enter__(self) -> Self:
        if self._local is not None:
            self._local.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._local is not None:
            self._local.stop()

    def warm(self, task: Task | None = None, dataset: PreparedDataset | None = None) -> None:
        """Wait until torch is imported; with a task and its data, until these are loaded too.

        Raises:
            InfraError: the scorer never comes up.
            TaskError: the task's evaluate.py cannot be imported.
        """
        if self._local is None:
            return
        self._local.wait_ready()
        if task is not None and dataset is not None:
            request = asdict(_request("warm", task, dataset, self.wall_s))
            _checked(self._local.ask(request, self.wall_s), task, self._local.last_words())

    def evaluate(
        self,
        task: Task,
        workspace: Workspace,
        dataset: PreparedDataset,
        end: RuntimeScorer | None = None,
        model_size: str = "",
    ) -> Evaluation:
        """Score what a run left and store the result beside it.

        Args:
            task, dataset: what to score by.
            workspace: of the run.
            end: the runtime's own scorer, which holds what the run left; None: read the workspace's output folder.
            model_size: of the task's network that was trained, as the profile names it.

        Raises:
            InfraError: the scorer failed; the submission is not to blame.
            TaskError: the task's evaluate.py failed.
        """
        request = asdict(_request("score", task, dataset, self.wall_s, workspace.outputs))
        request["model_size"], request["levels"] = model_size, task.levels(dataset.name)
        if task.scored:
            request["told_steps"], request["told_pictures"] = told(workspace, dataset, task.has_images)
        if task.examined:
            request["run"] = asdict(read_account(workspace, dataset))
        if end is not None:
            seen = {"visible": end.folders.visible, "hidden": end.folders.hidden} if task.scored else {}
            request |= seen | {"outputs": end.folders.outputs, "task_files": packed(task.folder)}
            answer = _checked(end.ask(request, self.wall_s + 10), task, "")
        elif self._local is not None:
            answer = _checked(self._local.ask(request, self.wall_s + 10), task, self._local.last_words())
        else:
            raise InfraError("The run left no scorer to ask.")
        evaluation = replace(read_value(Evaluation, answer["evaluation"]), class_labels=dataset.class_labels)
        write_stored(workspace.evaluation, evaluation)
        return evaluation


def _checked(answer: dict[str, Any], task: Task, last_words: str) -> dict[str, Any]:
    if "task_error" in answer:
        raise TaskError(f"The task {task.name}'s evaluate.py needs mending: {answer['task_error']}.")
    if "infra_error" in answer:
        raise InfraError(f"The scorer failed: {answer['infra_error']}.{last_words}")
    return answer


def _request(
    op: str, task: Task, dataset: PreparedDataset, wall_s: float, outputs: Path | None = None
) -> ScoringRequest:
    return ScoringRequest(
        op=op,
        evaluate=str((task.folder / "evaluate.py").resolve()),
        visible=str(dataset.visible_dir.resolve()) if task.scored else "",
        hidden=str(dataset.hidden_dir.resolve()) if task.scored else "",
        data_version=dataset.version,
        class_labels=list(dataset.class_labels),
        outputs=str(outputs.absolute()) if outputs is not None else "",
        wall_s=wall_s,
        artifacts={artifact.name: dict(artifact.columns) for artifact in task.artifacts},
        version=task.version,
        reads_folder=not task.has_images,
        num_hidden=dataset.num_hidden,
        num_validation=dataset.num_validation,
        metrics=[asdict(metric) for metric in task.metrics],
        questions=[item.answer for item in task.rubric if item.answer],
    )
