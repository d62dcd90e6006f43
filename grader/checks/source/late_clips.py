"""Clips of gradients that were stepped with before, and that are cleared before anybody steps again."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of, start


def step_above(script: Script, clip: ast.Call) -> ast.Call | None:
    """The step that a clip comes too late for; None where the clip has an effect, or none was meant."""
    updates = script.updates
    if measures_alone(clip):
        return None
    tree = script.names.tree(clip)
    scope = tree.function(clip)
    rounds = updates.rounds(clip, updates.steps, updates.clears, script.training.backwards)
    if not rounds:
        return None

    def beside(nodes: tuple[ast.AST, ...]) -> list[ast.AST]:
        return [n for n in nodes if script.names.tree(n) is tree and tree.function(n) is scope]

    order = sorted((*beside(updates.steps), *beside(script.training.backwards), clip), key=start)
    before, later = order[: order.index(clip)], order[order.index(clip) + 1 :]
    step = before[-1] if before else None
    if not isinstance(step, ast.Call) or step not in updates.steps or not updates.together(step, clip):
        return None
    went_back = any(n in script.training.backwards for n in before)
    same = set(rounds) & set(updates.rounds(step, updates.steps))
    return step if went_back and not later and same else None


def measures_alone(clip: ast.Call) -> bool:
    """Whether a clip has no limit: it asks for the norm alone."""
    return any(_is_infinite(a) for a in (*clip.args[1:2], *(k.value for k in clip.keywords)))


def _is_infinite(limit: ast.expr) -> bool:
    """`math.inf`, `float("inf")`."""
    if isinstance(limit, ast.Call):
        return any(isinstance(a, ast.Constant) and str(a.value).lower().startswith("inf") for a in limit.args)
    return name_of(limit) == "inf"
