"""The files a learner hands in: immutable, read once, addressed by the hash of their content.

Reading from disk and refusing bad files is `catalog`'s; nothing here opens a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

ENTRY_POINT = "train.py"
_MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One text file of a submission; `path` is relative, POSIX form, without `..`."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Submission:
    """One or several files with `train.py` at the top.

    Attributes:
        name: what to call it in reports (file or folder name without suffix).
        files: sorted by path.
        left_out: paths of other files of the folder: they are not taken.
    """

    name: str
    files: tuple[SourceFile, ...]
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def left_out_note(self) -> str:
        """What to tell whoever handed in a folder with files that are not taken; "" where all were."""
        if not self.left_out:
            return ""
        named, rest = self.left_out[:_MAX_NAMED], len(self.left_out) - _MAX_NAMED
        more = f" and {rest:,} more" if rest > 0 else ""
        return f"Only Python files are taken of a folder; not there when it runs: {', '.join(named)}{more}."

    @property
    def digest(self) -> str:
        """SHA-256 over paths and contents, hex; the submission's identity."""
        # A linter never asks, and OpenSSL takes as long to load as ten rules.
        import hashlib

        sha = hashlib.sha256()
        for file in self.files:
            path, text = file.path.encode(), file.text.encode()
            sha.update(b"%d %d\n" % (len(path), len(text)) + path + text)
        return sha.hexdigest()

    def text(self, path: str) -> str | None:
        """Text of one file, or None where there is no such file."""
        return next((f.text for f in self.files if f.path == path), None)

    def lines(self, path: str) -> tuple[str, ...]:
        """All lines of one file, counted as Python counts them; empty where there is no such file."""
        return _lines(self.text(path) or "")

    def line(self, path: str, line: int) -> str:
        """One source line without its newline; "" outside the file."""
        lines = self.lines(path)
        return lines[line - 1] if 1 <= line <= len(lines) else ""


# Every finding asks for lines again, and there may be thousands of both.
@lru_cache(maxsize=16)
def _lines(text: str) -> tuple[str, ...]:
    # str.splitlines() also ends lines at form feeds and Unicode separators, which Python's parser does not.
    lines = re.split(r"\r\n|\r|\n", text)
    return tuple(lines[:-1] if lines[-1] == "" else lines)
