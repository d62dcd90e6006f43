"""The process that makes a task's own data: runs its script once, offline, and tells which files it read.

The script is trusted; it is kept from the network so that a version depends on nothing but its recipe. Started by
`own_datasets` alone, with a message on its input; the answer is a file, so that the script may print.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

_CLONE_NEWNET, _CLONE_NEWUSER = 0x40000000, 0x10000000
_ASKS_NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")


def main() -> None:
    """Make the data that the message on standard input asks for."""
    message = json.loads(sys.stdin.buffer.read())
    Path(sys.argv[1]).write_text(json.dumps(_prepare(message)), encoding="utf-8")


def _prepare(message: dict[str, Any]) -> dict[str, Any]:
    folder = Path(message["folder"])
    script = folder / message["script"]
    read: set[str] = {message["script"]}
    _leave_network()
    sys.addaudithook(lambda event, args: _watch(event, args, folder, read))
    sys.path.insert(0, str(script.parent))
    # Compiled modules are not looked for, so that their sources are read.
    sys.pycache_prefix = f"{message['out']}/.none"
    try:
        spec = importlib.util.spec_from_file_location("task_prepare", script)
        if spec is None or spec.loader is None:
            return {"error": f"{script} cannot be imported."}
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        source = Path(message["source"]) if message["source"] is not None else None
        counts = module.prepare(Path(message["out"]), source, message["seed"])
    except BaseException as error:  # noqa: BLE001  a task's script may do anything, sys.exit included
        return {"error": _problem(error, folder)}
    plain = isinstance(counts, dict) and all(isinstance(n, int) for n in counts.values())
    return {"counts": counts if plain else None, "inputs": sorted(read)}


def _watch(event: str, args: tuple[Any, ...], folder: Path, read: set[str]) -> None:
    if event == "open" and isinstance(args[0], str) and args[0].startswith(f"{folder}/"):
        path = Path(args[0])
        if path.is_file() and "__pycache__" not in path.parts:
            read.add(path.relative_to(folder).as_posix())
    elif event in _ASKS_NETWORK and not (event == "socket.connect" and isinstance(args[1], str | bytes)):
        raise OSError(
            'there is no network here; name the file in [data.files."…"] of task.toml, with its url'
        )


def _leave_network() -> None:
    """A network of this process's own with nobody in it, where the kernel allows it; elsewhere hooks alone hold."""
    user, group = os.getuid(), os.getgid()
    flags = _CLONE_NEWNET | (_CLONE_NEWUSER if user else 0)
    if ctypes.CDLL(None).unshare(flags) == 0 and user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _problem(error: BaseException, folder: Path) -> str:
    """The line of the task that failed, and what it said."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(f"{folder}/")]
    # A script that does not parse has no frame of its own.
    if isinstance(error, SyntaxError) and error.filename and not own:
        place = f"{Path(error.filename).name}:{error.lineno}"
    else:
        frame = (own or frames)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
    return f"{place}: {type(error).__name__}: {error}"
