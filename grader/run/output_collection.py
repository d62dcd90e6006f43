"""Bring back what a script left in its output folder, without trusting a single name or file type in it.

Everything goes through directory descriptors, no link is ever followed, nothing but a plain file with one name is
ever opened, and nothing is copied beyond the caps. A learner's process may still be changing the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 1000
_MOST_ENTRIES = 10_000
_DEEPEST = 8
_LONGEST_NAME = 200
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """One file that was brought back; `path` relative to the output folder, `mtime_unix_s` its last write."""

    path: str
    size_bytes: int
    mtime_unix_s: float


@dataclass(frozen=True, slots=True)
class Collection:
    """What came and what was refused: (safe name, reason in words)."""

    files: tuple[CollectedFile, ...]
    refused: tuple[tuple[str, str], ...]


def collect(source: Path, target: Path, cap_bytes: int) -> Collection:
    """Copy the plain files below `source` to `target`.

    Args:
        source: the output folder that ranks wrote to.
        target: folder for the copies; made if need be, must be empty.
        cap_bytes: cap on the sum of all sizes.

    Raises:
        OSError: `source` is not a folder, or `target` cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    walk = _Walk(cap_bytes)
    root = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        walk.folder(root, target, "", 0)
    finally:
        os.close(root)
    return Collection(tuple(sorted(walk.files, key=lambda f: f.path)), tuple(sorted(walk.refused)))


def safe_name(name: str) -> str:
    """A file name fit for a report: unprintable characters and undecodable bytes escaped, length capped."""
    escaped = name.encode("utf-8", "backslashreplace").decode("utf-8")
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"


class _Walk:
    def __init__(self, cap_bytes: int) -> None:
        self.files: list[CollectedFile] = []
        self.refused: list[tuple[str, str]] = []
        self._room_bytes = cap_bytes
        self._num_entries = 0

    def folder(self, folder: int, target: Path, prefix: str, depth: int) -> None:
        with os.scandir(folder) as entries:
            for entry in entries:
                self._num_entries += 1
                if self._num_entries > _MOST_ENTRIES:
                    self._refuse(
                        prefix or ".", f"more than {_MOST_ENTRIES:,} entries; the rest was not looked at"
                    )
                    return
                self._entry(folder, entry.name, target, prefix, depth)

    def _entry(self, folder: int, name: str, target: Path, prefix: str, depth: int) -> None:
        path = prefix + name
        if safe_name(name) != name:
            self._refuse(path, "its name is not plain text")
            return
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                self._subfolder(folder, name, target, path, depth)
            elif (reason := self._objection(status)) is not None:
                self._refuse(path, reason)
            else:
                self._file(folder, name, target, path)
        except OSError as error:
            # Gone, swapped for something else or closed to us between two looks.
            self._refuse(path, f"could not be read: {error.strerror}")

    def _subfolder(self, folder: int, name: str, target: Path, path: str, depth: int) -> None:
        if depth >= _DEEPEST:
            self._refuse(path, f"folders nest deeper than {_DEEPEST}")
            return
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        inner = os.open(name, flags, dir_fd=folder)
        try:
            self.folder(inner, target, f"{path}/", depth + 1)
        finally:
            os.close(inner)

    def _objection(self, status: os.stat_result) -> str | None:
        if stat.S_ISLNK(status.st_mode):
            return "it is a symbolic link"
        if not stat.S_ISREG(status.st_mode):
            return "it is not a plain file"
        if status.st_nlink != 1:
            return "it has more than one name (hard link)"
        if status.st_size > self._room_bytes:
            return f"with its {status.st_size:,} bytes the outputs would be larger than allowed"
        if len(self.files) >= _MOST_FILES:
            return f"there are more than {_MOST_FILES:,} files"
        return None

    def _file(self, folder: int, name: str, target: Path, path: str) -> None:
        # O_NONBLOCK: should a FIFO have taken the file's place just now, opening it must not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        source = os.open(name, flags, dir_fd=folder)
        try:
            status = os.fstat(source)
            if (reason := self._objection(status)) is not None:
                self._refuse(path, reason)
                return
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copied = _copy(source, copy, status.st_size)
        finally:
            os.close(source)
        self._room_bytes -= copied
        self.files.append(CollectedFile(path, copied, status.st_mtime))

    def _refuse(self, path: str, reason: str) -> None:
        if len(self.refused) < _MOST_FILES:
            self.refused.append((safe_name(path), reason))


def _copy(source: int, copy: Path, size_bytes: int) -> int:
    """Copy at most the size that was seen, whatever the file has become; returns bytes copied."""
    left = size_bytes
    with copy.open("xb") as file:
        while left:
            sent = os.sendfile(file.fileno(), source, None, min(left, _CHUNK_BYTES))
            if sent == 0:
                break
            left -= sent
    with contextlib.suppress(OSError):
        copy.chmod(0o600)
    return size_bytes - left
