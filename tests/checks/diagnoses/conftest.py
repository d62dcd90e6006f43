"""One warm parent for all runs of this room; a script in, the evidence of its real two-rank run out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.checks.seen import Seen
from grader.checks.text.source import parse
from grader.checks.told.ledger import Ledger
from grader.launch.spec import LaunchSpec
from grader.model.submission import SourceFile, Submission
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.warm_parent import WarmParent

FOLDERS = ("submission", "data", "output", "scratch", "record")
WALL_S = 30.0

RunScript = Callable[..., Seen]


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[WarmParent]:
    parent = WarmParent()
    try:
        parent.wait_ready()
        yield parent
    finally:
        parent.close()


@pytest.fixture
def run_script(warm_parent: WarmParent, tmp_path: Path) -> RunScript:
    """`run_script(text, wall_s=…, memory_bytes=…, …)` with any field of `LaunchSpec`; short silences, two ranks."""

    def run(text: str, **options: Any) -> Seen:
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
        return Seen(
            script=parse(Submission("test", (SourceFile("train.py", text),))),
            record=record,
            trace=trace,
            ledger=Ledger.of(trace, None, None),
            evaluation=None,
            profile="cpu",
            logs=logs,  # type: ignore[arg-type]
        )

    return run
