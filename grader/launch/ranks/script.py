"""Run a script as `python -u script` would, in a process that was forked instead of started.

Module state, tracebacks, exit codes and the order of what happens at the end are Python's own; nothing of the
launcher shows in them. Never used in the supervisor itself.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import gc
import importlib.machinery
import io
import linecache
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn


def run_as_main(
    script: Path, argv: Sequence[str], finished: Callable[[BaseException | None], None]
) -> NoReturn:
    """Become `python -u <script> <argv>`; never returns.

    Args:
        script: absolute path; its folder becomes `sys.path[0]`, and the first argument its name.
        argv: arguments after the script.
        finished: called when the script's last line has run or raised, before Python's own end begins; in this
            process only, not in children that the script forked by hand.
    """
    sys.argv[:] = [script.name, *argv]
    sys.orig_argv[:] = [sys.executable, "-u", script.name, *argv]
    sys.path[0] = str(script.parent)
    module = _main_module()
    loader = importlib.machinery.SourceFileLoader("__main__", str(script))
    module.__dict__.update(__loader__=loader, __file__=str(script), __cached__=None)
    _run(script.read_bytes, str(script), script.parent, finished)


def run_as_command(
    text: str, argv: Sequence[str], folder: Path, finished: Callable[[BaseException | None], None]
) -> NoReturn:
    """Become `python -u -c <text> <argv>`, as which `multiprocessing` starts processes; never returns.

    Args:
        text: the program.
        argv: arguments after it.
        folder: that of the script, whose modules come before ours.
        finished: as in `run_as_main`.
    """
    sys.argv[:] = ["-c", *argv]
    sys.orig_argv[:] = [sys.executable, "-u", "-c", text, *argv]
    sys.path[0] = ""
    _main_module()
    _run(text.encode, "<string>", folder, finished)


def _run(
    read: Callable[[], bytes], name: str, folder: Path, finished: Callable[[BaseException | None], None]
) -> NoReturn:
    pid = os.getpid()
    _forget_shadowed(folder)
    module = sys.modules["__main__"]
    error: BaseException | None = None
    try:
        # Compiled here and not by an import, so that a syntax error reads as the interpreter writes it.
        code = compile(read(), name, "exec", dont_inherit=True)
        exec(code, module.__dict__)
    except BaseException as raised:  # noqa: BLE001
        error = raised.with_traceback(_without_ours(raised))
    exit_code = _report(error)
    if os.getpid() == pid:
        finished(error)
    del error
    _end(module, folder, exit_code)


def _main_module() -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(
        __name__="__main__",
        __doc__=None,
        __package__=None,
        __loader__=importlib.machinery.BuiltinImporter,
        __spec__=None,
        __annotations__={},
        __builtins__=builtins,
    )
    sys.modules["__main__"] = module
    return module


def _forget_shadowed(folder: Path) -> None:
    # A learner's queue.py or utils.py comes before a module of that name that happens to be warm.
    own = {path.stem for path in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
    for name in list(sys.modules):
        if name.partition(".")[0] in own and name != "__main__" and not name.startswith("grader."):
            del sys.modules[name]
    sys.path_importer_cache.pop(str(folder), None)
    linecache.clearcache()


def _report(error: BaseException | None) -> int:
    """Print an unhandled exception as the interpreter does and say which exit code it means."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None:
            return 0
        if isinstance(error.code, int):
            return error.code & 0xFF
        _to_stderr(f"{error.code}\n")
        return 1
    trace = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, trace)
    except BaseException as second:  # noqa: BLE001
        _to_stderr("Error in sys.excepthook:\n")
        second.__traceback__ = _without_ours(second)
        sys.__excepthook__(type(second), second, second.__traceback__)
        _to_stderr("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, trace)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _without_ours(error: BaseException) -> types.TracebackType | None:
    """The traceback from the script's own first frame on."""
    return error.__traceback__.tb_next if error.__traceback__ is not None else None


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 a closed or replaced stderr is the script's own choice
        pass


def _end(module: types.ModuleType, folder: Path, exit_code: int) -> NoReturn:
    """What the interpreter does after the last line: threads, exit handlers, buffers, the script's own objects."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException as error:  # noqa: BLE001
        sys.__excepthook__(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    if not _flush() and exit_code == 0:
        exit_code = 120
    _drop_modules(module, folder)
    _flush()
    if exit_code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    # No interpreter teardown: libraries' static destructors may hang there, and have nothing left to do.
    os._exit(exit_code & 0xFF)


def _drop_modules(main: types.ModuleType, folder: Path) -> None:
    # Files that the script left open are written when their objects go, as at the end of any Python program.
    if threading.active_count() == 1:
        # Daemon threads would trip over names that vanish; the interpreter freezes them first, we cannot.
        for module in [main, *_modules_of(folder)]:
            names = module.__dict__
            for name in sorted(names, key=lambda name: not name.startswith("_")):
                if name != "__builtins__":
                    names[name] = None
        gc.collect()
    for thing in gc.get_objects():
        # Not isinstance: proxies answer that by running code of their own.
        if type(thing) in (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom):
            with contextlib.suppress(Exception):
                thing.flush()


def _modules_of(folder: Path) -> list[types.ModuleType]:
    inside = f"{folder}{os.sep}"
    # Anything may stand in sys.modules, proxies that import on first touch too.
    everything: list[object] = list(sys.modules.values())
    modules = [m for m in everything if type(m) is types.ModuleType]
    return [m for m in modules if str(m.__dict__.get("__file__") or "").startswith(inside)]


def _flush() -> bool:
    done = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BaseException:  # noqa: BLE001 Python's own answer to this is exit code 120
            done = False
    return done
