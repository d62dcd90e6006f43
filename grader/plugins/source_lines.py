"""Where in a plug-in's file a name, a value or a heading stands."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path


class SourceLines:
    """The names that a file defines at its top level, with their lines; nothing where it cannot be read or parsed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def text(self) -> str:
        """The file's text."""
        try:
            with tokenize.open(self._path) as file:
                return file.read()
        except (OSError, SyntaxError, UnicodeDecodeError):
            return ""

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError):
            return ast.Module([], [])

    @cached_property
    def _statements(self) -> dict[str, ast.stmt]:
        found: dict[str, ast.stmt] = {}
        for name, statement in _definitions(self._tree):
            found.setdefault(name, statement)
        return found

    def strange(self, known: Iterable[str], *, closed: bool) -> tuple[str, ...]:
        """Public names that are assigned (or defined, where `closed`), not imported, and not known."""
        known = set(known)
        defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return tuple(
            name
            for name, statement in self._statements.items()
            if not name.startswith("_")
            and name not in known
            and (closed or not isinstance(statement, defined))
        )

    def of(self, name: str, culprit: object = None) -> int:
        """Line of a name's definition, or of a value within it; 1 where neither is found."""
        statement = self._statements.get(name)
        if statement is None:
            return 1
        for node in ast.walk(statement) if culprit is not None else ():
            if isinstance(node, ast.Constant) and node.value == culprit:
                return node.lineno
        return statement.lineno

    def in_docstring(self, offset: int) -> int:
        """Line of the file where a line of the docstring stands, counted from 0."""
        match self._tree.body:
            case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
                return first.lineno + offset
        return 1


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    todo: list[tuple[ast.AST, ast.stmt]] = [(statement, statement) for statement in tree.body]
    while todo:
        node, statement = todo.pop(0)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Name(ctx=ast.Store()):
                yield node.id, statement
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case _:
                inner = [(n, n if isinstance(n, ast.stmt) else statement) for n in ast.iter_child_nodes(node)]
                todo = [*inner, *todo]
