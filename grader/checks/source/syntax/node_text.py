"""Nodes of a syntax tree as their author wrote them, for edits that write them again elsewhere."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script


def node_text(script: Script, node: ast.AST) -> str:
    """A node as it is written; in one line, where it is written over several."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if first != last or not first:
        return ast.unparse(node)
    line = script.line(script.names.tree(node).path, first).encode()
    return line[getattr(node, "col_offset", 0) : getattr(node, "end_col_offset", 0)].decode()


def node_lines(script: Script, node: ast.expr, indent: str) -> list[str]:
    """A node as it is written, line by line, moved to an indentation; in one line where a text goes over several."""
    if lines_of_texts(node):
        return [f"{indent}{ast.unparse(node)}"]
    path, last = script.names.tree(node).path, node.end_lineno or node.lineno
    rows = [script.line(path, number) for number in range(node.lineno, last + 1)]
    base = len(rows[0]) - len(rows[0].lstrip())
    rows[-1] = rows[-1].encode()[: node.end_col_offset].decode()
    first = rows[0].encode()[node.col_offset :].decode()
    return [f"{indent}{first}", *(f"{indent}{row[:base].lstrip()}{row[base:]}".rstrip() for row in rows[1:])]


def lines_of_texts(statement: ast.AST) -> set[int]:
    """Lines that begin within a text over several lines: what stands before them is part of it."""
    return {
        number
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for number in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
