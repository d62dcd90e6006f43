"""Which values of a variable every rank is given: outside any test of the rank, or alike in both branches of one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.ranks.rank_expressions import PLACING
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, part_of, walk


def value_text(value: ast.AST) -> str:
    """The text of a value without what only says where it is to lie."""
    if isinstance(value, ast.Call) and any(k.arg in PLACING for k in value.keywords):
        kept = [k for k in value.keywords if k.arg not in PLACING]
        value = ast.Call(value.func, value.args, kept)
    return ast.unparse(value)


def given_on_every_rank(script: Script, found: Iterable[Definition]) -> set[str]:
    """Texts of the values (see `value_text`) that some of these definitions give on every rank."""
    given: set[str] = set()
    branches: dict[tuple[ast.AST, str], set[bool]] = {}
    for definition in found:
        part = part_of(definition)
        if part is None:
            continue
        guard = script.guards.partial(definition.node)
        if guard is None:
            given.add(value_text(part))
            continue
        above = script.names.tree(guard.test).parent.get(guard.test)
        if isinstance(above, ast.If):
            in_body = any(definition.node in walk(statement) for statement in above.body)
            branches.setdefault((guard.test, value_text(part)), set()).add(in_body)
    return given | {text for (_, text), sides in branches.items() if len(sides) == 2}
