"""Warm pipelines for a whole module of attacks: the judge under attack, a neighbour beside it, and honest attempts.

What an attempt came to is looked at by the tests; nothing here asserts anything.
"""

from __future__ import annotations

import base64
import io
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from grader.catalog.tasks.task_folders import load_task
from grader.judging.attempt import Attempt
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.model.task import Target, Task
from grader.pipeline import Pipeline
from grader.run.runtime import Progress
from grader.run.workspace import Workspace
from tests.trust.attack import Attack, find

# Three epochs over the small digits reach 0.85 and more; untrained weights are right once in ten.
_ACCURACY = 0.6
OPTIONS = Options(dataset="digits", timed=False)


@dataclass(frozen=True)
class Judged:
    """What came of one attempt: the attempt, its files, and how long its run took from its beginning to its end."""

    attempt: Attempt
    workspace: Workspace
    run_s: float

    @property
    def printed(self) -> str:
        """What all ranks printed."""
        return "\n".join(log.out + log.err for log in self._logs())

    @property
    def said(self) -> str:
        """The grade and the scorer's answer, as text."""
        evaluation = self.workspace.evaluation
        scored = evaluation.read_text(encoding="utf-8") if evaluation.exists() else ""
        return f"{self.attempt.grade}\n{self.attempt.record}\n{scored}"

    @property
    def facts(self) -> list[str]:
        """What staff is told about this run."""
        found = self.attempt.grade.findings
        return [str(fact) for finding in found for fact in finding.details.get("facts", [])]

    def _logs(self) -> Iterator[_Log]:
        record = self.attempt.record
        for rank in range(record.world_size if record is not None else 0):
            yield _Log(*(self.workspace.log(rank, s).read_text(encoding="utf-8") for s in ("out", "err")))


@dataclass(frozen=True)
class _Log:
    out: str
    err: str


def short_task(attack: Attack) -> Task:
    """The task that is attacked, with the attack's own limits and a target that three epochs reach."""
    task = load_task("ddp-fashion")
    memory = attack.memory_mib << 20
    return replace(
        task,
        targets=(
            Target("accuracy", levels={"digits": _ACCURACY}),
            *(t for t in task.targets if t.metric != "accuracy"),
        ),
        profiles=tuple(
            replace(p, limits=replace(p.limits, wall_s=attack.wall_s, memory_bytes=memory))
            for p in task.profiles
        ),
    )


class Judges:
    """Pipelines by runtime and side (`under attack`, `neighbour`), opened when they are first asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[tuple[str, str], Pipeline] = {}
        self._number = 0
        self._options = OPTIONS
        self._phase: Callable[[str], None] = lambda _phase: None
        self._filling: dict[str, dict[str, str]] = {}

    @property
    def open(self) -> set[str]:
        """Runtimes that have warm pipelines now."""
        return {runtime for runtime, _side in self._open}

    def judge(self, runtime: str, attack: Attack, side: str = "under attack") -> Judged:
        """Hand the attack in and wait for its grade."""
        if attack.after and side == "under attack":
            self.judge(runtime, find(attack.after), side)
        filling = self._fill(runtime) if attack.fill else {}
        return self._grade(runtime, side, short_task(attack), attack.submission(filling))

    def judge_beside_honest(self, runtime: str, attack: Attack) -> tuple[Judged, Judged]:
        """The attack's grade, and that of an honest attempt that ran at the same time."""
        return self.judge_both(runtime, attack, find("00_honest"))

    def judge_both(self, runtime: str, attack: Attack, neighbour: Attack) -> tuple[Judged, Judged]:
        """Both at the same time: each waits for its containers first, and takes half of a small machine's cores."""
        beside: list[Judged] = []
        pipelines = [self._pipeline(runtime, side) for side in ("neighbour", "under attack")]
        if len(os.sched_getaffinity(0)) < 4:
            self._options = replace(OPTIONS, nproc_per_node=1)
        for pipeline in pipelines:
            pipeline.warm(pipeline.setting(short_task(attack), self._options))
        thread = threading.Thread(target=lambda: beside.append(self.judge(runtime, neighbour, "neighbour")))
        thread.start()
        try:
            judged = self.judge(runtime, attack)
        finally:
            thread.join()
            self._options = OPTIONS
        return judged, beside[0]

    def close(self) -> None:
        """End every pipeline."""
        while self._open:
            self._open.popitem()[1].__exit__(None, None, None)

    def _grade(self, runtime: str, side: str, task: Task, submission: Submission) -> Judged:
        pipeline = self._pipeline(runtime, side)
        self._number += 1
        out = self._root / f"{self._number:03}-{submission.name}"
        clock = _PhaseClock()
        attempt, workspace = pipeline.grade(
            task, submission, options=self._options, on_progress=clock, out=out
        )
        return Judged(attempt, workspace, clock.run_s())

    def _pipeline(self, runtime: str, side: str) -> Pipeline:
        if (runtime, side) not in self._open:
            self._open[runtime, side] = Pipeline(runtime).__enter__()
        return self._open[runtime, side]

    def _fill(self, runtime: str) -> dict[str, str]:
        """What only an honest run can give: its weights, and what its ranks told."""
        if runtime not in self._filling:
            honest = find("00_honest")
            text = honest.files["train.py"].replace("honest.main()", "honest.main(epochs=8)")
            longer = replace(honest, files={**honest.files, "train.py": text})
            judged = self.judge(runtime, longer)
            self._filling[runtime] = {"WEIGHTS": _weights(judged), "TRACE": _trace(judged)}
        return self._filling[runtime]


class _PhaseClock:
    """Times the run from the start of its ranks to the first sign of what follows: collected, and all dead."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._ended = 0.0

    def __call__(self, sign: Progress) -> None:
        if sign.phase == "run" and self._began is None:
            self._began = time.monotonic() - sign.elapsed_s
        elif sign.phase == "evaluate":
            self._ended = time.monotonic()

    def run_s(self) -> float:
        return self._ended - self._began if self._began is not None and self._ended else 0.0


def _weights(honest: Judged) -> str:
    import torch

    state = torch.load(honest.workspace.outputs / "model.pt", weights_only=True)
    small = io.BytesIO()
    torch.save({k: v.half() if v.is_floating_point() else v for k, v in state.items()}, small)
    return base64.b64encode(zlib.compress(small.getvalue(), 9)).decode()


def _trace(honest: Judged) -> str:
    ranks = []
    for rank in range(2):
        lines = honest.workspace.trace(rank).read_text(encoding="utf-8").splitlines()
        ranks.append([line.partition("\t")[2] for line in lines])
    return base64.b64encode(zlib.compress(json.dumps(ranks).encode(), 9)).decode()


@contextmanager
def judges_at(root: Path) -> Iterator[Judges]:
    """Judges that keep what comes of attempts below `root`."""
    judges = Judges(root)
    try:
        yield judges
    finally:
        judges.close()
