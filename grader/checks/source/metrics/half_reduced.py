"""Ratios of two sums of one loop, of which a reduction brought only one together: the whole set's over one rank's.

Claims nothing where the other one may be brought together as well, or where the ratio is set right further down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from grader.checks.source.causes import names_world
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import LOOPS, Loop, ancestors, end, name_of, start, walk
from grader.checks.source.values.data_flow import reads_after

_OF_A_TENSOR = ("item", "float", "double", "cpu", "detach", "clone", "clamp")
_OF_A_NUMBER = ("float", "int", "max")


@dataclass(frozen=True, slots=True)
class HalfReduced:
    """A division, the reduction of one of its sides, and the other side, which is this rank's own."""

    ratio: ast.BinOp
    call: ast.Call
    reduced: ast.expr
    own: ast.expr

    @property
    def hint(self) -> str:
        """What to write instead of the reduction of one side."""
        one, other = (ast.unparse(side) for side in (self.reduced, self.own))
        both = {
            ast.unparse(s.value) if isinstance(s, ast.Subscript) else "" for s in (self.reduced, self.own)
        }
        if len(both) == 1 and (tensor := both.pop()):
            whole = ast.unparse(self.call).replace(one, tensor, 1)
            return f"Reduce the whole tensor, `{whole}`, before the ratio is taken."
        return f"Put both into one tensor, `torch.tensor([{one}, {other}])`, reduce that, and divide its elements."


def half_reduced(script: Script) -> Iterable[HalfReduced]:
    """Each such division, once."""
    found: dict[ast.BinOp, HalfReduced] = {}
    for call, name, tensor in reductions(script):
        tree = script.names.tree(call)
        scope = tree.scope(call)
        operation = script.argument(call, "op")
        sums = operation is None or name_of(operation) == "SUM"
        if name == "broadcast" or not sums or not isinstance(tensor, ast.Name | ast.Subscript):
            continue
        inside = [n for n in walk(scope) if tree.scope(n) is scope]
        summed = _put_into(script, tensor, call)
        loop, others = _summed_together(script, inside, call, ast.unparse(summed))
        for ratio in (n for n in inside if is_quotient(n)):
            sides = (_plain(ratio.left), _plain(ratio.right))
            texts = [ast.unparse(side) for side in sides]
            if start(ratio) < end(call) or ast.unparse(tensor) not in texts:
                continue
            own = sides[texts.index(ast.unparse(tensor)) - 1]
            if loop is None or ast.unparse(own) not in others:
                continue
            names = [n for n in inside if isinstance(n, ast.Name) and end(loop) < start(n) < start(ratio)]
            if (
                summed is not tensor
            ):  # where the sum is put into the tensor, the tensor is written, and not changed
                names = [n for n in names if tree.statement(n) is not tree.statement(summed)]
            again = [
                n for n in inside if isinstance(n, ast.Name) and tree.inside(n, loop) and _reduced(script, n)
            ]
            if any(_changes(script, n, own, tensor, call) for n in names) or again:
                continue
            if not _set_right(script, tensor, call, ratio):
                found.setdefault(ratio, HalfReduced(ratio, call, summed, own))
    return found.values()


def _put_into(script: Script, tensor: ast.Name | ast.Subscript, call: ast.Call) -> ast.expr:
    """The sum that a tensor was made of for the reduction, `torch.tensor(loss_sum)`; else the tensor itself."""
    made = script.scopes.reaching(tensor.id, call) if isinstance(tensor, ast.Name) else ()
    value = made[0].value if len(made) == 1 and made[0].kind == "assign" else None
    if not isinstance(value, ast.Call) or not value.args:
        return tensor
    if script.names.qualified(value.func) not in ("torch.tensor", "torch.as_tensor"):
        return tensor
    given = value.args[0]
    if isinstance(given, ast.List) and len(given.elts) == 1:
        given = given.elts[0]
    return given if isinstance(given, ast.Name | ast.Attribute) else tensor


def _summed_together(
    script: Script, inside: list[ast.AST], call: ast.Call, reduced: str
) -> tuple[Loop | None, set[str]]:
    """The loop, over before the call, that adds up what is reduced, and what else it adds up."""
    tree = script.names.tree(call)
    for loop in (n for n in inside if isinstance(n, LOOPS) and end(n) < start(call)):
        added = {
            ast.unparse(n.target)
            for n in inside
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and tree.inside(n, loop)
        }
        if reduced in added:
            return loop, added - {reduced}
    return None, set()


def _plain(node: ast.expr) -> ast.expr:
    """`x` of `x.item()`, `float(x)` and `max(x, 1)`."""
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_A_TENSOR:
            node = node.func.value
        elif isinstance(node.func, ast.Name) and node.func.id in _OF_A_NUMBER and node.args:
            node = node.args[0]
        else:
            break
    return node


def _changes(script: Script, node: ast.Name, own: ast.expr, reduced: ast.expr, call: ast.Call) -> bool:
    """Whether a line between the loop and the ratio may bring together, or change, a side that one rank has."""
    tree = script.names.tree(node)
    part, written = tree.parent.get(node), not isinstance(node.ctx, ast.Load)
    if isinstance(part, ast.Subscript) and part.value is node:
        written = not isinstance(part.ctx, ast.Load)
    else:
        part = node
    text = ast.unparse(part)
    if text == ast.unparse(reduced):
        return written and not tree.inside(node, call)
    # Another element of the same tensor is a figure of its own; the whole of it has both sides in it.
    base = {ast.unparse(s.value) if isinstance(s, ast.Subscript) else "" for s in (own, reduced)}
    return text == ast.unparse(own) or text in base


def _reduced(script: Script, node: ast.Name) -> bool:
    above = ancestors(script.names.tree(node).parent, node)
    calls = takewhile(lambda n: not isinstance(n, ast.stmt), above)
    return any(isinstance(c, ast.Call) and script.reductions.reduces(c) for c in calls)


def _set_right(script: Script, tensor: ast.expr, call: ast.Call, ratio: ast.BinOp) -> bool:
    """Whether the number of ranks comes into what is made of it, or another reduction does."""
    for read in [ratio, *reads_after(script, tensor, call)]:
        tree = script.names.tree(read)
        statement = tree.statement(read)
        if names_world(script, statement):
            return True
        calls = [n for n in ancestors(tree.parent, read) if isinstance(n, ast.Call)]
        if any(c is not call and script.reductions.reduces(c) for c in calls):
            return True
    return False
