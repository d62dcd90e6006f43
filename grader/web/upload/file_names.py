"""Names of uploaded files: what they must look like before anything is kept under them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from grader.report.safe_text import one_line
from grader.translation import gettext
from grader.web.upload.refusals import UploadRefusedError

MAX_DEPTH = 8
_MOST_BYTES = 200
_DRIVE = re.compile(r"[A-Za-z]:")
_PASSED_OVER = ("__MACOSX", "__pycache__")


def checked_path(name: str) -> str:
    """The name as a relative POSIX path.

    Raises:
        UploadRefusedError: it points out of its folder, or holds what no file's name should.
    """
    shown = one_line(name[:120])
    if not name or not name.isprintable():
        raise UploadRefusedError(
            gettext("A file is called {name}; names hold only what can be seen. Rename it.").format(
                name=repr(shown)
            )
        )
    if "\\" in name or name.startswith("/") or _DRIVE.match(name):
        raise UploadRefusedError(
            gettext(
                "{name} is an absolute path or one with backslashes. Pack the folder with paths relative to it."
            ).format(name=shown)
        )
    parts = name.split("/")
    if ".." in parts:
        raise UploadRefusedError(
            gettext("{name} points out of its folder. Pack the folder that holds train.py.").format(
                name=shown
            )
        )
    if len(name.encode()) > _MOST_BYTES or len(parts) > MAX_DEPTH:
        raise UploadRefusedError(
            gettext("{name} is too long a path. Hand in train.py and the modules beside it.").format(
                name=shown
            )
        )
    return str(PurePosixPath(name))


def is_ignored(path: str) -> bool:
    """Whether nobody means to hand this in: hidden files, and what systems and Python leave in folders."""
    return any(part.startswith(".") or part in _PASSED_OVER for part in path.split("/"))


def submission_name(name: str) -> str:
    """What to call a submission: what it was called by, as far as that can be shown on one line."""
    kept = "".join(letter for letter in name if letter.isprintable()).strip()[:80].strip()
    return kept or "submission"
