"""The files in an archive of a course, `.tar.gz`, `.tar` or `.zip`, read entry by entry into memory within limits.

No name that stands in it becomes a path before it was looked at, links and special files condemn the whole, and what it
claims of its own sizes is believed of nothing: bytes are counted as they come.
"""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from grader.errors import UsageError

MAX_FILES = 4096
MAX_TOTAL_BYTES = 64 << 20
_MAX_ENTRIES = 2 * MAX_FILES
_MAX_DEPTH, _MAX_NAME_BYTES = 16, 400
_PASSED_OVER = ("__MACOSX", "__pycache__")
_PART_BYTES = 1 << 20
_SPECIAL = "is a link or a special file; put the file itself into the archive"
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


def read_archive(file: IO[bytes]) -> dict[str, bytes]:
    """Path → content of all files of an archive, in its order; hidden files and caches are left out.

    Raises:
        UsageError: it is none of the three kinds, damaged, hostile, or holds more than a course may.
    """
    found: dict[str, bytes] = {}
    total = 0
    try:
        is_zip = zipfile.is_zipfile(file)
        file.seek(0)
        for name, parts in _zip_entries(file) if is_zip else _tar_entries(file):
            path = checked_path(name)
            if any(part.startswith(".") or part in _PASSED_OVER for part in path.split("/")):
                continue
            if path in found or len(found) >= MAX_FILES:
                raise UsageError(
                    f"The archive holds {path} twice."
                    if path in found
                    else f"The archive holds more than {MAX_FILES:,} files."
                )
            content = io.BytesIO()
            for part in parts:
                total += len(part)
                if total > MAX_TOTAL_BYTES:
                    raise UsageError(
                        f"The archive holds more than {MAX_TOTAL_BYTES >> 20} MiB. Large data is no part of a course: "
                        "let `prepare.py` make it, or prepare it on the hosts of the workers."
                    )
                content.write(part)
            found[path] = content.getvalue()
    except _DAMAGED as error:
        raise UsageError(f"This is no .tar.gz, .tar or .zip file, or a damaged one: {error}") from None
    return found


def checked_path(name: str) -> str:
    """A name in an archive as a relative path.

    Raises:
        UsageError: it points out of its folder, or is no name of a file.
    """
    path = PurePosixPath(name)
    wrong = not name or not name.isprintable() or "\\" in name or ":" in name or path.is_absolute()
    if wrong or ".." in path.parts or not path.parts:
        raise UsageError(
            f"The archive has an entry {name[:120]!r}, which is no path within it. Pack it anew."
        )
    if len(path.parts) > _MAX_DEPTH or len(name.encode()) > _MAX_NAME_BYTES:
        raise UsageError(f"The archive has an entry {name[:120]!r}, which is too long a path.")
    return str(path)


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what `read_archive` has read below a folder."""
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _tar_entries(file: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for number, entry in enumerate(archive):
            if number >= _MAX_ENTRIES:
                raise UsageError(f"The archive has more than {_MAX_ENTRIES:,} entries.")
            if entry.isdir():
                checked_path(entry.name)
                continue
            content = archive.extractfile(entry) if entry.isreg() else None
            if content is None:
                raise UsageError(f"{entry.name[:120]!r} {_SPECIAL}.")
            yield entry.name, _parts(content)


def _zip_entries(file: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    with zipfile.ZipFile(file) as archive:
        if len(archive.infolist()) > _MAX_ENTRIES:
            raise UsageError(f"The archive has more than {_MAX_ENTRIES:,} entries.")
        for entry in archive.infolist():
            if entry.is_dir():
                checked_path(entry.filename)
                continue
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise UsageError(f"{entry.filename[:120]!r} {_SPECIAL}.")
            with archive.open(entry) as content:
                yield entry.filename, _parts(content)


def _parts(content: IO[bytes]) -> Iterator[bytes]:
    while part := content.read(_PART_BYTES):
        yield part
