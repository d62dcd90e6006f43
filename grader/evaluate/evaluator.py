"""Starts the scorer and talks to it: one request, one evaluation, and no process left behind.

Tells apart whose fault a failure is; decides nothing about points.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from grader.errors import InfraError, TaskError
from grader.evaluate.scoring import Request
from grader.evaluate.stored import evaluation_from_dict, write_evaluation
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Evaluation
from grader.model.task import Task
from grader.run.workspace import Workspace

_START_S = 120.0
_ROOT = Path(__file__).resolve().parent.parent.parent


class Evaluator:
    """A warm scorer; a context manager that starts it without waiting and ends it with everything it started.

    Attributes:
        wall_s: time one scoring may take, seconds.
    """

    def __init__(self, wall_s: float = 60.0) -> None:
        self.wall_s = wall_s
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""
        self._ready = False

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile()
        # Isolated from the caller's folder and variables: only our own package is put on the path.
        start = (
            f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from grader.evaluate.scorer import main; main()"
        )
        environment = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
            if name in os.environ
        }
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", start],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd="/",
                env=environment | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                # Its own session: Ctrl-C is ours to handle, and one signal reaches it with its children.
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise InfraError(f"The scorer could not be started: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(BrokenPipeError):
                if process.stdin:
                    process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()
        if self._errors:
            self._errors.close()
        self._pending, self._ready = b"", False

    def warm(self, task: Task | None = None, dataset: PreparedDataset | None = None) -> None:
        """Wait until torch is imported; with a task and its data, until these are loaded too.

        Raises:
            InfraError: the scorer never comes up.
            TaskError: the task's evaluate.py cannot be imported.
        """
        if not self._ready:
            self._receive(time.monotonic() + _START_S)
            self._ready = True
        if task is not None and dataset is not None:
            self._ask(_request("warm", task, dataset, self.wall_s), task, self.wall_s)

    def evaluate(self, task: Task, workspace: Workspace, dataset: PreparedDataset) -> Evaluation:
        """Score what a run left in the workspace's output folder and store the result beside it.

        Raises:
            InfraError: the scorer failed; the submission is not to blame.
            TaskError: the task's evaluate.py failed.
        """
        if self._process is not None and self._process.poll() is not None:
            # Killed from outside while it was idle: nothing of this attempt was lost with it.
            self.__exit__(None, None, None)
            self.__enter__()
        self.warm()
        request = _request("score", task, dataset, self.wall_s, workspace.outputs)
        answer = self._ask(request, task, self.wall_s + 10)
        evaluation = evaluation_from_dict(answer["evaluation"])
        write_evaluation(workspace.evaluation, evaluation)
        return evaluation

    def _ask(self, request: Request, task: Task, wall_s: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None:
            raise InfraError("The scorer was not started.")
        try:
            process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise InfraError(f"The scorer is gone: {error}.{self._last_words()}") from error
        answer = self._receive(time.monotonic() + wall_s)
        if "task_error" in answer:
            raise TaskError(f"The task {task.name}'s evaluate.py needs mending: {answer['task_error']}.")
        if "infra_error" in answer:
            raise InfraError(f"The scorer failed: {answer['infra_error']}.{self._last_words()}")
        return answer

    def _receive(self, deadline: float) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdout is None:
            raise InfraError("The scorer was not started.")
        descriptor = process.stdout.fileno()
        while b"\n" not in self._pending:
            readable, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                # An answer that comes later must not be taken for the next one's.
                process.kill()
                raise InfraError(f"The scorer gave no answer in time.{self._last_words()}")
            chunk = os.read(descriptor, 1 << 16)
            if not chunk:
                raise InfraError(f"The scorer ended.{self._last_words()}")
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise InfraError("The scorer gave an answer that is none.")
        return answer

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        # The scorer writes through the same open file: seeking would move its position too.
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        lines = os.pread(descriptor, 4096, max(0, size - 4096)).decode(errors="replace").strip().splitlines()
        return f" Its last words: {lines[-1]}" if lines else ""


def _request(
    op: str, task: Task, dataset: PreparedDataset, wall_s: float, outputs: Path | None = None
) -> Request:
    return Request(
        op=op,
        evaluate=str((task.folder / "evaluate.py").resolve()),
        visible=str(dataset.visible_dir.resolve()) if task.scored else "",
        hidden=str(dataset.hidden_dir.resolve()) if task.scored else "",
        data_version=dataset.version,
        outputs=str(outputs.absolute()) if outputs is not None else "",
        wall_s=wall_s,
    )
