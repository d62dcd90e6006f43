"""Prepared data sets on this machine: made once, found by name, safe against a second process and a pulled plug.

Two separate trees below the data folder: `visible/<name>/<version>` is what scripts get, `hidden/<name>/<version>` what
only the scorer gets; `<name>.json`, written last, says that a version is complete and is the one in use. Nothing
here says what a split is good for.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grader.errors import InfraError, UsageError
from grader.files import write_whole
from grader.model.dataset import PreparedDataset
from grader.model.task import Profile, Task

if TYPE_CHECKING:
    from grader.catalog.sources import Splits

_RAW = Path("FashionMNIST") / "raw"


@dataclass(frozen=True, slots=True)
class _File:
    """One file of a prepared version."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What `<name>.json` says of the version in use; `files` by path below the folder of all data sets."""

    schema: Literal[1]
    name: str
    version: str
    source: str
    seed: str
    num_train: int
    num_validation: int
    num_hidden: int
    num_dropped: int
    files: dict[str, _File]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one data set comes to this machine."""

    embedded: bool = False
    download: bool = False


_KINDS = {
    "digits": _Kind(embedded=True),
    "fashion-mnist-mini": _Kind(),
    "fashion-mnist": _Kind(download=True),
}


def dataset_names() -> tuple[str, ...]:
    """Names that `prepare` knows."""
    return tuple(_KINDS)


def data_command(name: str) -> str:
    """The command that prepares a data set, as a person would type it."""
    kind = _KINDS[name]
    return f"grader data prepare {name}" + ("" if kind.embedded or kind.download else " --from FOLDER")


def find_dataset(task: Task, wanted: str | None = None, profile: Profile | None = None) -> PreparedDataset:
    """The data set to judge a task on.

    Args:
        task: whose data sets are meant.
        wanted: name, from the command line or the settings; None: the first prepared one in the task's order. An
            embedded one is prepared on the way, so that a fresh machine needs no other command.
        profile: where it is judged; it may prefer some of the task's data sets.

    Raises:
        UsageError: it is not one of the task's, or not prepared here; the text has the command that prepares it.
    """
    if wanted is not None and wanted not in task.datasets:
        raise UsageError(
            f"The task {task.name} is not judged on {wanted!r}. Its data sets are: {', '.join(task.datasets)}."
        )
    preferred = profile.datasets if profile is not None else ()
    names = (wanted,) if wanted is not None else preferred or task.datasets
    for name in names:
        if found := prepared(name):
            return found
    for name in names:
        if _KINDS[name].embedded:
            return prepare(name)
    commands = "\n".join(f"  {data_command(name)}" for name in names)
    raise UsageError(
        f"The data for {task.name} is not prepared on this machine. Prepare it once with\n{commands}"
    )


def prepared(name: str) -> PreparedDataset | None:
    """The version in use, or None when there is none or files are missing. Looks at sizes, not at contents."""
    root = _root()
    manifest = _manifest(root / f"{name}.json")
    if manifest is None:
        return None
    try:
        whole = all((root / path).stat().st_size == file.bytes for path, file in manifest.files.items())
    except OSError:
        return None
    return _dataset(root, manifest) if whole else None


def prepare(name: str, source: Path | None = None) -> PreparedDataset:
    """Prepare a data set, or find that it is prepared already.

    Args:
        name: one of `dataset_names()`.
        source: folder in FashionMNIST's layout to take it from; None: embedded or downloaded.

    Raises:
        UsageError: unknown name, a source is needed and was not given, or the source is not usable.
        InfraError: a download failed or the disk refuses.
    """
    if name not in _KINDS:
        raise UsageError(f"There is no data set {name!r}. There are: {', '.join(_KINDS)}.")
    kind = _KINDS[name]
    if source is not None and kind.embedded:
        raise UsageError(f"{name} comes with the program; leave --from away.")
    if source is None and not kind.embedded and not kind.download:
        raise UsageError(
            f"{name} needs a folder in FashionMNIST's layout to be taken from: {data_command(name)}"
        )
    if source is not None and not source.is_dir():
        raise UsageError(f"There is no folder {source}.")
    root = _root()
    try:
        with _lock(root, name):
            manifest = _manifest(root / f"{name}.json")
            if source is None and manifest is not None and _intact(root, manifest):
                return _dataset(root, manifest)
            return _make(root, name, _splits(name, source, root))
    except OSError as error:
        raise InfraError(f"The data set {name} could not be written below {root}: {error}") from error


def _splits(name: str, source: Path | None, root: Path) -> Splits:
    from grader.catalog import sources

    if source is not None:
        return sources.folder(source)
    return sources.digits() if _KINDS[name].embedded else sources.download(root / "downloads" / name)


def _make(root: Path, name: str, splits: Splits) -> PreparedDataset:
    """Write both trees, then say so in the manifest: whatever cuts it short, nothing half done is ever used."""
    from grader.idx import images_bytes, labels_bytes

    sides = {
        "visible": {"train": splits.train, "t10k": splits.validation},
        "hidden": {"t10k": splits.hidden},
    }
    contents: dict[str, dict[Path, bytes]] = {}
    sha = hashlib.sha256()
    for side, parts in sides.items():
        contents[side] = {}
        for split, samples in parts.items():
            contents[side][_RAW / f"{split}-images-idx3-ubyte"] = images_bytes(samples.images)
            contents[side][_RAW / f"{split}-labels-idx1-ubyte"] = labels_bytes(samples.labels)
        for path, content in contents[side].items():
            sha.update(f"{side} {path.as_posix()} {len(content)}\n".encode() + content)
    version = sha.hexdigest()[:12]
    files: dict[str, _File] = {}
    for side, written in contents.items():
        place = Path(side) / name / version
        _write_tree(root / place, written)
        for path, content in written.items():
            files[(place / path).as_posix()] = _File(len(content), hashlib.sha256(content).hexdigest())
    from grader.catalog.sources import SEED

    manifest = _Manifest(
        schema=1,
        name=name,
        version=version,
        source=splits.source,
        seed=SEED,
        num_train=len(splits.train),
        num_validation=len(splits.validation),
        num_hidden=len(splits.hidden),
        num_dropped=splits.num_dropped,
        files=files,
    )
    write_whole(root / f"{name}.json", json.dumps(asdict(manifest), indent=2))
    return _dataset(root, manifest)


def _write_tree(place: Path, contents: dict[Path, bytes]) -> None:
    if all((place / path).is_file() and (place / path).read_bytes() == c for path, c in contents.items()):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    # Whatever an interrupted run left here is ours to sweep: the lock is held.
    for leftover in place.parent.glob(".making-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
    for path, content in contents.items():
        (temporary / path).parent.mkdir(parents=True, exist_ok=True)
        (temporary / path).write_bytes(content)
    temporary.chmod(0o755)
    if place.exists():
        shutil.rmtree(place)
    temporary.rename(place)


def _manifest(path: Path) -> _Manifest | None:
    # Pydantic takes longer to import than `grader lint` takes for a script, and lint reads no manifest.
    from grader.json_reader import read_json

    try:
        return read_json(_Manifest, path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _intact(root: Path, manifest: _Manifest) -> bool:
    try:
        return all(
            hashlib.sha256((root / path).read_bytes()).hexdigest() == file.sha256
            for path, file in manifest.files.items()
        )
    except OSError:
        return False


def _dataset(root: Path, manifest: _Manifest) -> PreparedDataset:
    name, version = manifest.name, manifest.version
    return PreparedDataset(
        name=name,
        version=version,
        visible_dir=root / "visible" / name / version,
        hidden_dir=root / "hidden" / name / version,
        num_train=manifest.num_train,
        num_validation=manifest.num_validation,
        num_hidden=manifest.num_hidden,
    )


@contextlib.contextmanager
def _lock(root: Path, name: str) -> Iterator[None]:
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _root() -> Path:
    from grader.settings import settings

    return settings().data_root.absolute()
