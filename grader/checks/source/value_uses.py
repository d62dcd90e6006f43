"""Where a value has an effect: it is said, recorded, steers a schedule, or decides what happens next."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of
from grader.checks.source.syntax_tree import Tree

_SAYING = {
    "print", "info", "log", "warning", "debug", "add_scalar", "add_scalars", "log_metrics", "log_metric", "write",
    "append", "set_postfix", "set_description", "update", "format",
}  # fmt: skip


def use_of(script: Script, node: ast.expr) -> ast.AST | None:
    """Where a value has an effect: it is said, recorded, returned from the script's sight, or decides what happens."""
    tree = script.names.tree(node)
    child: ast.AST = node
    above = tree.parent.get(node)
    while above is not None and not isinstance(child, ast.stmt):
        if isinstance(above, ast.Call) and child is not above.func and name_of(above) in _SAYING:
            return above
        if isinstance(above, ast.Call) and child is not above.func and name_of(above) == "step":
            return above
        if isinstance(above, ast.If | ast.While) and child is above.test:
            return above if _decides(script, tree, above) else None
        child, above = above, tree.parent.get(above)
    return None


def _decides(script: Script, tree: Tree, branch: ast.If | ast.While) -> bool:
    if script.conditions.of(branch.test).partial:
        return False
    if any(tree.inside(e, branch) for e in tree.exits):
        return True
    return any(bool(script.collectives.inside(s)) for s in branch.body)
