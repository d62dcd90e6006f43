"""What a script calls its rank and its number of ranks at a place: `self.rank`, `torus.np`, `n`."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.source.syntax.nodes import FUNCTIONS

if TYPE_CHECKING:
    from grader.checks.source.script import Script
    from grader.checks.source.syntax.tree import Tree

_SIZE = "torch.distributed.get_world_size"
_KINDS = {"rank": "global", "local_rank": "local"}


def own_value(script: Script, path: str, line: int, name: str) -> str:
    """What the code at a line can read `rank`, `local_rank` or `world_size` from; "" where nothing is known to hold it.

    That is what the function around the line reads, or else a name of the whole file.
    """
    if name not in (*_KINDS, "world_size"):
        return ""
    tree = next((t for t in script.trees if t.path == path), None)
    return (
        next((ast.unparse(n) for n in _readable(tree, line) if _holds(script, n, name)), "") if tree else ""
    )


def _readable(tree: Tree, line: int) -> Iterable[ast.expr]:
    reads = [
        n
        for n in ast.walk(tree.root)
        if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load)
    ]
    functions = [n for n in ast.walk(tree.root) if isinstance(n, FUNCTIONS)]
    around = [f for f in functions if f.lineno <= line <= (f.end_lineno or 0)]
    if around:
        function = max(around, key=lambda f: f.lineno)
        yield from (n for n in reads if tree.function(n) is function)
    at_top = tree.definitions.get(tree.root, {})
    yield from (n for n in reads if isinstance(n, ast.Name) and n.id in at_top and not tree.function(n))


def _holds(script: Script, node: ast.expr, name: str) -> bool:
    if name in _KINDS:
        return script.ranks.kind(node) == _KINDS[name]
    origins = script.values.origins(node)
    return bool(origins) and all(_is_size(script, origin) for origin in origins)


def _is_size(script: Script, origin: ast.AST) -> bool:
    """The number of all ranks itself, and nothing that was computed with it."""
    if isinstance(origin, ast.Call) and script.names.qualified(origin.func) == "int" and origin.args:
        return script.ranks.environment(origin.args[0]) == "WORLD_SIZE"
    if isinstance(origin, ast.Call):
        return script.names.qualified(origin.func) == _SIZE and not (origin.args or origin.keywords)
    return False
