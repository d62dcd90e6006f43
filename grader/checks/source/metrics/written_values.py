"""Where a number of a table is computed: from the column that a scorer found wrong back to the line that makes it.

Asked only where a scorer has found the number to be wrong; it says where, and decides nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import literal, name_of, start
from grader.checks.source.values.data_flow import source_text

_SENTENCES = (
    r"bytes of {0}\b",
    r"counts [\d,.]+ {0}\b",
    r"\b{0} of [\d.]",
    r"take [\d,. to]+ {0}\b",
    r"(?:took|tells of) [\d.e+-]+ {0}\b",
    r"\b{0}\b",
)
"""How a scorer's sentence names the column that it is about; the last one takes any mention."""
_KEYS = ("batch_size", "epoch", "rank", "world_size")
"""Columns that say which row it is: sentences name them, and are about another one."""
_SECONDS = re.compile(r"(?<=\d) s\b")
_MAX_DEPTH = 4


def where_written(script: Script, said: str) -> tuple[ast.AST, ...]:
    """Lines that make the number a sentence is about, where the text writes a column of that name; else none."""
    told = _SECONDS.sub(" seconds", said.replace("/s", "_per_s"))
    tables = list(_tables(script))
    known = {name for columns in tables for name in columns} - set(_KEYS)
    for sentence in _SENTENCES:
        found = [(m.start(), n) for n in known if (m := _named(sentence, n, told))]
        for _, name in sorted(found):
            values = list(column_values(script, name))
            makers = [maker for value in values for maker in _makers(script, value, 0)]
            if makers:
                return tuple(dict.fromkeys(makers))
    return ()


def _named(sentence: str, column: str, told: str) -> re.Match[str] | None:
    """Where a sentence names a column: `learning rate` is `learning_rate`."""
    return re.search(sentence.format(re.escape(column).replace("_", "[_ ]")), told)


def _tables(script: Script) -> Iterator[tuple[str, ...]]:
    """Names of columns as they are written: a list of texts, or one text with commas."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
                names = [literal(e) for e in node.elts]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "," in node.value:
                names = list(node.value.strip().split(","))
            elif isinstance(node, ast.Dict) and len(node.keys) > 1:
                names = [literal(k) if k is not None else None for k in node.keys]
            elif isinstance(node, ast.Call) and name_of(node) == "dict" and len(node.keywords) > 1:
                names = [k.arg for k in node.keywords]
            else:
                continue
            columns = tuple(n.strip() for n in names if isinstance(n, str) and n.strip().isidentifier())
            if len(columns) == len(names):
                yield columns


def column_values(script: Script, name: str) -> Iterator[ast.expr]:
    """What is written into a column: by its place in a row, or by its key."""
    tables = list(_tables(script))
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Dict):
                yield from (
                    v for k, v in zip(node.keys, node.values, strict=True) if k and literal(k) == name
                )
                continue
            if isinstance(node, ast.Call) and name_of(node) == "dict":
                yield from (k.value for k in node.keywords if k.arg == name)
                continue
            if isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load):
                row = node.elts
            elif isinstance(node, ast.JoinedStr):
                row = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            else:
                continue
            for columns in tables:
                if name in columns and _is_row(script, node, row, tables, columns):
                    yield row[columns.index(name)]
                    break


def _is_row(
    script: Script,
    node: ast.AST,
    row: list[ast.expr],
    tables: list[tuple[str, ...]],
    columns: tuple[str, ...],
) -> bool:
    """Whether values stand in the order of these columns: as many, and called as they are, or of no other table."""
    if len(row) != len(columns) or any(isinstance(v, ast.Starred) for v in row):
        return False
    if any(name_of(value) == column for value, column in zip(row, columns, strict=True)):
        return True
    only = all(one == columns for one in tables if len(one) == len(columns))
    header = all(isinstance(value, ast.Constant) for value in row)
    return only and not header and _is_written(script, node)


def _is_written(script: Script, node: ast.AST) -> bool:
    """Whether a list is handed to `writerow`, or to the list that `writerows` is given."""
    call = script.names.tree(node).parent.get(node)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    given = [a for c in script.called("writerows") for a in c.args]
    # `[COLUMNS, *rows]`
    given += [e.value for a in given if isinstance(a, ast.List) for e in a.elts if isinstance(e, ast.Starred)]
    held = {name_of(a) for a in given}
    return call.func.attr == "writerow" or (call.func.attr == "append" and name_of(call.func.value) in held)


def _makers(script: Script, value: ast.expr, depth: int) -> Iterable[ast.AST]:
    """The statements that give a value, the last ones before it is written."""
    tree = script.names.tree(value)
    if (
        isinstance(value, ast.Call)
        and name_of(value) in ("round", "int", "float", "item")
        and depth < _MAX_DEPTH
    ):
        inner = value.args[0] if value.args else value.func
        inner = inner.value if isinstance(inner, ast.Attribute) and not value.args else inner
        if isinstance(inner, ast.Name | ast.Attribute | ast.Subscript):
            return _makers(script, inner, depth + 1)
    if isinstance(value, ast.Subscript):
        grown = _appended(script, source_text(value))
        return (
            grown or _makers(script, value.value, depth + 1)
            if depth < _MAX_DEPTH
            else [tree.statement(value)]
        )
    if isinstance(value, ast.Attribute):
        stores = [d for t in script.trees for d in t.attributes.get(value.attr, ()) if d.value is not None]
        grown = [d.node for d in stores if d.kind == "augment"]
        made = [d.node for d in stores if d.value is not None and not isinstance(d.value, ast.Constant)]
        return sorted(grown or made, key=start) or [tree.statement(value)]
    if not isinstance(value, ast.Name) or depth >= _MAX_DEPTH:
        return [tree.statement(value)]
    found: list[ast.AST] = []
    reaching = script.scopes.reaching(value.id, value)
    counted = [d.node for d in reaching if d.kind == "augment"]
    for definition in () if counted else reaching:
        function = tree.function(definition.node)
        if definition.kind == "parameter" and function is not None:
            for site in script.graph.sites(function):
                given = script.graph.bound(site, function, value.id)
                known = given is not None and script.names.knows(given)
                found += _makers(script, given, depth + 1) if known and given is not None else ()
        elif definition.kind == "for" and definition.value is not None:
            lists = [n for n in ast.walk(definition.value) if isinstance(n, ast.Name | ast.Attribute)]
            grown = [statement for held in lists for statement in _appended(script, source_text(held))]
            found += grown or [tree.statement(definition.value)]
        elif definition.kind != "parameter":
            found.append(definition.node)
    return sorted(counted, key=start) or found or [tree.statement(value)]


def _appended(script: Script, held: str) -> list[ast.AST]:
    """Where a list grows: `losses.append(…)`, also where another object holds it by then."""
    last = held.rpartition(".")[2]
    calls = script.called("append") if last else []
    return [
        script.names.tree(c).statement(c)
        for c in calls
        if isinstance(c.func, ast.Attribute) and name_of(c.func.value) == last and script.training.repeated(c)
    ]
