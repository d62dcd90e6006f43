"""Rules and diagnoses that are not the package's own: in a course's folder, and in a distribution that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.settings import settings

CHECKOUT = Path(__file__).resolve().parents[2]
Grader = Callable[..., "subprocess.CompletedProcess[str]"]

RULE = '''\
"""The script says hello.

## What it finds
A greeting.

## Why it matters
It is for tests.

## Example
```python
print("hello")
```

## Use instead
```python
print("epoch 1")
```

## How it is seen
In the source, by the word; in the run, by what rank 0 printed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.evidence import Evidence
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.script import Script
from grader.model.finding import EvidenceKind, Severity

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("DIST001",)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag the word."""
    for call in script.calls("print"):
        if any(isinstance(a, ast.Constant) and a.value == "hello" for a in call.args):
            yield Hit(f"{script.at(call)} greets.", "Leave it out.", (script.location(call),))


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that greeted."""
    if not evidence.logs:
        return not_observable("No output was kept.")
    greeting = [rank for rank, (out, _) in enumerate(evidence.logs) if "hello" in out.splitlines()]
    if greeting:
        return flagged(Hit("It greeted.", ranks=tuple(greeting), evidence=EvidenceKind.OUTSIDE))
    return verified("Nobody greeted.", EvidenceKind.OUTSIDE)
'''

DIAGNOSIS = '''\
"""The script gave up.

## What happened
It raised an exception that says so.

## Why
It is for tests.

## Mend it
Go on.
"""

from __future__ import annotations

import re

from grader.checks.run.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 5
_WORDS = re.compile("I give up")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    return run.crash(title="The script gave up", what="gave up", why="It is tired", hint="Go on.")
'''


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of tasks that holds nothing yet, for this process and those that it starts."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    monkeypatch.setenv("GRADER_TASKS_DIR", str(folder))
    settings.cache_clear()
    yield folder
    settings.cache_clear()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed distributions with nothing in it."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    return folder


@pytest.fixture
def grader(tmp_path: Path, site: Path) -> Grader:
    """Run `grader ARGS…` as a process of its own, with what is installed in `site`."""

    def run(
        *args: str | Path, package: Path = CHECKOUT, timeout_s: float = 240
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "grader", *map(str, args)],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": f"{package}{os.pathsep}{site}",
                "COLUMNS": "200",
                "NO_COLOR": "1",
            },
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


def installed(site: Path, name: str, files: dict[str, str], entries: dict[str, str]) -> None:
    """Lay out a distribution as an installer leaves it: its modules, and what it says of itself."""
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = [f"[{group}]\n{entry}\n" for group, entry in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(groups))
    record = [*files, f"{info.name}/METADATA", f"{info.name}/entry_points.txt", f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in record))
