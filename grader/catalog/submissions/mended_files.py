"""A script's files written back where they were read, once something has mended them: whole, or not at all.

Line ends are the text's own; the mark that some editors put before a text, and the file's permissions, stay.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.catalog.submissions.scripts import NamedScript
from grader.errors import UsageError
from grader.files import write_whole
from grader.model.submission import Submission
from grader.notebooks.handed_in import is_notebook

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Write:
    path: Path
    content: bytes
    mode: int


def write_back(source: NamedScript, before: Submission, paths: Iterable[str]) -> None:
    """Write the files of a script that have changed; all of them are looked at before the first is touched.

    Args:
        source: the script as it is to be; it was read from files.
        before: what was read from them. paths: of the files that have changed.

    Raises:
        UsageError: a file may not be written, or has been changed by somebody else meanwhile.
    """
    writes = [_write(source, before, path) for path in paths]
    for write in writes:
        try:
            write_whole(write.path, write.content, mode=write.mode)
        except OSError as error:
            raise UsageError(f"{write.path} cannot be written: {error.strerror}. It is as it was.") from None


def _write(source: NamedScript, before: Submission, path: str) -> _Write:
    # A link stays one; the file that it names is written.
    file = Path(source.file_of(path)).resolve()
    if is_notebook(file.name):
        raise UsageError(
            f"{file} is a notebook; --fix writes scripts. --diff shows what to change in its cells."
        )
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} can no longer be read: {error.strerror}. Nothing was written.") from None
    # The owner of a folder could replace a file that is not to be written; who protects a file means it.
    if not mode & 0o222 or not os.access(file, os.W_OK):
        raise UsageError(
            f"{file} may not be written, so nothing of it was mended. Change its permissions, `chmod u+w {file}`, "
            "or see what would change with --diff."
        )
    if not os.access(file.parent, os.W_OK):
        raise UsageError(
            f"The folder {file.parent} may not be written, and a file in it is replaced as a whole. "
            "Nothing was mended; --diff shows what would change."
        )
    text = content.removeprefix(_MARK)
    if text.decode("utf-8", "replace") != before.text(path):
        raise UsageError(f"{file} has changed since it was read. Nothing was written; run the command again.")
    mark = _MARK if content.startswith(_MARK) else b""
    after = source.submission.text(path) or ""
    return _Write(file, mark + after.encode("utf-8"), mode)
