"""The test that lets a line run in one round and not in another, where a run has shown that ranks decided otherwise."""

from __future__ import annotations

import ast
from typing import TypeGuard

from grader.checks.source.ranks.shared_stops import decided_together, done_together
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, ancestors, earlier_in_block, steps_up
from grader.checks.source.syntax.tree import Tree

_EXITS = (ast.Continue, ast.Break, ast.Return)


def deciding_test(script: Script, path: str, line: int) -> ast.If | None:
    """The innermost one around a line within its round, or the last one before it that may end the round."""
    tree = next((t for t in script.trees if t.path == path), None)
    statement = _statement(tree, line) if tree is not None else None
    if tree is None or statement is None:
        return None
    before: ast.If | None = None
    for child, above in steps_up(tree.parent, statement):
        if isinstance(above, ast.If) and child is not above.test:
            return above
        if before is None:
            before = next((s for s in reversed(earlier_in_block(tree.parent, child)) if _ends(s)), None)
        if isinstance(above, (*LOOPS, *FUNCTIONS)):
            break
    return before


def decided_alone(script: Script, test: ast.If) -> str:
    """What a test that one rank passed alone stands for, as a sentence."""
    return (
        f"Whether a step is taken, {script.at(test)} decides by {script.quote(test.test)}, of which each rank works "
        "out a value of its own."
    )


def told_to_all(script: Script, test: ast.If) -> str:
    """What to write so that all ranks decide alike."""
    written = decided_together(script, test.body[-1]) if _ends(test) else done_together(script, test)
    return (
        written
        or f"Decide at {script.at(test)} by numbers that all ranks share, such as those of averaged gradients."
    )


def _statement(tree: Tree, line: int) -> ast.stmt | None:
    """The innermost statement that begins on a line."""
    found = [n for n in tree.parent if isinstance(n, ast.stmt) and n.lineno == line]
    return max(found, key=lambda n: len([*ancestors(tree.parent, n)]), default=None)


def _ends(statement: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], _EXITS)
