"""Data sets on this machine, found by name: those that everybody knows, and those that tasks bring along.

Knows how each comes to this machine; how a prepared version is kept is `versions`'.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.catalog.data import own_datasets
from grader.catalog.data.versions import (
    SEED,
    Manifest,
    data_root,
    is_intact,
    keep,
    making,
    read_manifest,
    version_of,
)
from grader.errors import InfraError, UsageError
from grader.model.dataset import PreparedDataset
from grader.model.task import Profile, Task

if TYPE_CHECKING:
    from grader.catalog.data.image_sources import Splits


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
        wanted: name, from the command line or the settings; None: the first prepared one in the task's order. What
            needs nothing from outside is prepared on the way, so that a fresh machine needs no other command.
        profile: where it is judged; it may prefer some of the task's data sets.

    Raises:
        UsageError: it is not one of the task's, or not prepared here; the text has the command that prepares it.
        TaskError: the task's own script that makes its data needs mending.
    """
    if task.own_data is not None and wanted in _KINDS:
        # A choice among the sets that everybody knows, for all tasks at once: here there is none.
        wanted = None
    if wanted is not None and wanted not in task.datasets:
        raise UsageError(
            f"The task {task.name} is not judged on {wanted!r}. Its data sets are: {', '.join(task.datasets)}."
        )
    if task.own_data is not None:
        return own_datasets.prepared(task) or own_datasets.prepare(task)
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


def prepared_manifest(task: Task, profile: Profile | None = None) -> Path | None:
    """The manifest of the version that a task would be judged on; None: none is prepared. Prepares nothing."""
    if task.own_data is not None:
        return own_datasets.prepared_manifest(task)
    names = (profile.datasets if profile is not None else ()) or task.datasets
    return next((data_root() / f"{name}.json" for name in names if prepared(name)), None)


def prepared(name: str) -> PreparedDataset | None:
    """The version in use, or None when there is none or files are missing. Looks at sizes, not at contents."""
    root = data_root()
    return version_of(root, read_manifest(root / f"{name}.json"))


def prepare(name: str, source: Path | None = None) -> PreparedDataset:
    """Prepare a data set, or find that it is prepared already.

    Args:
        name: one of `dataset_names()`.
        source: folder or file to take it from, see `image_sources.taken_from`; None: embedded or downloaded.

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
        raise UsageError(f"{name} needs images with labels to be taken from: {data_command(name)}")
    if source is not None and not source.exists():
        raise UsageError(f"There is no file or folder {source}.")
    root = data_root()
    path = root / f"{name}.json"
    try:
        with making(root, name) as made:
            manifest = read_manifest(path)
            if source is None and manifest is not None and is_intact(root, manifest):
                found = version_of(root, manifest)
                if found is not None:
                    return found
            return _make(root, made, path, name, _splits(name, source, root))
    except OSError as error:
        raise InfraError(f"The data set {name} could not be written below {root}: {error}") from error


def _splits(name: str, source: Path | None, root: Path) -> Splits:
    from grader.catalog.data import image_sources

    if source is not None:
        return image_sources.as_fashion_mnist(image_sources.taken_from(source), source)
    return (
        image_sources.digits() if _KINDS[name].embedded else image_sources.download(root / "downloads" / name)
    )


def _make(root: Path, made: Path, path: Path, name: str, splits: Splits) -> PreparedDataset:
    from grader.catalog.data.image_sources import write_splits

    draft = Manifest(
        schema=1,
        name=name,
        source=splits.source,
        seed=SEED,
        num_train=len(splits.train),
        num_validation=len(splits.validation),
        num_hidden=len(splits.hidden),
        num_dropped=splits.num_dropped,
    )
    return keep(root, made, write_splits(splits, made), draft, path)
