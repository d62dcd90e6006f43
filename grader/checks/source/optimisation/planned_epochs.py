"""How many epochs the text plans, and what may end them before that."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.causes import epoch_counts
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop, loop_above


@dataclass(frozen=True, slots=True)
class CutShort:
    """Training that ended before the epochs that were planned: how many these were, and the exits of their loop."""

    planned: int
    exits: tuple[ast.AST, ...]
    advice: str


def planned_epochs(script: Script) -> int | None:
    """The one number of epochs that is written; None for none or several."""
    written = [n.value for n in epoch_counts(script) if isinstance(n, ast.Constant)]
    values = {value for value in written if isinstance(value, int) and value > 0}
    return values.pop() if len(values) == 1 else None


def cut_short(script: Script, epochs: int) -> CutShort | None:
    """What may have ended training after fewer epochs than planned; None where all were run or nothing can have."""
    planned = planned_epochs(script)
    if planned is None or not 0 < epochs < planned:
        return None
    exits = tuple(n for tree in script.trees for loop in tree.loops for n in _exits(script, loop))
    if not exits:
        return None
    return CutShort(
        planned,
        exits,
        f"Training ended {planned - epochs} epochs before the {planned} that are planned: look at what leaves the loop "
        f"at {script.at(exits[0])}. Let it wait longer before it does, or leave it out.",
    )


def _exits(script: Script, loop: Loop) -> list[ast.AST]:
    """Exits of a loop over epochs: one over a `range` with training in its rounds."""
    counts = isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    if not counts or not script.updates.entries(loop, script.training.backwards):
        return []
    tree = script.names.tree(loop)
    return [n for n in tree.exits if isinstance(n, ast.Break) and loop_above(tree.parent, n) is loop]
