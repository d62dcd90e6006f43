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
from grader.json_reader import read_json
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
_KEY_FILE = "run_key.json"
_DAMAGED = (OSError, tarfile.TarError, zlib.error, EOFError, ValueError)


@dataclass(frozen=True, slots=True)
class RunKey:
    """What decides the evidence that a run here and now leaves: where it is all the same, so is the evidence.

    Attributes:
        asked: how it is run, as the one who runs it asked for; another wish is another run.
        parts: a digest of everything else that decides, under the name that it is told by.
    """

    asked: dict[str, str]
    parts: dict[str, str]

    @property
    def hex(self) -> str:
        """What evidence is stored under."""
        return _sha([SCHEMA, self.asked, self.parts])


def run_key(setting: Setting, submission: Submission, runtime: str) -> RunKey:
    """What a run of this submission here and now hangs on."""
    task = setting.task
    asked = {
        "task": task.name,
        "profile": setting.profile.name,
        "nproc_per_node": setting.nproc_per_node,
        "nnodes": setting.nnodes,
        "dataset": setting.dataset.name,
        "runtime": runtime,
        "launcher": setting.launcher,
        "seed": setting.seed,
        "timed": setting.timed,
        "on_cpu": setting.on_cpu,
    }
    told = [task.entry_point, task.scored, [asdict(one) for one in task.artifacts], asdict(setting.profile)]
    parts = {
        **_running_code(),
        "installed packages": _packages(),
        "Python": platform.python_version(),
        "how the task scores": digest(_scoring_files(task.folder), task.folder),
        "the submission": submission.digest,
        "task.toml": _sha(told),
        "the data": setting.dataset.version,
    }
    return RunKey({name: str(value) for name, value in asked.items()}, parts)


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Where the evidence of one submission, run under one key, is kept; there may be none."""

    task: str
    submission: str
    key: RunKey

    @property
    def path(self) -> Path:
        """The packed evidence."""
        folder = settings().evidence_root / self.task / self.submission
        return folder / f"{self.key.hex}.tar.gz"

    def changed(self) -> tuple[str, ...]:
        """Names of what decides a run and has changed since the latest that was asked for like this; () without one."""
        for path in reversed(_by_age(self.path.parent)):
            before = _key_of(path)
            if before is not None and before.asked == self.key.asked:
                now, then = self.key.parts, before.parts
                return tuple(
                    sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))
                )
        return ()

    def keep(self, workspace: Workspace) -> None:
        """Store what a run left; a disk that refuses is passed over."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=6) as archive:
            # First, so that it is read without unpacking the rest.
            content = json.dumps(asdict(self.key), sort_keys=True).encode()
            head = tarfile.TarInfo(_KEY_FILE)
            head.size = len(content)
            archive.addfile(head, io.BytesIO(content))
            for path in sorted(workspace.root.rglob("*")):
                name = path.relative_to(workspace.root)
                if not _LEFT_OUT.intersection(name.parts) and path.is_file() and not path.is_symlink():
                    archive.add(path, name.as_posix(), recursive=False)
        if packed.tell() > _MAX_BYTES:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, packed.getvalue())
            for old in _by_age(self.path.parent)[:-_MAX_ENTRIES]:
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
            (folder / _KEY_FILE).unlink(missing_ok=True)
            return read_evidence(workspace), from_json(workspace.grade.read_text(encoding="utf-8"))
        except (*_DAMAGED, LookupError, TypeError, GraderError):
            return None


def _by_age(folder: Path) -> list[Path]:
    """Kept runs of one submission, the latest last."""
    return sorted(folder.glob("*.tar.gz"), key=lambda path: path.stat().st_mtime)


def _key_of(path: Path) -> RunKey | None:
    """What a kept run hung on; None where that cannot be read, or was not written yet."""
    try:
        with tarfile.open(path, mode="r:gz") as archive:
            first = archive.next()
            file = archive.extractfile(first) if first is not None and first.name == _KEY_FILE else None
            return read_json(RunKey, file.read().decode()) if file is not None else None
    except _DAMAGED:
        return None


def _scoring_files(folder: Path) -> tuple[Path, ...]:
    """What of a task's folder goes into the scorer: all but its text, its promises and what judges."""
    others = {"task.toml", "statement.md", "figures", "submissions"}
    return tuple(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and (parts := path.relative_to(folder).parts)[0] not in others
        and not path.match("statement.*.md")
        and not any(part.startswith(".") or part == "__pycache__" for part in parts)
    )


@cache
def _running_code() -> dict[str, str]:
    """The judge's own code that runs, by rooms, and what containers are built of."""
    rooms: dict[str, list[Path]] = {}
    for path in running_files():
        rooms.setdefault(f"grader/{path.relative_to(PACKAGE).parts[0]}", []).append(path)
    built = PACKAGE.parent / "containers"
    return {
        **{room: digest(paths) for room, paths in rooms.items()},
        "containers": digest((p for p in built.rglob("*") if p.is_file()), built),
        "runtimes of other packages": digest(foreign_files(RUNTIMES), Path("/")),
    }


@cache
def _packages() -> str:
    """SHA-256 over names and versions of all installed packages: a submission may import any of them."""
    found = sorted({f"{one.name}=={one.version}" for one in metadata.distributions()})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _sha(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
