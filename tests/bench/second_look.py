"""M1s: what a second look takes, as a share of the run that it is made for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.catalog.tasks.task_folders import load_task
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.run.record_reader import read_record
from tests import promised
from tests.bench.figures import Figure

OPTIONS = Options(dataset="digits", timed=False)
REJECTED = ("rejected/never_wrapped", "rejected/reset_on_one_rank")


def measure_second_look(runs: int) -> Iterator[Figure]:
    """Submissions whose ranks' models part at once, and after some steps."""
    task = load_task("ddp-fashion")
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder, Pipeline("process") as pipeline:
        for name in REJECTED:
            submission = promised.submission(task.name, name)
            shares = []
            for number in range(max(2, runs // 4)):
                out = Path(folder) / f"{name.rpartition('/')[2]}-{number}"
                _, workspace = pipeline.grade(task, submission, options=OPTIONS, out=out)
                first, second = (read_record(w.record) for w in (workspace, workspace.second_look))
                shares.append(second.wall_s / first.wall_s)
            yield Figure.of("M1s", name, "ratio", 1.0, shares)
