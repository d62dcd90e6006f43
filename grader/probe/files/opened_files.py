"""Files that the script writes and processes that it starts, from Python's own audit events.

An audit hook can't be taken away again, also not by the script. It must stay cheap: Python calls it very often.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from types import FrameType
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import guarded
from grader.probe.processes import process_access
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_FILES = 256
_MAX_PROCESSES = 64
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ELSEWHERE = ("/dev/", "/proc/", "/sys/", "/run/")

_output = ""
_quiet: tuple[str, ...] = ()
_num_files = 0
_num_processes = 0


def shown(path: str) -> tuple[str, bool]:
    """How a path is written in events, and whether it lies below the output folder."""
    full = os.path.realpath(path)
    if _output and (full == _output or full.startswith(_output + os.sep)):
        return full[len(_output) + 1 :] or ".", True
    return full, False


def _note_file(op: str, path: Any, frame: FrameType | None) -> None:
    global _num_files
    if _num_files >= _MAX_FILES or not isinstance(path, (str, bytes, os.PathLike)):
        return
    name = os.fsdecode(path)
    if name.startswith(_ELSEWHERE) or name.endswith(".pyc") or "__pycache__" in name:
        return
    shown_path, out = shown(name)
    if not out and shown_path.startswith(_quiet):
        return
    _num_files += 1
    writer.write(events.FILE, op=op, path=shown_path, out=out, site=code_locations.here(frame))


@guarded("open")
def _opened(args: tuple[Any, ...], frame: FrameType | None) -> None:
    path, mode, flags = args[0], args[1], args[2]
    process_access.note_path(path, frame)
    writing = any(c in mode for c in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    if writing and not isinstance(path, int):
        _note_file("open", path, frame)


@guarded("rename")
def _renamed(args: tuple[Any, ...], frame: FrameType | None) -> None:
    _note_file("rename", args[1], frame)


@guarded("mkdir")
def _made(args: tuple[Any, ...], frame: FrameType | None) -> None:
    _note_file("mkdir", args[0], frame)


@guarded("remove")
def _removed(args: tuple[Any, ...], frame: FrameType | None) -> None:
    _note_file("remove", args[0], frame)


def note_process(op: str, target: str, frame: FrameType | None) -> None:
    """Write that a process is being started."""
    global _num_processes
    _num_processes += 1
    if _num_processes <= _MAX_PROCESSES:
        site = code_locations.here(frame)
        writer.write(events.PROCESS, op=op, target=target[:200], site=site, by=code_locations.starter(frame))


@guarded("subprocess")
def _ran(args: tuple[Any, ...], frame: FrameType | None) -> None:
    command = args[1] if len(args) > 1 else args[0]
    if isinstance(command, (list, tuple)):
        command = " ".join(os.fsdecode(part) for part in command[:6])
    note_process("subprocess", os.fsdecode(command), frame)


@guarded("fork")
def _forked(_args: tuple[Any, ...], frame: FrameType | None) -> None:
    above = frame
    for _ in range(8):
        if above is None:
            break
        if above.f_globals.get("__name__") == "multiprocessing.process":
            return  # told by its own hook, with its target
        above = above.f_back
    note_process("fork", "", frame)


_HOOKS: dict[str, Callable[[tuple[Any, ...], FrameType | None], None]] = {
    "open": _opened,
    "os.rename": _renamed,
    "os.mkdir": _made,
    "os.remove": _removed,
    "os.rmdir": _removed,
    "subprocess.Popen": _ran,
    "os.posix_spawn": _ran,
    "os.system": _ran,
    "os.fork": _forked,
    "os.forkpty": _forked,
    **process_access.HOOKS,
}


def install(output_dir: str) -> None:
    """Listen to Python's audit events from now on."""
    global _output, _quiet
    _output = os.path.realpath(output_dir)
    caches = [tempfile.gettempdir(), os.path.expanduser("~/.cache"), "/tmp", "/var/tmp"]
    caches += [
        os.environ.get(name, "") for name in ("MPLCONFIGDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    ]
    _quiet = tuple({os.path.realpath(path) + os.sep for path in caches if path and path != "/"})
    hooks = _HOOKS
    frame_of = sys._getframe

    def listen(event: str, args: tuple[Any, ...]) -> None:
        hook = hooks.get(event)
        if hook is not None:
            hook(args, frame_of().f_back)  # None in threads that run no Python function of anybody's

    sys.addaudithook(listen)
