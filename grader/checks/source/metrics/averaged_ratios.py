"""Ratios of what a validation loop counted on each rank, and the collective that averages them as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set
from itertools import takewhile

from grader.checks.source.calls.variadic_arguments import handed_to_rest
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import ancestors, end, name_of, start, walk
from grader.checks.source.training_loops import Draw
from grader.checks.source.values.data_flow import reads_after, source_text

_AVERAGING = {
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "all_gather_object",
    "gather_object",
    "all_gather_into_tensor",
}
_HELPERS = (
    "reduce_mean",
    "mean_reduce",
    "average_over",
    "all_mean",
    "reduce_value",
    "average_across",
    "reduce_tensor",
)
_BENDING = {"sqrt", "exp", "log", "log2", "log10", "pow"}
_MEANS = {"mean", "nanmean", "fmean"}
_JOINING = {*_MEANS, "sum", "average", "fsum"}
_GATHERED = ("tensor_list", "object_list", "gather_list", "object_gather_list", "output_tensor")


def ratios_of(script: Script, draw: Draw) -> Iterable[ast.expr]:
    """Ratios and means of what a loop counted on this rank, below it in the same scope."""
    counted = script.reductions.counted(draw)
    tree = script.names.tree(draw.loop)
    scope = tree.scope(draw.loop)
    for name in sorted(counted):
        for load in tree.loads.get(name, ()):
            if tree.scope(load) is not scope or start(load) < end(draw.loop):
                continue
            if script.values.filled.has(load):
                continue  # reduced: all ranks hold the counts of all
            child: ast.AST = load
            above = tree.parent.get(load)
            while isinstance(above, ast.expr):
                if is_quotient(above) and child is above.left:
                    if _local_size(script, above.right, counted):
                        yield above
                    break
                if isinstance(above, ast.Call) and name_of(above) in _MEANS:
                    yield above
                    break
                child, above = above, tree.parent.get(above)


def means_of_batches(script: Script) -> Iterable[ast.AST]:
    """Where a validation loop keeps a mean of each batch instead of a sum: `accuracies.append(right.mean())`."""
    for draw in script.training.draws:
        for node in (n for s in draw.loop.body for n in walk(s)) if draw.evaluates else ():
            added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
            listed = isinstance(node, ast.Call) and name_of(node) == "append"
            kept = [node.value] if isinstance(node, ast.AugAssign) and added else []
            kept += node.args if isinstance(node, ast.Call) and listed else []
            if any(isinstance(k, ast.Call) and name_of(k) in _MEANS for k in kept):
                yield node


def _local_size(script: Script, node: ast.expr, counted: set[str]) -> bool:
    """A number of samples or batches of this rank's own: counted in the loop, or the length of what it went through."""
    for part in walk(node):
        if isinstance(part, ast.Name) and part.id in counted:
            return True
        if isinstance(part, ast.Call) and script.names.qualified(part.func) == "len" and part.args:
            of = script.values.origins(part.args[0])
            if any(o in script.training.loaders() for o in of) or name_of(part.args[0]).endswith("loader"):
                return True
    return False


def averaging(script: Script, ratio: ast.expr) -> ast.Call | None:
    """The reduction that a ratio goes into as it is; None also where it was weighted first."""
    for call, name in script.collectives.direct.items():
        if name not in _AVERAGING:
            continue
        operation = script.argument(call, "op")
        if operation is not None and name_of(operation) in ("MAX", "MIN", "PRODUCT"):
            continue
        given = [a for n in ("tensor", "obj", "input_tensor") if (a := script.argument(call, n)) is not None]
        for argument in given:
            made = _made_of(script, argument)
            if ratio not in made or any(
                _weights(script, n, ratio) or _decides(script, n, ratio) for n in made
            ):
                continue
            if _is_averaged(script, call):
                return call
    for call in script.called_like(lambda name: any(w in name.lower() for w in _HELPERS)):
        helps = not script.graph.targets(call)
        if helps and any(ratio in script.values.closure(a) for a in call.args):
            return call
    return None


def _made_of(script: Script, argument: ast.expr) -> Set[ast.AST]:
    """All that has a part in it, with what helpers take any number of: `average(loss / seen, right / seen)`."""
    made = script.values.closure(argument)
    rest = [a for part in made for a in handed_to_rest(script.names, script.graph, part)]
    return (
        dict.fromkeys([*made, *(n for a in rest for n in script.values.closure(a))]).keys() if rest else made
    )


def _weights(script: Script, node: ast.AST, ratio: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    sides = ((node.left, node.right), (node.right, node.left))
    return any(
        ratio in script.values.closure(side) and script.values.constant(other) is UNKNOWN
        for side, other in sides
    )


def _decides(script: Script, node: ast.AST, ratio: ast.expr) -> bool:
    """Whether a ratio is only compared: ranks that vote average nothing."""
    return isinstance(node, ast.Compare) and ratio in script.values.closure(node)


def _is_averaged(script: Script, call: ast.Call) -> bool:
    """Whether a mean is made of what a collective brings: of what was gathered, where it is added up or divided."""
    given = (a for n in _GATHERED if (a := script.argument(call, n)) is not None)
    gathered = next(given, None)
    if gathered is None or not source_text(gathered):
        return True
    for read in reads_after(script, gathered, call):
        above = script.names.tree(read).parent
        for node in takewhile(lambda n: not isinstance(n, ast.stmt), ancestors(above, read)):
            divides = is_quotient(node)
            if divides or (isinstance(node, ast.Call) and name_of(node) in _JOINING):
                return True
    return False


def bent_before(script: Script, ratio: ast.expr, reduction: ast.Call) -> ast.expr | None:
    """The root, logarithm or power that each rank takes of its own ratio before the ranks average it."""
    given = [a for n in ("tensor", "obj", "input_tensor") if (a := script.argument(reduction, n)) is not None]
    for node in (n for argument in given for n in script.values.closure(argument)):
        power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
        if not power and not (isinstance(node, ast.Call) and name_of(node) in _BENDING):
            continue
        if ratio is not node and isinstance(node, ast.expr) and ratio in script.values.closure(node):
            return node
    return None
