"""What binds a name, and where: the words that the walk over a file and everything after it share.

Plain records and aliases over `ast`; nothing here looks at a whole file.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
Place: TypeAlias = tuple[int, int]
"""Line (1-based) and column (0-based), as `ast` counts them."""

UNKNOWN = ast.Name(id="?", ctx=ast.Load(), lineno=0, col_offset=0)
"""Stands for an argument that may have been given, but nobody can say as what."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Definition:
    """One binding of a name, or of an attribute or key of a name, in a scope.

    Attributes:
        name: `x`, `self.x` or `x['key']`.
        node: the statement, argument or clause that binds it.
        value: the expression it comes from, None where there is none.
        path: indices into `value` where it is unpacked; -1 for a starred part.
        kind: `assign`, `augment`, `for`, `with`, `parameter`, `function`, `class`, `import` or `other`.
        since: place from which it holds.
        dotted: full dotted name of what an import binds, else "".
    """

    name: str
    node: ast.AST
    value: ast.expr | None
    path: tuple[int, ...]
    kind: str
    since: Place
    dotted: str = ""


def name_of(node: ast.AST) -> str:
    """The last part of a name: `c` of `a.b.c`, of `c`, of `c(…)` and of a parameter; "" of anything else."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) else ""


def start(node: Any) -> Place:
    """Where a node begins; (0, 0) for a module."""
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def end(node: Any) -> Place:
    """Where a node ends."""
    return (getattr(node, "end_lineno", None) or 10**9, getattr(node, "end_col_offset", None) or 0)
