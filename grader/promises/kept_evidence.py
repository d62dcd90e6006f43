"""Evidence of the tasks' own submissions, kept under a key of what ran, so that it can be judged again and again.

The key holds everything that decides what evidence a run leaves, and nothing of what judges it: where only rules,
rubric or score have changed, nothing need be run. Only real runs that kept their promise are stored, in the state
folder. A damaged entry is no entry.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import zlib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from grader.catalog.package_files import PACKAGE, digest, running_files
from grader.checks.evidence import Evidence, SourceEvidence
from grader.errors import GraderError
from grader.files import write_whole
from grader.judging.stored_evidence import read_evidence
from grader.model.grade import Grade
from grader.model.run_options import Setting
from grader.model.submission import Submission
from grader.plugins.sources import RUNTIMES, foreign_files
from grader.report.json_report import from_json
from grader.run.workspace import Workspace
from grader.settings import settings

SCHEMA = 1
# Weights and tables are large, and what is to be known of them stands in the scorer's answer; reports are made anew.
_LEFT_OUT = {"outputs", "submission", "report.html"}
_MAX_BYTES = 64 << 20
# Of one submission: runtimes and numbers of ranks have an entry each, and yesterday's code has one until then.
_MAX_ENTRIES = 4


def run_key(setting: Setting, submission: Submission, runtime: str) -> str:
    """What a run of this submission here and now is stored under, hex."""
    task = setting.task
    facts = {
        "schema": SCHEMA,
        "code": _running_code(),
        "packages": _packages(),
        "python": platform.python_version(),
        "task": task.name,
        "evaluate": digest(_scoring_files(task.folder), task.folder),
        "submission": submission.digest,
        "entry_point": task.entry_point,
        "scored": task.scored,
        "artifacts": [asdict(artifact) for artifact in task.artifacts],
        "profile": asdict(setting.profile),
        "nproc_per_node": setting.nproc_per_node,
        "nnodes": setting.nnodes,
        "dataset": f"{setting.dataset.name} {setting.dataset.version}",
        "runtime": runtime,
        "launcher": setting.launcher,
        "seed": setting.seed,
        "timed": setting.timed,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Where the evidence of one submission, run under one key, is kept; there may be none."""

    task: str
    submission: str
    key: str

    @property
    def path(self) -> Path:
        """The packed evidence."""
        folder = settings().evidence_root / self.task / self.submission
        return folder / f"{self.key}.tar.gz"

    def keep(self, workspace: Workspace) -> None:
        """Store what a run left; a disk that refuses is passed over."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
            for path in sorted(workspace.root.rglob("*")):
                name = path.relative_to(workspace.root)
                if not _LEFT_OUT.intersection(name.parts) and path.is_file() and not path.is_symlink():
                    archive.add(path, name.as_posix(), recursive=False)
        if packed.tell() > _MAX_BYTES:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, packed.getvalue())
            others = sorted(self.path.parent.glob("*.tar.gz"), key=lambda p: p.stat().st_mtime)
            for old in others[:-_MAX_ENTRIES]:
                old.unlink()
        except OSError:
            return

    def fetch(self, folder: Path) -> tuple[Evidence | SourceEvidence, Grade] | None:
        """Unpack it into a new folder: the evidence, and the grade that it got then; None where none can be read."""
        workspace = Workspace(folder)
        try:
            with tarfile.open(self.path, mode="r:gz") as archive:
                # The first Pythons 3.11 know no filter; it is our own archive.
                safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
                archive.extractall(folder, **safe)
            return read_evidence(workspace), from_json(workspace.grade.read_text(encoding="utf-8"))
        except (
            OSError,
            tarfile.TarError,
            zlib.error,
            EOFError,
            ValueError,
            LookupError,
            TypeError,
            GraderError,
        ):
            return None


def _scoring_files(folder: Path) -> tuple[Path, ...]:
    """What of a task's folder goes into the scorer: all but its text, its promises and what judges."""
    others = {"task.toml", "statement.md", "figures", "submissions"}
    return tuple(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and (parts := path.relative_to(folder).parts)[0] not in others
        and not any(part.startswith(".") or part == "__pycache__" for part in parts)
    )


@cache
def _running_code() -> str:
    """The judge's own code that runs, and what containers are built of."""
    built = PACKAGE.parent / "containers"
    images = digest((p for p in built.rglob("*") if p.is_file()), built) if built.is_dir() else ""
    runtimes = digest(foreign_files(RUNTIMES), Path("/"))
    return digest(running_files()) + images + runtimes


@cache
def _packages() -> str:
    """SHA-256 over names and versions of all installed packages: a submission may import any of them."""
    found = sorted({f"{one.name}=={one.version}" for one in metadata.distributions()})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()
