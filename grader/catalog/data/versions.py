"""Prepared versions of data sets: content-addressed, written once, safe against a second process and a pulled plug.

Two separate trees below the data folder: `visible/<name>/<version>` is what scripts get, `hidden/<name>/<version>` what
only the scorer gets. A manifest, written last, says that a version is complete. Nothing here says where data comes
from, or what a split is good for.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from grader.files import write_whole
from grader.model.dataset import PreparedDataset

SEED = "grader splits, 1"
"""What every choice of a split hangs on, besides the samples themselves."""
SIDES = ("visible", "hidden")


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One file of a prepared version."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of one prepared version.

    Attributes:
        source: where it was taken from, in words; seed: that it was divided by.
        num_train, num_validation, num_hidden: samples, 0 where nobody says; num_dropped: left out.
        files: by path below the folder of all data sets.
        recipe: what it was made by, so that another recipe is known to be another; empty for everybody's sets.
        inputs: digests of files of the task's folder that were read on the way, by path.
    """

    schema: Literal[1]
    name: str
    source: str
    seed: str
    num_train: int = 0
    num_validation: int = 0
    num_hidden: int = 0
    num_dropped: int = 0
    version: str = ""
    files: dict[str, VersionFile] = field(default_factory=dict)
    recipe: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


def data_root() -> Path:
    """The folder of all data sets."""
    from grader.settings import settings

    return settings().data_root.absolute()


def read_manifest(path: Path) -> Manifest | None:
    """A manifest; None where there is none that can be read."""
    # Pydantic takes longer to import than `grader lint` takes for a script, and lint reads no manifest.
    from grader.json_reader import read_json

    try:
        return read_json(Manifest, path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def version_of(root: Path, manifest: Manifest | None) -> PreparedDataset | None:
    """The data set that a manifest tells of; None when files are missing. Looks at sizes, not at contents."""
    if manifest is None:
        return None
    try:
        whole = all((root / path).stat().st_size == file.bytes for path, file in manifest.files.items())
    except OSError:
        return None
    return _dataset(root, manifest) if whole else None


def is_intact(root: Path, manifest: Manifest) -> bool:
    """Whether all files have the contents that they were written with."""
    try:
        return all(file_digest(root / path) == file.sha256 for path, file in manifest.files.items())
    except OSError:
        return False


@contextlib.contextmanager
def making(root: Path, name: str) -> Iterator[Path]:
    """An empty folder to make a version of a data set in, while nobody else makes one; it is gone afterwards."""
    with locked(root, name):
        made = root / ".making" / name
        # Whatever an interrupted run left here is ours to sweep: the lock is held.
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def locked(root: Path, name: str) -> Iterator[None]:
    """While nobody else prepares this data set."""
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def keep(root: Path, made: Path, paths: Sequence[str], draft: Manifest, manifest: Path) -> PreparedDataset:
    """Move what was made to its place, then say so in the manifest: whatever cuts it short, nothing half is ever used.

    Args:
        made: holds `visible` and `hidden`, on the file system of `root`.
        paths: of all files below it; their order takes part in the version.
        draft: the manifest without version and files; manifest: where it is written.
    """
    sha, digests = hashlib.sha256(), dict[str, VersionFile]()
    for path in paths:
        size = (made / path).stat().st_size
        side, _, below = path.partition("/")
        sha.update(f"{side} {below} {size}\n".encode())
        digests[path] = VersionFile(size, file_digest(made / path, sha))
    version = sha.hexdigest()[:12]
    for side in SIDES:
        _move(
            made / side, root / side / draft.name / version, {p: digests[p] for p in digests if _on(p, side)}
        )
    placed = {
        f"{p.partition('/')[0]}/{draft.name}/{version}/{p.partition('/')[2]}": digests[p] for p in paths
    }
    whole = replace(draft, version=version, files=placed)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    write_whole(manifest, json.dumps(asdict(whole), indent=2))
    return _dataset(root, whole)


def _on(path: str, side: str) -> bool:
    return path.startswith(f"{side}/")


def _move(made: Path, place: Path, files: dict[str, VersionFile]) -> None:
    with contextlib.suppress(OSError):
        if all(file_digest(place / p.partition("/")[2]) == file.sha256 for p, file in files.items()):
            return
    for path in (made, *made.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    made.rename(place)


def file_digest(path: Path, also: hashlib._Hash | None = None) -> str:
    """SHA-256 of a file, hex; `also` takes the same bytes."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sha.update(chunk)
            if also is not None:
                also.update(chunk)
    return sha.hexdigest()


def has_digests(folder: Path, digests: dict[str, str]) -> bool:
    """Whether all these files of a folder have these SHA-256 digests."""
    try:
        return all(_known_digest(folder / name, *_state(folder / name)) == d for name, d in digests.items())
    except OSError:
        return False


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


@cache
def _known_digest(path: Path, _size: int, _mtime_ns: int) -> str:
    return file_digest(path)


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """Files that were written last come first."""
    return sorted(paths, key=lambda p: (p.stat().st_mtime_ns, p.name), reverse=True)


def _dataset(root: Path, manifest: Manifest) -> PreparedDataset:
    name, version = manifest.name, manifest.version
    visible, hidden = (root / side / name / version for side in SIDES)
    return PreparedDataset(
        name=name,
        version=version,
        visible_dir=visible,
        hidden_dir=hidden,
        num_train=manifest.num_train,
        num_validation=manifest.num_validation,
        num_hidden=manifest.num_hidden,
    )
