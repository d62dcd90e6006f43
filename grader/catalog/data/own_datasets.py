"""Data sets that tasks bring along: made by the task's script, or by a kind, from files whose digests are known.

A version is in use for a task as long as its recipe and the files of its folder that were read on the way are the same:
two versions of a task find each its own data. Made once, offline, in a process of its own; its script is trusted.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from grader.catalog.data.versions import (
    SEED,
    SIDES,
    Manifest,
    data_root,
    file_digest,
    has_digests,
    keep,
    making,
    newest_first,
    read_manifest,
    version_of,
)
from grader.errors import InfraError, TaskError, UsageError
from grader.model.dataset import PreparedDataset
from grader.model.own_data import DataFile, OwnData
from grader.model.task import Task

WALL_S = 3600.0
"""Time that a task's script may take to make its data."""
VALIDATION = "validation"
"""Folder of the visible side that is laid out as the hidden side is, for scripts to validate on."""
_SPLITS = ("train", "validation", "hidden")
_ROOT = Path(__file__).resolve().parents[3]
_DOWNLOAD_S = 60.0


def needs_source(task: Task) -> bool:
    """Whether a task's own data is made from something that a site has to give."""
    own = task.own_data
    return own is not None and bool(
        own.source or any(_lacks(task, file) for file in own.files) or _is_kind(own)
    )


def own_command(task: Task) -> str:
    """The command that prepares a task's own data, as a person would type it."""
    return f"grader data prepare {task.name}" + (" --from PATH" if needs_source(task) else "")


def prepared(task: Task) -> PreparedDataset | None:
    """The version of a task's own data that was made last as the task makes it now; None: there is none."""
    path = prepared_manifest(task)
    return None if path is None else version_of(data_root(), read_manifest(path))


def prepared_manifest(task: Task) -> Path | None:
    """The same version's manifest."""
    if task.own_data is None:
        return None
    root = data_root()
    for path in newest_first((root / "own" / task.own_data.name).glob("*.json")):
        manifest = read_manifest(path)
        if manifest is not None and _fits(manifest, task) and version_of(root, manifest):
            return path
    return None


def prepare(task: Task, source: Path | None = None) -> PreparedDataset:
    """Make a task's own data, or find that it is made already.

    Args:
        task: one that brings its data along. source: what a site gives; None: nothing.

    Raises:
        UsageError: a source is needed and was not given, or is not what the task asks for.
        TaskError: the task's script, or a file of the task, needs mending.
        InfraError: a download failed or the disk refuses.
    """
    own, root = task.own_data, data_root()
    if own is None:
        raise ValueError(f"{task.name} brings no data along")
    if source is not None and not source.exists():
        raise UsageError(f"There is no file or folder {source}.")
    try:
        with making(root, own.name) as made:
            # Another process may have made it while this one waited.
            if source is None and (found := prepared(task)):
                return found
            return _make(task, own, source, root, made)
    except OSError as error:
        raise InfraError(f"The data set {own.name} could not be written below {root}: {error}") from error


def _make(task: Task, own: OwnData, source: Path | None, root: Path, made: Path) -> PreparedDataset:
    if own.source and source is None:
        raise UsageError(f"The data of {task.name} is made from {own.source}: {own_command(task)}")
    given = _given(task, own, source, made, root) if own.files else source
    out = made / "out"
    for side in SIDES:
        (out / side).mkdir(parents=True)
    if _is_kind(own):
        if given is None:
            raise UsageError(f"The data of {task.name} is taken from what you give: {own_command(task)}")
        kind = importlib.import_module(f"grader.catalog.data.kinds.{own.prepare}")
        answer: dict[str, Any] = {"counts": kind.prepare(out, given.resolve()), "inputs": []}
    else:
        answer = _run(task, own, out, given)
    _arrange(task, own, out, made)
    paths = sorted(
        p.relative_to(made).as_posix() for s in SIDES for p in (made / s).rglob("*") if p.is_file()
    )
    inputs = {name: file_digest(task.folder / name) for name in sorted(answer["inputs"])}
    train, validation, hidden = (_count(task, own, answer["counts"], split) for split in _SPLITS)
    draft = Manifest(
        schema=1,
        name=own.name,
        source=str(source) if source is not None else f"{task.name}/{own.prepare}",
        seed=SEED,
        num_train=train,
        num_validation=validation,
        num_hidden=hidden,
        recipe=_recipe(own),
        inputs=inputs,
    )
    key = hashlib.sha256(json.dumps([draft.recipe, inputs]).encode()).hexdigest()[:12]
    return keep(root, made, paths, draft, root / "own" / own.name / f"{key}.json")


def _is_kind(own: OwnData) -> bool:
    return not own.prepare.endswith(".py")


def _recipe(own: OwnData) -> dict[str, str]:
    return {"prepare": own.prepare, **{f"file {file.name}": file.sha256 for file in own.files}}


def _fits(manifest: Manifest, task: Task) -> bool:
    own = task.own_data
    return own is not None and manifest.recipe == _recipe(own) and has_digests(task.folder, manifest.inputs)


def _lacks(task: Task, file: DataFile) -> bool:
    return not file.url and not (task.folder / file.name).is_file()


def _given(task: Task, own: OwnData, source: Path | None, made: Path, root: Path) -> Path:
    """A folder with links to the task's files, each of which has its digest.

    Raises:
        UsageError: one is not there, or is another in what the site gave; TaskError: in the task's folder.
    """
    folder = made / "source"
    for file in own.files:
        path, found = _file(task, own, file, source, root), folder / file.name
        if file_digest(path) != file.sha256:
            said = f"{path} is not the file that {task.name}/task.toml asks for: its SHA-256 is {file_digest(path)}, "
            error = UsageError if source is not None and task.folder not in path.parents else TaskError
            raise error(f"{said}and data.files.{json.dumps(file.name)} says {file.sha256}.")
        found.parent.mkdir(parents=True, exist_ok=True)
        found.symlink_to(path.resolve())
    return folder


def _file(task: Task, own: OwnData, file: DataFile, source: Path | None, root: Path) -> Path:
    places = [task.folder / file.name]
    if source is not None:
        alone = source.is_file() and (source.name == Path(file.name).name or len(own.files) == 1)
        places.insert(0, source if alone else source / file.name)
    there = next((path for path in places if path.is_file()), None)
    if there is not None:
        return there
    if not file.url:
        raise UsageError(
            f"The data of {task.name} is made from {file.name}, which is not here: {own_command(task)}"
        )
    cached = root / "downloads" / file.sha256
    if not cached.is_file():
        _download(file.url, cached)
    return cached


def _download(url: str, path: Path) -> None:
    """Raises InfraError; what came halfway is not kept."""
    import urllib.request

    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}")
    try:
        with urllib.request.urlopen(url, timeout=_DOWNLOAD_S) as answer, half.open("wb") as file:
            while chunk := answer.read(1 << 20):
                file.write(chunk)
    except (OSError, ValueError) as error:
        half.unlink(missing_ok=True)
        raise InfraError(
            f"{url} could not be downloaded: {error}. Give the file with --from instead."
        ) from error
    half.rename(path)


def _run(task: Task, own: OwnData, out: Path, source: Path | None) -> dict[str, Any]:
    """What the task's script says: `counts` that it returned, and `inputs`, files of the task's folder that it read.

    Raises:
        TaskError: it failed.
    """
    message = {
        "folder": str(task.folder.resolve()),
        "script": own.prepare,
        "out": str(out),
        "source": str(source.resolve()) if source is not None else None,
        "seed": SEED,
    }
    # Isolated from the caller's folder: only our own package is put on the path.
    start = f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from grader.catalog.data.preparation import main; main()"
    answer = out.parent / "answer.json"
    # What the script prints is progress, for whoever waits.
    with subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", start, str(answer)],
        stdin=subprocess.PIPE,
        stdout=2,
        cwd=out,
        start_new_session=True,
    ) as process:
        try:
            process.communicate(json.dumps(message).encode(), timeout=WALL_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TaskError(f"{task.name}/{own.prepare} took longer than {WALL_S:,.0f} s.") from None
            raise
    if not answer.is_file():
        raise TaskError(
            f"{task.name}/{own.prepare} ended with exit code {process.returncode} before it was done."
        )
    said: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in said:
        raise TaskError(f"The data of {task.name} could not be made: {said['error']}")
    return said


def _arrange(task: Task, own: OwnData, out: Path, made: Path) -> None:
    """Move both sides to where a version keeps them, if they are what they must be.

    Raises:
        TaskError: the script left something else.
    """
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise TaskError(f"{task.name}/{own.prepare} left {name}, which is neither a file nor a folder.")
        if any(part.startswith(".") for part in path.relative_to(out).parts) or not name.isprintable():
            raise TaskError(
                f"{task.name}/{own.prepare} left {name!r}: choose a name that does not begin with a dot."
            )
    wanted = SIDES if own.is_images or not task.scored else (*SIDES, f"visible/{VALIDATION}")
    for name in wanted:
        if not any(path.is_file() for path in (out / name).rglob("*")) and (task.scored or name != "hidden"):
            raise TaskError(f"{task.name}/{own.prepare} left no file in {name}/ of the folder `out`.")
    (out / "visible").rename(made / "visible")
    hidden = made / "hidden" if own.is_images else made / "hidden" / "hidden"
    hidden.parent.mkdir(exist_ok=True)
    (out / "hidden").rename(hidden)


def _count(task: Task, own: OwnData, counts: Any, split: str) -> int:
    number = counts.get(split, 0) if isinstance(counts, dict) else 0
    if not isinstance(number, int) or number < 0:
        raise TaskError(
            f"{task.name}/{own.prepare}: `prepare()` returned {number!r} as the samples of {split}."
        )
    return number
