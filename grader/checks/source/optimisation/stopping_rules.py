"""Which test ends a training that goes on until the loss stands still, and what ends it before that.

Asked only where a run is known to have stopped too early, too late or not at all; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, ancestors, name_of, start

_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIZES = ("abs", "fabs", "abs_", "absolute")


def stopping_tests(script: Script) -> list[ast.Compare]:
    """Comparisons of how much something changed that loops end by, in the order of the text."""
    found = []
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], _ORDER) and _change(script, node):
                ends = _ends_loop(script, node)
                found += [node] if ends else []
    return sorted(found, key=start)


def stopped_early(script: Script, said: str) -> Cause | None:
    """Why a training stopped although the loss still changed, or went on although it did not."""
    tests = stopping_tests(script)
    bound = _bound_of(script, said)
    if bound is not None:
        node, text = bound
        goal = (
            f" until {script.quote(tests[0])} holds"
            if tests
            else " until an epoch changes the loss too little"
        )
        return Cause(
            (node, *tests[:1]),
            f"{script.quote(node)} ends the training after {text} epochs, whatever they did: let the loop go on{goal}.",
        )
    if not tests:
        return None
    change = _change(script, tests[0])
    assert change is not None, "that is what it was chosen for"
    if "rose" in said and not _sized(script, tests[0]):
        text = ast.unparse(change)
        return Cause(
            (tests[0],),
            f"{script.quote(tests[0])} holds, too, when the loss rises: the change is less than 0 then. Write "
            f"`abs({text})` for `{text}`.",
        )
    return Cause(
        (tests[0],),
        f"{script.quote(tests[0])} decides when training ends: what it compares must be the loss over all points, "
        "after this epoch and after the one before, and the limit 0.1 % of the one before.",
    )


def _change(script: Script, test: ast.Compare) -> ast.BinOp | None:
    """The difference that a comparison is about: written in it, or in what a name in it was given."""
    written = [n for side in (test.left, *test.comparators) for n in ast.walk(side)]
    named = [o for n in written if isinstance(n, ast.Name) for o in script.values.origins(n)]
    parts = (*written, *(n for o in named if isinstance(o, ast.expr) for n in ast.walk(o)))
    differences = (n for n in parts if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub))
    return next((n for n in differences if not _counts(n)), None)


def _counts(difference: ast.BinOp) -> bool:
    """`len(x) - 1`, `step - 2`, and what lies between two readings of a clock."""
    sides = (difference.left, difference.right)
    whole = any(isinstance(s, ast.Constant) and isinstance(s.value, int) and s.value != 1 for s in sides)
    last = isinstance(difference.right, ast.Constant)
    called = {name_of(n) for s in sides for n in ast.walk(s) if isinstance(n, ast.Call)}
    return (
        whole
        or last
        or bool(called & {"len", "perf_counter", "time", "monotonic", "get_world_size", "get_rank"})
    )


def _sized(script: Script, test: ast.Compare) -> bool:
    """Whether what is compared is a size, without its sign."""
    parts = [n for side in (test.left, *test.comparators) for n in (side, *script.values.closure(side))]
    inner = [m for n in parts if isinstance(n, ast.expr) for m in ast.walk(n)]
    squared = any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow) for n in inner)
    return squared or any(isinstance(n, ast.Call) and name_of(n) in _SIZES for n in inner)


def _ends_loop(script: Script, test: ast.Compare) -> bool:
    """Whether a loop ends by it: `while`, `break`, `return` in a loop, or what a function or a name tells of it."""
    tree = script.names.tree(test)
    for above in ancestors(tree.parent, test):
        if isinstance(above, ast.While):
            return tree.inside(test, above.test)
        if isinstance(above, ast.Return | ast.Assign):
            return True
        if isinstance(above, ast.If) and tree.inside(test, above.test):
            return any(
                isinstance(n, ast.Break | ast.Return | ast.Assign) for s in above.body for n in ast.walk(s)
            )
        if isinstance(above, (*LOOPS, ast.stmt)):
            return False
    return False


def _bound_of(script: Script, said: str) -> tuple[ast.AST, str] | None:
    """What counts the epochs of a loop, where a training stopped at just that number."""
    for loop, count in _counted(script):
        value = script.values.constant(count)
        if isinstance(value, int) and f"stops at epoch {value}," in said:
            made = script.scopes.reaching(count.id, count) if isinstance(count, ast.Name) else ()
            kept = [d.node for d in made if d.kind == "assign"]
            return (kept[0] if len(kept) == 1 else loop.iter), f"{value:,}"
    return None


def _counted(script: Script) -> Iterator[tuple[ast.For, ast.expr]]:
    for tree in script.trees:
        for loop in tree.loops:
            if (
                isinstance(loop, ast.For)
                and isinstance(loop.iter, ast.Call)
                and name_of(loop.iter) == "range"
            ):
                yield from ((loop, count) for count in loop.iter.args[-1:] if len(loop.iter.args) < 3)
