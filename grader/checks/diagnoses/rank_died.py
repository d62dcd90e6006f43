"""A rank ended without an exception.

## What happened
The process of a rank was killed by a signal, or left with `os._exit` or `sys.exit` and an exit code that is not 0.

## Why
Its partners cannot finish the collective they are in. A kill usually means memory; a segmentation fault a crash in a C
library. Where all ranks had done their work, what the script hands to `sys.exit` is no error code but a number of
another kind: a rank, a count.

## Mend it
Find out what ended this one rank; the others only followed. A script that did its work ends with exit code 0.
"""

from __future__ import annotations

import ast

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.syntax.nodes import name_of
from grader.model.diagnosis import Diagnosis

ORDER = 80
_EXITS = ("SystemExit", "exit", "_exit")
_SIGNALS = {
    "SIGKILL": ("was killed (SIGKILL)", "mostly means that it, or one of its workers, used too much memory"),
    "SIGSEGV": (
        "crashed inside a library (SIGSEGV)",
        "comes from C or CUDA code: a wrong index, a broken extension",
    ),
    "SIGBUS": ("was ended by SIGBUS", "mostly means that shared memory in `/dev/shm` ran out"),
    "SIGABRT": (
        "was aborted (SIGABRT)",
        "comes from a library that gave up, and says why in its error output",
    ),
    "SIGFPE": ("was ended by SIGFPE", "comes from an integer division by zero in C code"),
    "SIGTERM": ("was ended by SIGTERM", "comes from somebody who asked it to stop"),
}


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of signals and of exits that no exception explains."""
    cause = run.cause
    if cause is None or (cause.type not in ("", "SystemExit") and (not cause.signal or cause.frames)):
        return None
    some = len(run.alike) < run.evidence.world_size
    needs = "; the others cannot finish a collective without it" if some else ""
    if cause.signal:
        what, why = _SIGNALS.get(
            cause.signal, (f"was ended by {cause.signal}", "comes from outside the script")
        )
        said = f" (“{run.words}”)" if run.words else ""
        return run.crash(
            title="A rank was killed" if some else "All ranks were killed",
            what=f"{what}{said}",
            why=f"This signal {why}{needs}",
            hint="Look at what this rank printed last; run it with less memory, fewer workers, or one process.",
        )
    if run.evidence.finished:
        return run.crash(
            title="The script ended with an error code",
            what=f"had done its work and left with exit code {cause.exit_code},",
            why="Any exit code other than 0 says that the run failed, whatever had been done before",
            hint=_ending_well(run),
        )
    way = "called `sys.exit`" if cause.type == "SystemExit" else "left without an exception"
    said = f" (“{run.words}”)" if cause.type == "SystemExit" and not run.words.isdigit() and run.words else ""
    return run.crash(
        title="A rank left with an error" if some else "The script left with an error",
        what=f"{way}{said}, with exit code {cause.exit_code},",
        why=(
            "A rank that leaves takes its part of every later collective with it, so the others cannot go on"
            if some
            else "An exit code other than 0 says that the run failed, whatever had been done before"
        ),
        hint=(
            "Let no rank leave alone: take the decision on all ranks, and end with `dist.destroy_process_group()` and "
            "exit code 0."
        ),
    )


def _ending_well(run: FailedRun) -> str:
    """Advice to keep a number that tells of no error from becoming the exit code."""
    script = run.evidence.script
    for place in run.cause.where if run.cause is not None else ():
        for call in script.all_calls():
            where = script.location(call)
            if name_of(call) in _EXITS and (where.path, where.line) == (place.path, place.line) and call.args:
                given = call.args[0]
                once = isinstance(given, ast.Call) and f"call {script.quote(given)} by itself, or "
                return (
                    f"{script.quote(given)} at {script.at(call)} becomes the exit code: {once or ''}leave with 0, "
                    "as `sys.exit(0)` does."
                )
    return "Leave with exit code 0 on all ranks."
