"""A short way to run a script in a runtime and to look at what came of it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grader.model.run import RunRecord
from grader.model.submission import SourceFile, Submission
from grader.model.task import Limits
from grader.run.record_reader import read_record
from grader.run.runtime import Job, Progress, Runtime
from grader.run.workspace import Workspace

LIMITS = Limits(wall_s=180.0, memory_bytes=4 << 30, output_bytes=1 << 20, log_bytes=1 << 16)


@dataclass(frozen=True)
class ScriptRun:
    """A run that is over, and where its files lie."""

    record: RunRecord
    workspace: Workspace
    progress: list[Progress]

    @property
    def exit_codes(self) -> list[int | None]:
        """Of each rank; None: it has none."""
        return [rank.exit_code for rank in self.record.ranks]

    def out(self, rank: int = 0) -> str:
        """What a rank printed."""
        return self.workspace.log(rank, "out").read_text()

    def err(self, rank: int = 0) -> str:
        """What a rank complained of."""
        return self.workspace.log(rank, "err").read_text()

    def output(self, path: str) -> str:
        """What lies below $OUTPUT_DIR under this path."""
        return (self.workspace.outputs / path).read_text()


RunScript = Callable[..., ScriptRun]


def limits_with(**changes: Any) -> Limits:
    """Generous limits, some of them changed."""
    return replace(LIMITS, **changes)


def make_job(root: Path, name: str, script: str | dict[str, str], **options: Any) -> Job:
    """A job of two ranks without the probe, unless told otherwise; `data`: what its data folder holds, by path."""
    texts = script if isinstance(script, dict) else {"train.py": script}
    files = tuple(SourceFile(path, textwrap.dedent(text)) for path, text in sorted(texts.items()))
    data_dir = root / "data"
    data_dir.mkdir(parents=True, exist_ok=True)
    for path, content in options.pop("data", {}).items():
        (data_dir / path).parent.mkdir(parents=True, exist_ok=True)
        (data_dir / path).write_bytes(content)
    defaults: dict[str, Any] = {"nproc_per_node": 2, "limits": LIMITS, "probe": False}
    return Job(
        attempt=name,
        submission=Submission("test", files),
        entry_point="train.py",
        data_dir=data_dir,
        **(defaults | options),
    )


def run_script(runtime: Runtime, root: Path, script: str | dict[str, str], **options: Any) -> ScriptRun:
    """Run a script (or several files) and read its record; `on_progress` is told of it instead of `progress`."""
    number = len(list(root.glob("run*")))
    workspace = Workspace(root / f"run{number}")
    workspace.root.mkdir(parents=True)
    progress: list[Progress] = []
    told = options.pop("on_progress", progress.append)
    runtime.run(make_job(root, f"test-{number}", script, **options), workspace, told)
    return ScriptRun(read_record(workspace.record), workspace, progress)


def processes_with(marker: str) -> list[int]:
    """Living processes with a word in their command line or name."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            zombie = b") Z " in (folder / "stat").read_bytes()
        except OSError:
            continue
        if marker.encode() in command and not zombie:
            found.append(int(folder.name))
    return found
