"""A name was used that does not exist.

## What happened
A line read a name that nothing had set: a typo, a missing import, or an assignment that only some ranks run.

## Why
Python notices only when the line runs, so a misspelt name, a missing import, or a value that is set on rank 0
only ends the run there.

## Mend it
Import or define it above this line, on every rank: what is set under `if rank == 0:` does not exist on the
others.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from grader.checks.needed_lines import import_of
from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 20
_WORDS = re.compile(
    r"is not defined"
    r"|where it is not associated with a value"
    r"|referenced before assignment"
)
_LOCAL = re.compile(r"local variable '(\w+)' (?:where it is not|referenced)")
_NAME = re.compile(r"name '(\w+)' is not defined")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS, "NameError", "UnboundLocalError") is None:
        return None
    if shadowed := _shadowed(run):
        return shadowed
    missing = _NAME.search(run.words)
    line = import_of(missing[1]) if missing else ""
    return run.crash(
        title="A name was used that does not exist",
        what=f"used a name that was never given a value (“{run.words}”)",
        why=(
            "Python notices only when the line runs, so a misspelt name, a missing import, or a"
            " value that is set on rank 0 only ends the run there"
        ),
        hint=f"Import it at the top of the file: `{line}`."
        if line
        else (
            "Import or define it above this line, on every rank: what is set under `if rank == "
            "0:` does not exist on the others."
        ),
    )


def _shadowed(run: FailedRun) -> Diagnosis | None:
    """A function's own variable that has the name of something of the module, and no value yet."""
    told, site = _LOCAL.search(run.words), run.cause.site if run.cause is not None else None
    tree = next((t for t in run.evidence.script.trees if site is not None and t.path == site.path), None)
    if told is None or site is None or tree is None:
        return None
    around = [f for f in tree.functions if f.lineno <= site.line <= (f.end_lineno or 0)]
    name = told[1]
    if not around or name not in tree.definitions.get(tree.root, {}):
        return None
    inside = (n for n in ast.walk(max(around, key=lambda f: f.lineno)) if isinstance(n, ast.Name))
    set_here = [n for n in inside if n.id == name and isinstance(n.ctx, ast.Store)]
    if not set_here:
        return None
    line = run.evidence.script.at(set_here[0])
    found = run.crash(
        title="A variable hides a name of the module",
        what=f"used `{name}` before it had a value,",
        why=f"{line} sets a variable `{name}`, and within this function the name never means what it does outside",
        hint=f"Give the variable at {line} another name, there and where it is used.",
    )
    return replace(
        found, where=tuple(dict.fromkeys((run.evidence.script.location(set_here[0]), *found.where)))
    )
