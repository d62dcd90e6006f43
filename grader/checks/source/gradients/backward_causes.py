"""What a text does around `backward` that leaves each rank with gradients of its own: once too often, or of no use."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.causes import CauseInText, went_backward
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of, start, walk
from grader.checks.source.values.data_flow import reads_after

_MAX_DEPTH = 3


def reduced_loss(script: Script) -> CauseInText | None:
    """A loss that is reduced in place before it goes backward: that changes a number, and no gradient."""
    if script.averaging.all:
        return None
    for call, tensor in _reduced_in_place(script):
        tree = script.names.tree(call)
        reads = {*([call] if _gives_back(script, call) else ()), *reads_after(script, tensor, call)}
        reads = {r for r in reads if tree.function(r) is tree.function(call)}
        for loss, backward in zip(went_backward(script), script.training.backwards, strict=True):
            same = tree is script.names.tree(backward) and tree.function(backward) is tree.function(call)
            if not same or reads.isdisjoint({loss, *script.values.closure(loss)}):
                continue
            scaled = sorted({s for r in reads if _divides(script, s := tree.statement(r))}, key=start)
            below = [s for s in scaled if start(s) < start(backward)]
            leave = " and ".join(f"{script.quote(n)} ({script.at(n)})" for n in (call, *below))
            return CauseInText(
                (call, *below),
                f"{script.at(call)} averages the loss, not the gradients: `backward` at {script.at(backward)} knows "
                "nothing of a collective that works in place, and still gives those of the rank's own batch.",
                "Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, train through it, "
                f"and leave out {leave}{': ' if below else '. '}"
                + ("a loss that is divided makes all gradients smaller. " if below else "")
                + "To print the mean over the ranks, reduce a copy, `loss.detach().clone()`.",
            )
    return None


def _reduced_in_place(script: Script) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Reductions with their tensors, and calls of the script's own functions that reduce what they are given."""
    work = [(call, tensor) for call, name, tensor in reductions(script) if name == "all_reduce"]
    for _ in range(_MAX_DEPTH):
        yield from work
        work = [above for call, tensor in work for above in _handed_in(script, call, tensor)]


def _handed_in(script: Script, call: ast.Call, tensor: ast.expr) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Calls of the function around a reduction, each with the variable that it reduces there."""
    function = script.names.tree(call).function(call)
    if function is None or not isinstance(tensor, ast.Name):
        return
    if any(d.kind != "parameter" for d in script.scopes.reaching(tensor.id, tensor)):
        return
    for site in script.graph.sites(function):
        given = script.graph.bound(site, function, tensor.id)
        if isinstance(given, ast.Name | ast.Attribute):
            yield site.call, given


def _gives_back(script: Script, call: ast.Call) -> bool:
    """Whether a call of a function of the script gives back what it was given."""
    for function in script.graph.targets(call):
        if isinstance(function, FUNCTIONS):
            own = {a.arg for a in function.args.args}
            returned = script.names.tree(function).returns.get(function, ())
            if any(isinstance(r.value, ast.Name) and r.value.id in own for r in returned):
                return True
    return False


def _divides(script: Script, statement: ast.stmt) -> bool:
    """Whether a statement divides by the number of ranks."""
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Div) and bool(script.ranks.world(statement.value))
    divisions = (n for n in walk(statement) if is_quotient(n))
    return isinstance(statement, ast.Assign) and any(script.ranks.world(n.right) for n in divisions)


def second_backward(script: Script) -> CauseInText | None:
    """Another backward pass after the same forward pass of a wrapper, which averages in the first one alone."""
    for first in script.training.backwards:
        tree = script.names.tree(first)
        retained = any(
            k.arg == "retain_graph" and script.values.constant(k.value) is True for k in first.keywords
        )
        block = getattr(tree.parent.get(tree.statement(first)), "body", [])
        if not retained or tree.statement(first) not in block:
            continue
        for statement in block[block.index(tree.statement(first)) + 1 :]:
            second = next((b for b in script.training.backwards if tree.statement(b) is statement), None)
            if second is not None:
                return _again(script, first, second)
            if any(script.training.wrapped(c.func) for c in tree.calls_within(statement)):
                break
    return None


def _again(script: Script, first: ast.Call, second: ast.Call) -> CauseInText:
    one, other = (called_on(b) or b for b in (first, second))
    hint = f"Leave out {script.quote(second)} at {script.at(second)}: one backward pass per step."
    if ast.unparse(one) != ast.unparse(other) and name_of(one) and name_of(other):
        hint = (
            f"Go backward once, from the sum: `({ast.unparse(one)} + {ast.unparse(other)}).backward()` at "
            f"{script.at(second)}, and leave out {script.quote(first)} at {script.at(first)}."
        )
    return CauseInText(
        (second, first),
        f"{script.at(second)} goes backward a second time after one forward pass. DDP averages in the first backward "
        "pass alone: what the second one gives is each rank's own, and is added to the average.",
        hint,
    )
