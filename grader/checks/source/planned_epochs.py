"""How many epochs the text plans, and what may end them before that."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.causes import epoch_counts
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import LOOPS


@dataclass(frozen=True, slots=True)
class CutShort:
    """Training that ended before the epochs that were planned: how many these were, and the exits of their loop."""

    planned: int
    exits: tuple[ast.AST, ...]
    advice: str


def planned_epochs(script: Script) -> int | None:
    """The one number of epochs that is written; None for none or several."""
    values = {
        n.value for n in epoch_counts(script) if isinstance(n, ast.Constant) and isinstance(n.value, int)
    }
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


def _exits(script: Script, loop: ast.AST) -> list[ast.AST]:
    """Exits of a loop over epochs, one that has training in the rounds of another loop."""
    tree = script.names.tree(loop)
    around = any(inner is not loop and tree.inside(inner, loop) for inner in tree.loops)
    if not isinstance(loop, ast.For) or not script.updates.entries(loop, script.training.backwards):
        return []
    calls = isinstance(loop.iter, ast.Call) and script.names.qualified(loop.iter.func) == "range"
    if not calls or not (around or script.updates.steps):
        return []
    return [
        leave
        for leave in tree.exits
        if isinstance(leave, ast.Break)
        and next((a for a in _above(script, leave) if isinstance(a, LOOPS)), None) is loop
    ]


def _above(script: Script, node: ast.AST) -> list[ast.AST]:
    tree, found = script.names.tree(node), []
    above = tree.parent.get(node)
    while above is not None:
        found.append(above)
        above = tree.parent.get(above)
    return found
