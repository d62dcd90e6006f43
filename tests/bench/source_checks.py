"""M4: how long reading a script takes: 1,000 lines with all rules in process, and `grader lint` from cold."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from grader.catalog.tasks.task_folders import load_task, reference
from grader.checks.lint import lint
from grader.model.submission import SourceFile, Submission
from tests.bench.figures import Figure


def thousand_lines() -> str:
    """A script of (nearly) 1,000 lines: the reference, with its own functions under other names in front."""
    submission = reference(load_task("ddp-fashion")).submission
    text = submission.text("train.py") or ""
    body, copies = text, 0
    while body.count("\n") < 1_000:
        copies += 1
        body = (
            text.replace("def ", f"def again_{copies}_").replace("class ", f"class Again{copies}")
            + "\n"
            + body
        )
    # __future__ imports may only stand once, at the top.
    body = body.replace("from __future__ import annotations\n", "\n")
    lines = body.splitlines(keepends=True)
    starts = [statement.lineno for statement in ast.parse(body).body]
    first = next(start for start in starts if len(lines) - start < 1_000)
    return "".join(lines[first - 1 :])


def measure_source_checks(runs: int) -> Iterator[Figure]:
    """In process (fresh parse each time), then the whole command."""
    text = thousand_lines()
    submission = Submission("bench", (SourceFile("train.py", text),))
    lint(submission)
    in_process = []
    for _ in range(runs):
        began = time.perf_counter()
        lint(submission)
        in_process.append(time.perf_counter() - began)
    yield Figure.of("M4", f"{text.count(chr(10))} lines, all rules", "s", 0.03, in_process)
    cold = []
    with tempfile.TemporaryDirectory(prefix="grader-bench-") as folder:
        path = Path(folder) / "train.py"
        path.write_text(text, encoding="utf-8")
        # As installed: with byte code, whatever this shell says about writing it. The first run only writes it.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(1 + max(5, runs // 2)):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "grader", "lint", str(path)],
                capture_output=True,
                timeout=60,
                check=False,
                env=environment,
            )
            cold.append(time.perf_counter() - began)
    yield Figure.of("M4", "grader lint from cold", "s", 0.2, cold[1:])
