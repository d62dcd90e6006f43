"""Sums that a loop keeps in one tensor, and where their ratio is told with no rank but this one in it.

`totals += torch.stack([loss * n, n])` puts a sum and its count side by side, as for one collective. Where nothing of
that tensor meets another rank before the ratio is recorded or printed, the figure is this rank's own. A tensor that
goes anywhere else than into such a figure may be brought together there, and nothing is said of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import DISPLAYS, Definition, name_of, start, walk
from grader.checks.source.training_loops import Draw
from grader.checks.source.values.data_flow import reads_after

TELLING = (
    "print", "info", "add_scalar", "add_scalars", "log", "log_metric", "log_metrics", "set_postfix", "write",
    "writerow",
)  # fmt: skip
"""What says a value to the reader of a run."""
_RECORDING = ("append", "dict", "extend", "update")
_MAKERS = ("torch.zeros", "torch.zeros_like", "torch.tensor")
_JOINING = ("torch.as_tensor", "torch.hstack", "torch.stack", "torch.tensor")
_PLAIN = ("json", "math", "numpy", "time", "torch")


def told_ratios(script: Script, draw: Draw) -> Iterable[tuple[ast.stmt, list[ast.stmt]]]:
    """Statements that divide one sum of such a tensor by another, each with those that tell what came of it."""
    tree = script.names.tree(draw.loop)
    scope = tree.scope(draw.loop)
    for name in sorted(_summed(script, draw)):
        loads = [n for n in tree.loads.get(name, ()) if tree.scope(n) is scope]
        if not loads or _seen_from_inside(script, name, loads[0]) or script.reductions.takes(loads):
            continue
        own = set(loads)
        # A name may hold another value further down, of another loop.
        reads = [
            n
            for n in reads_after(script, loads[0], draw.loop)
            if not own.isdisjoint(script.values.closure(n))
        ]
        ratios = {n: r for n in reads if (r := _ratio(script, n, reads)) is not None}
        told = [n for n in reads if _is_told(script, n) and (n in ratios or n not in own)]
        if ratios and told and all(_goes_nowhere(script, n) for n in reads):
            ratio = min(ratios.values(), key=start)
            yield (
                script.names.tree(ratio).statement(ratio),
                [script.names.tree(n).statement(n) for n in told],
            )


def _seen_from_inside(script: Script, name: str, load: ast.Name) -> bool:
    """Whether a function within this one reads the tensor, too."""
    tree = script.names.tree(load)
    others = (n for n in tree.loads[name] if tree.scope(n) is not tree.scope(load))
    return any(script.names.lookup(name, n) is script.names.lookup(name, load) for n in others)


def _summed(script: Script, draw: Draw) -> set[str]:
    """Names of tensors that begin empty and grow by several sums in a loop, at once or element by element."""
    tree = script.names.tree(draw.loop)
    made = tree.definitions.get(tree.scope(draw.loop), {})
    inside = {name: [d for d in found if tree.inside(d.node, draw.loop)] for name, found in made.items()}
    whole = {name for name, found in inside.items() if any(_adds_several(script, d) for d in found)}
    elements: dict[str, int] = {}
    for name, found in inside.items():
        if name.endswith("]") and any(_adds(d) for d in found):
            elements[name.partition("[")[0]] = elements.get(name.partition("[")[0], 0) + 1
    whole |= {name for name, number in elements.items() if number > 1}
    return {
        name
        for name in whole
        if all(_begins_empty(script, d) for d in made.get(name, ()) if d not in inside[name])
        and len(made.get(name, ())) > len(inside.get(name, ()))
    }


def _adds(definition: Definition) -> bool:
    return isinstance(definition.node, ast.AugAssign) and isinstance(definition.node.op, ast.Add)


def _adds_several(script: Script, definition: Definition) -> bool:
    """`totals += torch.stack([a, b])`, or the same as an assignment."""
    value = definition.value
    if definition.kind == "assign" and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        sides = (value.left, value.right)
        if not any(isinstance(side, ast.Name) and side.id == definition.name for side in sides):
            return False
        value = next((side for side in sides if isinstance(side, ast.Call)), None)
    elif not _adds(definition):
        return False
    if not isinstance(value, ast.Call) or not value.args:
        return False
    joins = script.names.qualified(value.func) in _JOINING or name_of(value) == "new_tensor"
    return joins and isinstance(value.args[0], DISPLAYS) and len(value.args[0].elts) > 1


def _begins_empty(script: Script, definition: Definition) -> bool:
    value = definition.value if not definition.path else None
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and script.names.qualified(value.func) is None
    ):
        value = value.func.value  # `.to(device)`
    return isinstance(value, ast.Call) and script.names.qualified(value.func) in _MAKERS


def _ratio(script: Script, node: ast.expr, reads: list[ast.expr]) -> ast.BinOp | None:
    """The division of one of these by another that a read stands in, as its numerator."""
    tree = script.names.tree(node)
    below: ast.AST = node
    above = tree.parent.get(node)
    while isinstance(above, ast.expr):
        if is_quotient(above) and below is above.left:
            divisor = {*walk(above.right)}
            return above if any(r in divisor for r in reads) else None
        below, above = above, tree.parent.get(above)
    return None


def _calls_given(script: Script, node: ast.expr) -> Iterable[ast.Call]:
    """Calls that a read is an argument of, or has a part in one."""
    tree = script.names.tree(node)
    below: ast.AST = node
    above = tree.parent.get(node)
    while isinstance(above, ast.expr | ast.keyword | ast.FormattedValue):
        if isinstance(above, ast.Call) and below is not above.func:
            yield above
        below, above = above, tree.parent.get(above)


def _is_told(script: Script, node: ast.expr) -> bool:
    return any(name_of(c) in (*TELLING, *_RECORDING) for c in _calls_given(script, node))


def _goes_nowhere(script: Script, node: ast.expr) -> bool:
    """Whether a read is only computed with, recorded or said."""
    return all(_is_plain(script, call) for call in _calls_given(script, node))


def _is_plain(script: Script, call: ast.Call) -> bool:
    if script.reductions.reduces(call):
        return False
    name = script.names.qualified(call.func) or ""
    if name_of(call) in (*TELLING, *_RECORDING) or any(
        isinstance(t, ast.FunctionDef) and t not in script.graph.class_of for t in script.graph.targets(call)
    ):
        return True
    known = "." not in name or name.partition(".")[0] in _PLAIN
    return bool(name) and known and not name.startswith("torch.distributed")
