"""Where in the submission something happened: the innermost frame of its own files.

Never imports or reads the submission; file names come from code objects.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import TypeAlias

CodeLocation: TypeAlias = tuple[str, int, str]
"""Path relative to the submission's folder, line, function."""

_MAX_DEPTH = 400
_STDLIB = os.path.dirname(os.__file__) + os.sep

_root = ""
_known: dict[str, str | None] = {}


def set_root(folder: str) -> None:
    """Say where the submission lies."""
    global _root
    _root = os.path.realpath(folder)
    _known.clear()


def relative(filename: str) -> str | None:
    """Path of a source file relative to the submission's folder, or None for anybody else's file."""
    try:
        return _known[filename]
    except KeyError:
        pass
    path = None
    if _root and not filename.startswith("<"):
        full = os.path.realpath(os.path.join(_root, filename))
        if full.startswith(_root + os.sep) and f"{os.sep}site-packages{os.sep}" not in full[len(_root) :]:
            path = full[len(_root) + 1 :].replace(os.sep, "/")
    if len(_known) < 20_000:
        _known[filename] = path
    return path


def here(frame: FrameType | None = None) -> CodeLocation | None:
    """The innermost frame of the submission at or above `frame` (default: the caller's)."""
    if frame is None:
        frame = sys._getframe(1)
    for _ in range(_MAX_DEPTH):
        if frame is None:
            return None
        code = frame.f_code
        try:
            path = _known[code.co_filename]
        except KeyError:
            path = relative(code.co_filename)
        if path is not None:
            return path, frame.f_lineno, code.co_name
        frame = frame.f_back
    return None


def starter(frame: FrameType | None) -> str:
    """Top-level package that does something, "" where the submission does so itself, the standard library between."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if relative(filename) is not None:
            return ""
        if not filename.startswith(("<", _STDLIB)) or "site-packages" in filename:
            return str(frame.f_globals.get("__name__", "")).partition(".")[0]
        frame = frame.f_back
    return ""


def of_traceback(traceback: TracebackType | None) -> list[CodeLocation]:
    """All frames of the submission in a traceback, innermost first, at most 32."""
    found: list[CodeLocation] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        path = relative(code.co_filename)
        if path is not None:
            found.append((path, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return found[::-1][:32]
