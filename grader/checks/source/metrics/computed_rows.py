"""Rows of a table that tell of other runs and are worked out of this run's own clock.

A script can know of other runs what stands in its text or in a file, and nothing else. Asked only where a scorer says
which numbers this run can't have measured; where one of them stands in the text, the table was brought along.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from math import isclose
from statistics import mean, median

from grader.checks.source.metrics.late_readings import CLOCKS
from grader.checks.source.metrics.written_values import column_values
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, LOOPS, ancestors, literal, name_of, start

_UNITS = (1, 60, 100, 1000, 3600)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_READING = ("open", "read_csv", "loadtxt", "genfromtxt", "load", "loads", "DictReader", "reader", "read_text")
_ROUNDED = 1e-3
_MAX_DEPTH = 3
_MOST = 2
"""Rows of one run that a script may work out of its clock: itself; from so many on some tell of others."""


def computed_rows(script: Script, column: str, brought: Sequence[float]) -> tuple[ast.AST, ...]:
    """Expressions that make a column of other runs' rows of this run's times, those of several rows first; else none.

    Args:
        column: whose values are times. brought: of rows that this run can't have measured.
    """
    known = tuple(_numbers(script))
    if not brought or any(_stands_for(one, value) for value in brought for one in known):
        return ()
    rows = {value: _times_made(script, value) for value in column_values(script, column)}
    made = {value: times for value, times in rows.items() if times and _is_worked_out(script, value)}
    if sum(made.values()) < _MOST:
        return ()
    return tuple(sorted(made, key=lambda value: (-made[value], start(value))))


def _stands_for(told: float, value: float) -> bool:
    """Whether a number of the text is a value, rounded or in another unit; whole ones are of many things."""
    if isinstance(told, int):
        return told == value
    return any(isclose(value * unit, told, rel_tol=_ROUNDED) for unit in _units())


def _units() -> Iterator[float]:
    """What seconds are multiplied by to be told in another unit."""
    yield from _UNITS
    yield from (1 / unit for unit in _UNITS[1:])


def _numbers(script: Script) -> Iterator[float]:
    """Numbers that stand in the text, in texts with commas too, and what lists of them come to."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _numbers_in(node.value)
            elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
                yield node.value
            elif isinstance(node, DISPLAYS) and len(node.elts) > 1:
                values = [literal(one) for one in node.elts]
                numbers = [float(one) for one in values if isinstance(one, int | float)]
                if len(numbers) == len(values):
                    yield from (mean(numbers), median(numbers), sum(numbers))


def _numbers_in(text: str) -> Iterator[float]:
    for word in text.replace(",", " ").replace(";", " ").split():
        if "." in word and word.replace(".", "", 1).isdecimal():
            yield float(word)


def _times_made(script: Script, value: ast.expr) -> int:
    """For how many rows a script computes a value, 2 standing for several; 0 where it is told of each epoch."""
    tree = script.names.tree(value)
    above = ancestors(tree.parent, value, FUNCTIONS)
    loops = [one for one in above if isinstance(one, (*LOOPS, *_COMPREHENSIONS))]
    if any(tree.inside(backward, loop) for backward in tree.called("backward") for loop in loops):
        return 0
    function = tree.function(value)
    sites = len(script.graph.sites(function)) if function is not None else 1
    return _MOST if loops else min(_MOST, max(1, sites))


def _is_worked_out(script: Script, value: ast.expr) -> bool:
    """Whether a value is a measured time times or through something else than a unit, and read from no file."""
    parts = list(script.values.closure(value))
    if any(isinstance(part, ast.Call) and name_of(part) in _READING for part in parts):
        return False
    return any(_is_scaled(script, one) for one in _products(script, value, 0))


def _products(script: Script, value: ast.expr, depth: int) -> Iterator[ast.BinOp]:
    """Products and quotients that a value is made by, followed through names."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
            yield node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and depth < _MAX_DEPTH:
            for definition in script.scopes.reaching(node.id, node):
                if definition.kind == "assign" and isinstance(definition.value, ast.expr):
                    yield from _products(script, definition.value, depth + 1)


def _is_scaled(script: Script, product: ast.BinOp) -> bool:
    sides = (product.left, product.right)
    if any(isinstance(told := literal(side), int | float) and told in _UNITS for side in sides):
        return False
    return any(_is_time(script, side) for side in sides)


def _is_time(script: Script, value: ast.expr) -> bool:
    """Whether a clock was read for it, also by way of what a history keeps under a name."""
    for part in script.values.closure(value):
        if isinstance(part, ast.Call) and name_of(part) in CLOCKS:
            return True
        key = literal(part.slice) if isinstance(part, ast.Subscript) else None
        if isinstance(key, str) and any(
            isinstance(inner, ast.Call) and name_of(inner) in CLOCKS
            for kept in _kept(script, key)
            for inner in script.values.closure(kept)
        ):
            return True
    return False


def _kept(script: Script, key: str) -> Iterator[ast.expr]:
    """What dictionaries hold under a key."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Dict):
                yield from (v for k, v in zip(node.keys, node.values, strict=True) if k and literal(k) == key)
