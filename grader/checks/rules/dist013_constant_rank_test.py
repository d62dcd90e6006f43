"""A test of the rank comes out the same on every rank.

## What it finds
Tests that look as if they told ranks apart, and don't: the text of an environment variable compared with a number
(`os.environ["RANK"] == 0`), a rank compared with `None` or with a text, a function that answers for the rank and is
named without being called.

## Why it matters
What stands under such a test runs on all ranks or on none: every rank writes the checkpoint, or nobody does. Nothing
fails at the test itself, so the fault shows somewhere else, as broken or missing files.

## Example
```python
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if os.environ["RANK"] == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## How it is seen
In the source alone, where both sides of the comparison are plain to see. Tests that ask whether there are several
processes at all (`os.environ.get("RANK") is not None`) are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.edits import Edits
from grader.checks.source.rank_tests import MAIN_NAME
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax_nodes import FUNCTIONS
from grader.model.finding import Severity
from grader.model.fix import Fix

SEVERITY = Severity.WARNING
_NUMBERS = ("RANK", "LOCAL_RANK")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag comparisons that no rank, or every rank, passes."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Compare) and len(node.ops) == 1:
                yield from _compared(script, node)
            elif isinstance(node, ast.If | ast.IfExp):
                yield from _named(script, node.test)


def _compared(script: Script, test: ast.Compare) -> Iterable[Hit]:
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
                "Make a number of it first: `int(os.environ[…])`.",
                _number_made(script, asked),
            )
        elif number and (constant is None or isinstance(constant, str)):
            what = "`None`" if constant is None else "a text"
            why, hint, fix = (
                f"compares a rank, which is a number, with {what}",
                "Compare it with the number of the rank that is meant: `dist.get_rank() == 0`.",
                None,
            )
        else:
            continue
        yield _hit(script, test, why, hint, on_all=isinstance(op, ast.NotEq | ast.IsNot), fix=fix)
        return


def _named(script: Script, test: ast.expr) -> Iterable[Hit]:
    """`if is_main_process:`, where that is a function."""
    inner = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else test
    if not isinstance(inner, ast.Name) or not MAIN_NAME.search(inner.id):
        return
    origins = script.values.origins(inner, returns=False)
    if origins and all(isinstance(o, FUNCTIONS) for o in origins):
        edits = Edits(script)
        edits.append(inner, "()")
        yield _hit(
            script,
            test,
            f"asks whether there is a function `{inner.id}`, and does not call it",
            f"Call it: `{inner.id}()`.",
            on_all=inner is test,
            fix=edits.fix(f"Calls `{inner.id}`."),
        )


def _hit(script: Script, test: ast.expr, why: str, hint: str, *, on_all: bool, fix: Fix | None) -> Hit:
    outcome = "true on every rank" if on_all else "true on no rank"
    return Hit(
        message=f"{script.at(test)} {why} ({script.quote(test)}): it is {outcome}, so it tells no rank from another.",
        hint=hint,
        where=(script.location(test),),
        fix=fix,
    )


def _is_text(script: Script, node: ast.expr) -> bool:
    """Whether a value is the text of `RANK` or `LOCAL_RANK`, as torchrun sets it."""
    origins = script.values.origins(node)
    return bool(origins) and all(script.ranks.environment(o) in _NUMBERS and _plain(o) for o in origins)


def _plain(node: ast.AST) -> bool:
    """The variable itself, not a number made of it."""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name in ("get", "getenv")
    return isinstance(node, ast.Subscript)


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
