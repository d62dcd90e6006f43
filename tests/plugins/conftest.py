"""Rules and diagnoses that are not the package's own: in a course's folder, and in a distribution that is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.settings import settings

CHECKOUT = Path(__file__).resolve().parents[2]
Grader = Callable[..., "subprocess.CompletedProcess[str]"]


def documented(title: str) -> str:
    """The example in docs/plugins.md whose docstring begins like this."""
    page = (CHECKOUT / "docs" / "plugins.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^(~~~|```)python\n(.*?)^\1$", page, flags=re.MULTILINE | re.DOTALL)
    (found,) = (code for _, code in blocks if code.startswith(f'"""{title}'))
    return str(found)


# With the one constant more that its text tells of.
_SEVERITY = "SEVERITY = Severity.WARNING\n"
RULE = documented("A debugging print").replace(_SEVERITY, f'{_SEVERITY}EXPLAINED_BY = ("DIST001",)\n')
DIAGNOSIS = documented("The script asked for a course file")


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
