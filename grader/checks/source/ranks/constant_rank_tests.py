"""Tests of the rank that come out the same on every rank, whichever way they were meant."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.ranks.rank_tests import MAIN_NAME
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of, start
from grader.model.fix import Fix

_TESTS = (ast.Compare, ast.If, ast.IfExp)
_NUMBERS = ("RANK", "LOCAL_RANK")


@dataclass(frozen=True, slots=True)
class ConstantTest:
    """One of them.

    Attributes:
        node: the test. why: what it does, a clause. hint: what to write.
        on_all: it is true on every rank; otherwise on none.
        fix: the edit that mends it, where that is certain.
    """

    node: ast.expr
    why: str
    hint: str
    on_all: bool
    fix: Fix | None


def constant_rank_tests(script: Script) -> Iterable[ConstantTest]:
    """All of them, in the order of the files."""
    for tree in script.trees:
        # Whatever has something above it stands in this table: reading it costs a fraction of a walk.
        for node in sorted((n for n in tree.parent if isinstance(n, _TESTS)), key=start):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                yield from _compared(script, node)
            elif isinstance(node, ast.If | ast.IfExp):
                yield from _named(script, node.test)


def _compared(script: Script, test: ast.Compare) -> Iterable[ConstantTest]:
    sides, op = (test.left, test.comparators[0]), test.ops[0]
    if not isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return
    for asked, other in (sides, sides[::-1]):
        constant = script.values.constant(other)
        if constant is UNKNOWN:
            continue
        text, number = _is_text(script, asked), _is_number(script, asked)
        if text and isinstance(constant, int) and not isinstance(constant, bool):
            why, hint, fix = (
                "compares the text of an environment variable with a number, and the two are never equal",
                f"Make a number of it first: `int({Edits(script).text(asked)})`.",
                _number_made(script, asked),
            )
        elif number and (constant is None or isinstance(constant, str)):
            what = "`None`" if constant is None else "a text"
            why, hint, fix = (
                f"compares a rank, which is a number, with {what}",
                f"Compare it with the number of the rank that is meant: `{Edits(script).text(asked)} == 0`.",
                _compared_with_zero(script, test, asked) if isinstance(op, ast.IsNot) else None,
            )
        else:
            continue
        yield ConstantTest(test, why, hint, isinstance(op, ast.NotEq | ast.IsNot), fix)
        return


def _named(script: Script, test: ast.expr) -> Iterable[ConstantTest]:
    """`if is_main_process:`, where that is a function."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(inner, ast.Name) or not MAIN_NAME.search(inner.id):
        return
    origins = script.values.origins(inner, returns=False)
    if origins and all(isinstance(o, FUNCTIONS) for o in origins):
        edits = Edits(script)
        edits.append(inner, "()")
        yield ConstantTest(
            test,
            f"asks whether there is a function `{inner.id}`, and does not call it",
            f"Call it: `{inner.id}()`.",
            inner is test,
            edits.fix(f"Calls `{inner.id}`."),
        )


def _is_text(script: Script, node: ast.expr) -> bool:
    """Whether a value is the text of `RANK` or `LOCAL_RANK`, as torchrun sets it."""
    origins = script.values.origins(node)
    return bool(origins) and all(script.ranks.environment(o) in _NUMBERS and _plain(o) for o in origins)


def _plain(node: ast.AST) -> bool:
    """The variable itself, not a number made of it."""
    return isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Call) and name_of(node) in ("get", "getenv")
    )


def _is_number(script: Script, node: ast.expr) -> bool:
    """Whether a value is a rank that the process group told."""
    origins = script.values.origins(node)
    asked = [o for o in origins if isinstance(o, ast.Call) and not o.args and not o.keywords]
    names = {script.names.qualified(o.func) for o in asked}
    return bool(origins) and len(asked) == len(origins) and names <= {"torch.distributed.get_rank"}


def _number_made(script: Script, node: ast.expr) -> Fix | None:
    edits = Edits(script)
    edits.replace(node, f"int({edits.text(node)})")
    return edits.fix("Compares numbers.")


def _compared_with_zero(script: Script, test: ast.Compare, asked: ast.expr) -> Fix | None:
    edits = Edits(script)
    edits.replace(test, f"{edits.text(asked)} == 0")
    return edits.fix("Lets rank 0 alone through.")
