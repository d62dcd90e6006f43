"""Changes of a model that DDP has wrapped, written for the bare network before the wrap."""

from __future__ import annotations

import ast

from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import names_in, walk

_MOVES = ("to", "cuda", "cpu")


def before_wrap(script: Script, change: ast.AST, wrap: ast.Call) -> str:
    """Advice: a change's statement in the names that stand where the model is wrapped; "" where they are not known."""
    statement = script.names.tree(change).statement(change)
    inner = _bare(script.argument(wrap, "module"))
    if inner is None or statement.end_lineno != statement.lineno:
        return ""
    edits = Edits(script)
    name, written = edits.text(inner), edits.text(statement)
    held = [
        n
        for n in walk(statement)
        if isinstance(n, ast.Attribute) and n.attr == "module" and script.replicas.wrap_of(n) is wrap
    ]
    same = script.names.tree(wrap).scope(wrap) is script.names.tree(change).scope(change)
    named = same and name in names_in(statement)
    if not held and not named:
        return ""
    for node in held:
        written = written.replace(edits.text(node), name)
    return (
        f"Change the network before it is wrapped: `{written}` above {script.at(wrap)}, and drop "
        f"{script.at(statement)}."
    )


def _bare(module: object) -> ast.Name | ast.Attribute | None:
    """The network that a wrapper is given: `net` of `net.to(device)`."""
    if isinstance(module, ast.Call) and isinstance(module.func, ast.Attribute) and module.func.attr in _MOVES:
        module = module.func.value
    return module if isinstance(module, ast.Name | ast.Attribute) else None
