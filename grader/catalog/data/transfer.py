"""A prepared version of a data set, taken from one host to another: its manifest, then its files piece by piece.

Whoever takes it compares every file with its digest, and the whole with its version: nothing half, and nothing else, is
ever in use. The hidden side goes along; who may have it is for others to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from grader.catalog.courses.course_archive import checked_path
from grader.catalog.data.datasets import prepared_manifest
from grader.catalog.data.versions import (
    SIDES,
    Manifest,
    data_root,
    file_digest,
    keep,
    making,
    read_manifest,
    version_of,
)
from grader.errors import InfraError, UsageError
from grader.model.dataset import PreparedDataset
from grader.model.task import Profile, Task

PIECE_BYTES = 4 << 20
MAX_BYTES = 16 << 30
"""Of a version that is taken: disks of compute nodes are no place for more, unasked."""
_PLACE = re.compile(r"(own/[a-z0-9][a-z0-9_-]*/)?[a-z0-9][a-z0-9_-]*\.json")


@dataclass(frozen=True, slots=True)
class OfferedData:
    """A version that another host has; `place`: of its manifest below the folder of all data sets."""

    place: str
    manifest: Manifest


def offered_data(task: Task, profile: Profile | None) -> OfferedData | None:
    """The version that a task is judged on here, None where none is prepared; prepares nothing."""
    root = data_root()
    path = prepared_manifest(task, profile)
    manifest = None if path is None else read_manifest(path)
    if path is None or manifest is None or version_of(root, manifest) is None:
        return None
    return OfferedData(path.relative_to(root).as_posix(), manifest)


def data_piece(offered: OfferedData, number: int, offset: int) -> bytes:
    """At most `PIECE_BYTES` of the file of that number, from 0, in the manifest's order; b"" behind its end.

    Raises:
        UsageError: there is no such file.
    """
    paths = list(offered.manifest.files)
    if not 0 <= number < len(paths):
        raise UsageError(f"{offered.manifest.name} has no file {number}")
    with (data_root() / paths[number]).open("rb") as file:
        file.seek(offset)
        return file.read(PIECE_BYTES)


def take_data(offered: OfferedData, piece: Callable[[int, int], bytes]) -> PreparedDataset:
    """Fetch a version and put it in use here.

    Args:
        offered: what the other host has; piece: asks it for a piece of a file, by number and offset.

    Raises:
        InfraError: what came is not what was offered, or the disk refuses.
    """
    manifest, root = offered.manifest, data_root()
    total = sum(file.bytes for file in manifest.files.values())
    if total > MAX_BYTES or not _PLACE.fullmatch(offered.place):
        raise InfraError(f"the data set {manifest.name} ({total} bytes) is not taken from another host")
    try:
        with making(root, manifest.name) as made:
            paths = [_below(manifest, path) for path in manifest.files]
            for number, (path, file) in enumerate(zip(paths, manifest.files.values(), strict=True)):
                place = made / path
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("wb") as out:
                    while (size := out.tell()) < file.bytes and (part := piece(number, size)):
                        out.write(part)
                if file_digest(place) != file.sha256:
                    raise InfraError(f"{path} of the data set {manifest.name} did not come as it was offered")
            for side in SIDES:
                (made / side).mkdir(exist_ok=True)
            taken = keep(root, made, paths, replace(manifest, version="", files={}), root / offered.place)
    except OSError as error:
        raise InfraError(f"the data set {manifest.name} cannot be written below {root}: {error}") from error
    if taken.version != manifest.version:
        raise InfraError(
            f"the data set {manifest.name} came as version {taken.version}, not {manifest.version}"
        )
    return taken


def _below(manifest: Manifest, path: str) -> str:
    """`hidden/<name>/<version>/x` as `hidden/x`."""
    side, name, version, rest = [*checked_path(path).split("/", 3), "", "", ""][:4]
    if side not in SIDES or (name, version) != (manifest.name, manifest.version) or not rest:
        raise InfraError(f"{path} is no place for a file of the data set {manifest.name}")
    return f"{side}/{rest}"
