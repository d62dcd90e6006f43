"""One fork server for all tests of this room, and a way to give it whole specs: short silences, small caps."""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grader.launch.spec import LaunchSpec
from grader.model.run import RunRecord
from grader.run.fork_server_client import ForkServerClient
from grader.run.record_reader import read_record


@dataclass(frozen=True)
class Launched:
    """A run that is over."""

    record: RunRecord
    folder: Path

    def out(self, rank: int = 0) -> str:
        return (self.folder / "record" / "logs" / f"rank{rank}.out").read_text()

    def err(self, rank: int = 0) -> str:
        return (self.folder / "record" / "logs" / f"rank{rank}.err").read_text()


Launch = Callable[..., Launched]


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[ForkServerClient]:
    parent = ForkServerClient()
    try:
        parent.wait_ready()
        yield parent
    finally:
        parent.close()


@pytest.fixture
def launch(warm_parent: ForkServerClient) -> Iterator[Launch]:
    """`launch(script, nproc_per_node=…, silence_s=…, …)` with any field of `LaunchSpec`."""
    folders_made = ExitStack()

    def run(script: str, **options: Any) -> Launched:
        # Short as the runtime's: paths of sockets, which `multiprocessing` makes in there, have at most 107 bytes.
        folder = Path(folders_made.enter_context(tempfile.TemporaryDirectory(prefix="launch-")))
        for name in ("submission", "data", "output", "scratch", "record"):
            (folder / name).mkdir(parents=True)
        (folder / "submission" / "train.py").write_text(textwrap.dedent(script))
        folders = {
            f"{name}_dir": str(folder / name)
            for name in ("submission", "data", "output", "scratch", "record")
        }
        defaults: dict[str, Any] = {
            "nproc_per_node": 2,
            "wall_s": 60.0,
            "probe": False,
            "launcher": "fork",
            "argv": (),
        }
        fields = {"attempt": "test", "entry_point": "train.py"} | folders | defaults | options
        warm_parent.run(LaunchSpec(**fields), fields["wall_s"] + 12, lambda event: None)
        return Launched(read_record(folder / "record" / "record.json"), folder)

    with folders_made:
        yield run
