"""Where a script's own code reaches for what a training script has no use for: other processes, all live objects.

Told for staff alone; it forbids nothing, and what libraries do by themselves is not the script's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from types import FrameType
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import guarded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_REACHES = 16
_INNER = re.compile(r"/proc/(?:self|thread-self|\d+)/(?:fd|fdinfo|mem|maps|environ|task|cmdline|root|cwd)\b")

_OURS = ("grader.probe", "grader.launch")
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep

_num_reaches = 0


def _note(what: str, target: str, frame: FrameType | None) -> None:
    global _num_reaches
    if _num_reaches < _MAX_REACHES and code_locations.starter(frame) == "":
        _num_reaches += 1
        writer.write(events.REACH, what=what, target=target[:200], site=code_locations.here(frame))


def note_path(path: Any, frame: FrameType | None) -> None:
    """Tell when a path leads into a process: its descriptors, memory, environment."""
    if isinstance(path, str) and path.startswith("/proc/") and _INNER.match(path):
        _note("process", path, frame)


@guarded("reach")
def _listed(args: tuple[Any, ...], frame: FrameType | None) -> None:
    note_path(args[0], frame)


@guarded("reach")
def _killed(args: tuple[Any, ...], frame: FrameType | None) -> None:
    # A script may end its own children; its parent is the judge's.
    if args[0] in (os.getppid(), 1, -1):
        _note("kill", str(args[0]), frame)


@guarded("reach")
def _imported(args: tuple[Any, ...], frame: FrameType | None) -> None:
    if str(args[0]).startswith(_OURS):
        _note("import", str(args[0]), frame)


@guarded("reach")
def _compiled(args: tuple[Any, ...], frame: FrameType | None) -> None:
    # Code that claims to come from one of our files.
    if os.path.abspath(os.fsdecode(args[1] or "")).startswith(_ROOT):
        _note("compile", os.path.basename(os.fsdecode(args[1])), frame)


def _named(what: str) -> Callable[[tuple[Any, ...], FrameType | None], None]:
    @guarded("reach")
    def hook(_args: tuple[Any, ...], frame: FrameType | None) -> None:
        _note(what, "", frame)

    return hook


HOOKS: dict[str, Callable[[tuple[Any, ...], FrameType | None], None]] = {
    "import": _imported,
    "compile": _compiled,
    "os.listdir": _listed,
    "os.scandir": _listed,
    "os.kill": _killed,
    "gc.get_objects": _named("gc.get_objects"),
    "gc.get_referrers": _named("gc.get_referrers"),
    "gc.get_referents": _named("gc.get_referents"),
    "sys._current_frames": _named("sys._current_frames"),
    "sys.addaudithook": _named("sys.addaudithook"),
    "sys.settrace": _named("sys.settrace"),
    "sys.setprofile": _named("sys.setprofile"),
}
