"""A zip file that is packed while it is sent: of all that is in it, only the file just packed lies in memory.

Whoever goes away ends it: nothing more is read or packed. One that broke off has no directory, so that every program
says it is no whole zip file.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

_PART_BYTES = 64 << 10
# What the format can say of a time begins and ends here.
_FIRST, _LAST = datetime(1980, 1, 1, tzinfo=UTC), datetime(2107, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One file of an archive: where it lies there, its bytes, and from when it is (UTC; None: it says nothing)."""

    path: str
    data: bytes
    at: datetime | None = None


class _Sent(io.RawIOBase):
    """What is packed and waits to be sent; it cannot be gone back in."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        part = bytes(data)
        self._parts.append(part)
        self.size += len(part)
        return len(part)

    def taken(self) -> bytes:
        """All of it, once."""
        whole = b"".join(self._parts)
        self._parts.clear()
        self.size = 0
        return whole


def streamed_zip(files: Iterable[ArchivedFile]) -> Iterator[bytes]:
    """The archive in parts, each packed when it is asked for."""
    sent = _Sent()
    with zipfile.ZipFile(sent, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, _date(file.at))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.data)
            if sent.size >= _PART_BYTES:
                yield sent.taken()
    yield sent.taken()


def _date(at: datetime | None) -> tuple[int, int, int, int, int, int]:
    at = min(max(at.astimezone(UTC), _FIRST), _LAST) if at is not None else _FIRST
    return at.year, at.month, at.day, at.hour, at.minute, at.second
