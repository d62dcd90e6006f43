"""Checkpoints that are written by a thread which nobody waits for."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of
from grader.model.fix import Fix

_THREADS = {"threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process"}


@dataclass(frozen=True, slots=True)
class ThreadedSave:
    """The call that makes such a thread, what calls the same without one, and the edit for that."""

    start: ast.Call
    written: str
    fix: Fix | None


def saves_in_threads(script: Script) -> Iterable[ThreadedSave]:
    """Daemon threads whose function saves, in files that join no thread."""
    for call in script.calls(*_THREADS):
        tree = script.names.tree(call)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        target = given.get("target")
        function = script.graph.definition(target) if target is not None else None
        waits = any(
            name_of(c) == "join" and not c.args for c in tree.called_like(lambda name: name == "join")
        )
        daemon = script.values.constant(given.get("daemon")) is True
        if target is None or not isinstance(function, FUNCTIONS) or waits or not daemon:
            continue
        if not any(
            name_of(c) in ("save", "save_file") for c in script.names.tree(function).calls_within(function)
        ):
            continue
        edits = Edits(script)
        passed = given.get("args")
        parts = passed.elts if isinstance(passed, ast.Tuple | ast.List) else []
        if (passed is not None and not parts) or "kwargs" in given:
            edits.give_up()
        written = f"{edits.text(target)}({', '.join(map(edits.text, parts))})"
        statement = tree.statement(call)
        started = isinstance(statement, ast.Expr) and name_of(statement.value) == "start"
        if started and isinstance(statement, ast.Expr):
            edits.replace(statement.value, written)
        yield ThreadedSave(call, written, edits.fix("Saves before the script goes on.") if started else None)
