"""Bytes that are written in another unit, or counted as something else: by how far they are off, and where.

Asked only where a scorer has found a number of bytes to be wrong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of, start
from grader.checks.source.values.data_flow import is_printed

_TOLD = re.compile(r"has ([\d,]{1,30}) bytes of \w{1,60}.{0,200}?(?:implies|keeps about) ([\d,]{1,30})")
_MAX_DEPTH = 3
_UNITS = {1024: "KiB", 1000: "kB", 1024**2: "MiB", 1000**2: "MB", 1024**3: "GiB", 1000**3: "GB"}


def units(script: Script, said: str) -> Cause | None:
    """Where bytes are divided by 1024 or the like, or elements are counted for bytes; None where neither shows."""
    told = _TOLD.search(said)
    if told is None:
        return None
    got, want = (int(number.replace(",", "")) for number in told.groups())
    if not got:
        return _nothing_there(script, told[0])
    if got < want and (objects := [c for c in _sizes_of_objects(script) if not is_printed(script, c)]):
        tensor = ast.unparse(objects[0].args[0]) if objects[0].args else "t"
        return Cause(
            tuple(objects),
            f"{script.quote(objects[0])} is the size of the Python object, which only refers to the numbers. Write "
            f"`{tensor}.numel() * {tensor}.element_size()` for their bytes.",
        )
    if got * 4 == want:
        counts = [c for c in script.called("numel") if not _times_size(script, c)]
        return Cause(
            tuple(counts),
            "That is the number of elements. Write `t.numel() * t.element_size()` for the bytes of a tensor `t`.",
        )
    for unit, name in _UNITS.items():
        if got in (want // unit, round(want / unit)):
            divisions = sorted(_divisions(script, unit), key=start)
            first = divisions[0] if divisions else None
            written = (
                f"Write `{ast.unparse(first.left)}`" if isinstance(first, ast.BinOp) else "Write it undivided"
            )
            return Cause(tuple(divisions), f"{written}: the column is in bytes, and that is in {name}.")
    return None


def _sizes_of_objects(script: Script) -> list[ast.Call]:
    """`sys.getsizeof(t)`, but for what holds the numbers itself."""
    calls = script.calls("sys.getsizeof")
    return [
        c
        for c in calls
        if c.args and name_of(c.args[0]) not in ("storage", "untyped_storage", "numpy", "tobytes")
    ]


def _nothing_there(script: Script, told: str) -> Cause:
    """Why there was nothing when it was counted: for gradients, the call that clears them before."""
    if "gradients" not in told:
        return Cause(
            (), "There was nothing yet when that was counted: count after the first step, `optimizer.step()`."
        )
    for tree in script.trees:
        for read in sorted(tree.attribute_loads.get("grad", ()), key=start):
            last = _last_before(script, tree.function(read) or tree.root, read)
            if last is not None and last[-1] in script.updates.clears:
                cleared = script.names.tree(last[-1]).statement(last[-1])
                return Cause(
                    (*last, read),
                    f"Count gradients before they are cleared: {script.quote(cleared)} at {script.at(cleared)} has "
                    "set them to None by then. Right after `backward()` they are there.",
                )
    return Cause((), "There were no gradients when they were counted: count right after `backward()`.")


def _last_before(
    script: Script, scope: ast.AST, before: ast.AST | None, depth: int = 0
) -> tuple[ast.AST, ...] | None:
    """What made or cleared gradients last above a place, or in a whole function: the calls that led to it, and it."""
    tree = script.names.tree(scope)
    inside = scope if isinstance(scope, FUNCTIONS) else None
    marks: list[ast.AST] = [
        n for n in (*script.updates.clears, *script.training.backwards) if script.names.tree(n) is tree
    ]
    marks += [c for c in tree.calls if script.graph.targets(c)] if depth < _MAX_DEPTH else []
    own = [n for n in marks if tree.function(n) is inside and (before is None or start(n) < start(before))]
    for mark in sorted(own, key=start, reverse=True):
        if mark in script.updates.clears or mark in script.training.backwards:
            return (mark,)
        for target in script.graph.targets(mark) if isinstance(mark, ast.Call) else ():
            found = _last_before(script, target, None, depth + 1) if isinstance(target, FUNCTIONS) else None
            if found is not None:
                return (mark, *found)
    return None


def _times_size(script: Script, call: ast.Call) -> bool:
    """Whether the elements counted are multiplied by their size on the way."""
    above = script.names.tree(call).parent.get(call)
    return isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mult)


def _divisions(script: Script, unit: int) -> Iterable[ast.AST]:
    """Divisions by a unit, by it twice, or shifts by its bits; what is only printed is left out."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.AugAssign):
                operation, factor = node.op, node.value
            elif isinstance(node, ast.BinOp):
                operation, factor = node.op, node.right
            else:
                continue
            divides = isinstance(operation, ast.Div | ast.FloorDiv) and _number(script, factor) in _parts(
                unit
            )
            shifts = isinstance(operation, ast.RShift) and 2 ** (_number(script, factor) or 0) == unit
            if (divides or shifts) and not is_printed(script, node):
                yield node


def _parts(unit: int) -> tuple[int, ...]:
    return (unit, 1024) if unit % 1024 == 0 else (unit, 1000)


def _number(script: Script, node: ast.expr) -> int | None:
    """A whole number as it is written: `1024`, `1024**2`, `2**20`, `1e6`, or a name for one."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.Mult):
        left, right = _number(script, node.left), _number(script, node.right)
        if left is None or right is None or not (0 <= left <= 2**30 and 0 <= right <= 2**30):
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        return left**right if right <= 30 else None
    value = script.values.constant(node)
    return int(value) if isinstance(value, int | float) and 0 <= value <= 2**40 else None
