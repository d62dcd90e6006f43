"""Several ranks remove the same file.

## What happened
`os.remove`, `Path.unlink`, `shutil.rmtree` or a rename did not find its file any more.

## Why
All ranks come to the same line, and the first of them has removed, or moved, the file for all: they share the folder.

## Mend it
Let rank 0 alone remove it, and the others wait at `dist.barrier()` where they need the folder as it is then.
"""

from __future__ import annotations

import ast

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import stands_at
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.diagnosis import Diagnosis

ORDER = 39
_LIBRARY = ("os.", "shutil.")
_REMOVING = ("remove", "unlink", "rmdir", "removedirs", "rmtree")
_MOVING = ("rename", "replace", "renames", "move")
_PATHS = ("unlink", "rmdir", "rename")
"""Methods that paths have and hardly anything else."""


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where some ranks failed at a line that all of them come to, and that takes a file away."""
    cause = run.cause
    if cause is None or cause.type != "FileNotFoundError" or len(run.alike) == run.evidence.world_size:
        return None
    script = run.evidence.script
    call = next((c for c in _taking(script) if stands_at(script, c, cause.site)), None)
    if call is None or script.guards.partial(call) is not None:
        return None
    moves = name_of(call) in _MOVING
    done = "moved" if moves else "removed"
    forgiving = (
        ""
        if moves
        else " Where it does not matter who does it, `Path(path).unlink(missing_ok=True)` asks for no file."
    )
    return run.crash(
        title=f"Another rank had {done} the file already",
        what=f"did not find what {script.quote(call)} is to take away (“{run.words}”)",
        why=f"Every rank comes to that line with the same files, and the first one there has {done} them for all",
        hint=f"Let rank 0 alone do it: put {script.quote(call)} under `if dist.get_rank() == 0:`, and call "
        f"`dist.barrier()` on all ranks behind that.{forgiving}",
    )


def _taking(script: Script) -> list[ast.Call]:
    """Calls that remove or move files."""
    return [
        call
        for call in script.called(*_REMOVING, *_MOVING)
        if (script.names.qualified(call.func) or "").startswith(_LIBRARY)
        or (isinstance(call.func, ast.Attribute) and call.func.attr in _PATHS)
    ]
