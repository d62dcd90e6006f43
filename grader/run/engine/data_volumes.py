"""Data as volumes of the engine: filled once per content through the engine's own interface, mounted read-only.

The engine may be on another machine than this process, so no folder of ours is ever mounted. A volume is named after
what is in it; one that was only half filled is filled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import secrets
import tarfile
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import IO

from docker import DockerClient
from docker.errors import NotFound
from docker.models.containers import Container

from grader.launch.ranks.data_folder import files_below
from grader.run.engine.client import engine_errors, gone_is_fine
from grader.run.engine.ownership import ROLE, STATE, Ownership

_MARK = ".complete"
_AT = "/data"


class DataVolumes:
    """Volumes of one state folder."""

    def __init__(self, client: DockerClient, ownership: Ownership, state_dir: Path, image: str) -> None:
        self._client = client
        self._ownership = ownership
        self._image = image
        self._lock = state_dir / "owners" / ".volumes"
        self._known: dict[str, str] = {}

    def of(self, folder: Path, files: Sequence[str] | None = None) -> str:
        """Name of the volume that holds these files of a folder, filled if need be; None: all of them.

        Raises:
            InfraError: the engine refuses; OSError: the folder cannot be read.
        """
        files = tuple(files_below(folder) if files is None else files)
        digest = files_digest(folder, files)
        if digest not in self._known:
            name = f"grader-data-{digest}"
            # One process at a time fills; the others find it full.
            with self._lock.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with engine_errors("The data could not be put where containers find it"):
                    self._fill(name, folder, files)
            self._known[digest] = name
        return self._known[digest]

    def _fill(self, name: str, folder: Path, files: tuple[str, ...]) -> None:
        client = self._client
        labels = {STATE: self._ownership.state, ROLE: "data"}
        client.volumes.create(name, labels=labels)
        # Never started: it only lends the engine a place to unpack into.
        helper = client.containers.create(
            self._image,
            command=["true"],
            name=f"grader-fill-{secrets.token_hex(4)}",
            labels=self._ownership.labels("fill", name),
            network_mode="none",
            volumes={name: {"bind": _AT, "mode": "rw"}},
        )
        try:
            if not _is_complete(helper):
                with packed(folder, files) as archive:
                    helper.put_archive(_AT, archive)
                helper.put_archive(_AT, _mark())
        finally:
            with gone_is_fine():
                helper.remove(force=True)


def _is_complete(container: Container) -> bool:
    try:
        container.get_archive(f"{_AT}/{_MARK}")
    except NotFound:
        return False
    return True


def files_digest(folder: Path, files: Sequence[str]) -> str:
    """A name for what is in a folder: names and contents of these files, sorted."""
    stats = [(name, (folder / name).stat()) for name in files]
    return _content_digest(folder, tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats))


@cache
def _content_digest(folder: Path, sizes: tuple[tuple[str, int, int], ...]) -> str:
    sha = hashlib.sha256()
    for name, size, _mtime in sizes:
        sha.update(f"{len(name)} {name} {size}\n".encode())
        with (folder / name).open("rb") as file:
            while chunk := file.read(1 << 20):
                sha.update(chunk)
    return sha.hexdigest()[:16]


def packed(folder: Path, files: Sequence[str]) -> IO[bytes]:
    """Files of a folder as a tar archive: owned by root, readable by everybody, writable by nobody."""
    # Data may be larger than memory.
    buffer = tempfile.TemporaryFile()  # noqa: SIM115  whoever asked reads it
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        above = {folder / parent for name in files for parent in Path(name).parents[:-1]}
        for path in sorted({*above, *(folder / name for name in files)}):
            info = archive.gettarinfo(path, str(path.relative_to(folder)))
            if not (info.isreg() or info.isdir()):
                continue
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mode = 0o755 if info.isdir() else 0o644
            if info.isdir():
                archive.addfile(info)
            else:
                with path.open("rb") as file:
                    archive.addfile(info, file)
    buffer.seek(0)
    return buffer


def _mark() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(_MARK))
    return buffer.getvalue()
