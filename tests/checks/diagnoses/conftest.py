"""One warm parent for all runs of this room; a script in, the evidence of its real two-rank run out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.checks.evidence import Evidence
from grader.checks.source.script import parse
from grader.launch.spec import LaunchSpec
from grader.model.submission import SourceFile, Submission
from grader.run.fork_server_client import ForkServerClient
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from tests.attempt_facts import attempt_facts

FOLDERS = ("submission", "data", "output", "scratch", "record")
WALL_S = 30.0

RunScript = Callable[..., Evidence]


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[ForkServerClient]:
    parent = ForkServerClient()
    try:
        parent.wait_ready()
        yield parent
    finally:
        parent.close()


@pytest.fixture
def run_script(warm_parent: ForkServerClient, tmp_path: Path) -> RunScript:
    """`run_script(text, wall_s=…, memory_bytes=…, …)` with any field of `LaunchSpec`; short silences, two ranks."""

    def run(text: str, **options: Any) -> Evidence:
        for name in FOLDERS:
            (tmp_path / name).mkdir()
        (tmp_path / "submission" / "train.py").write_text(text)
        fields: dict[str, Any] = {
            "attempt": "test",
            "launcher": "fork",
            "nproc_per_node": 2,
            "entry_point": "train.py",
            "argv": (),
            "wall_s": WALL_S,
            "silence_s": 0.7,
            "stack_gap_s": 0.7,
        }
        fields |= {f"{name}_dir": str(tmp_path / name) for name in FOLDERS}
        warm_parent.run(LaunchSpec(**(fields | options)), WALL_S + 12, lambda event: None)
        record_dir = tmp_path / "record"
        record = read_record(record_dir / "record.json")
        trace = read_trace([record_dir / "trace" / f"rank{rank}.trace" for rank in range(record.world_size)])
        logs = tuple(
            tuple((record_dir / "logs" / f"rank{rank}.{kind}").read_text() for kind in ("out", "err"))
            for rank in range(record.world_size)
        )
        return Evidence(
            facts=attempt_facts(text),
            script=parse(Submission("test", (SourceFile("train.py", text),))),
            record=record,
            trace=trace,
            scored=False,
            logs=logs,  # type: ignore[arg-type]
        )

    return run
