"""How a script names what a library holds: by the imports that it has at a place, and where further ones belong."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.libraries.names import canonical
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, Definition, start
from grader.checks.source.syntax.tree import Tree

_MOST_PARTS = 2
"""More parts after a dot than in `torch.distributed.get_rank` are imported rather than spelt out."""


def is_bound(tree: Tree, name: str) -> bool:
    """Whether a file gives a name any meaning, so that an import could change it."""
    return any(name in scope for scope in tree.definitions.values())


def spelled(script: Script, dotted: str, at: ast.AST) -> str:
    """The shortest way in which the imports that hold at a node name something of a library; "" where none does."""
    tree = script.names.tree(at)
    found: list[str] = []
    names = {name: None for scope in tree.definitions.values() for name in scope if "." not in name}
    for name in names:
        meant = script.names.lookup(name, at)
        if not meant or any(not _holds(tree, d, at) for d in meant):
            continue
        full = canonical(meant[0].dotted)
        if len({canonical(d.dotted) for d in meant}) == 1 and f"{dotted}.".startswith(f"{full}."):
            rest = dotted[len(full) :]
            if rest.count(".") <= _MOST_PARTS:
                found.append(name + rest)
    return min(found, key=lambda text: (text.count("."), len(text)), default="")


def _holds(tree: Tree, definition: Definition, at: ast.AST) -> bool:
    """Whether an import surely has run where a node runs."""
    if definition.kind != "import":
        return False
    above = tree.parent.get(definition.node)
    plain = isinstance(above, (ast.Module, ast.Try, *FUNCTIONS))
    same = tree.function(definition.node) is tree.function(at)
    return plain and (not same or definition.since <= start(at))


def header(body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """A file's docstring and first imports."""
    found: list[ast.stmt] = []
    for statement in body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not isinstance(statement, ast.Import | ast.ImportFrom) and not (text and not found):
            break
        found.append(statement)
    return found
