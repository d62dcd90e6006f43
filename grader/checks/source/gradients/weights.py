"""With which weights a script adds up its ranks' gradients by hand, and where: divisions, sums without a weight.

Asked only where a scorer has found the sum to be wrong; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.causes import by_world, made_of_rank, sums_over_samples
from grader.checks.source.collectives.collective_calls import COMMON_REDUCING
from grader.checks.source.gradients.averaging import Average
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.metrics.recorded_losses import Cause, losses
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient, is_scaled, scales
from grader.checks.source.syntax.nodes import start
from grader.checks.source.values.data_flow import reads_after

SUM_FORMULA = (
    "The whole batch's gradient is the sum of m/n times each rank's own: m samples of its share, n of the batch. "
    "With that weight nothing is divided afterwards."
)
"""What is right, for all scripts."""


def sums(script: Script) -> tuple[Average, ...]:
    """The exchanges of gradients: where they are so by name, or else where what is sent was made of some."""
    return script.averaging.all or tuple(
        Average(call, tensor, False)
        for call in script.called(*COMMON_REDUCING)
        for tensor in call.args[:2]
        if any(map(reads_gradient, script.values.closure(tensor)))
    )


def _divisions(script: Script) -> list[ast.AST]:
    """Where gradients are divided, before or after they are summed."""
    found: list[ast.AST] = []
    for average in sums(script):
        tree = script.names.tree(average.call)
        for node in script.values.closure(average.tensor):
            divides = is_quotient(node)
            if divides and isinstance(node, ast.BinOp) and any(map(reads_gradient, ast.walk(node.left))):
                found.append(node)
        found += [n for n in by_world(script, average.tensor) if isinstance(n, ast.BinOp | ast.AugAssign)]
        for read in reads_after(script, average.tensor, average.call):
            above = tree.parent.get(read)
            if isinstance(above, ast.BinOp | ast.AugAssign) and isinstance(above.op, ast.Div):
                found.append(above)
    return list(dict.fromkeys(found))


def _undone(script: Script, division: ast.AST) -> str:
    if is_quotient(division):
        return f"Write `{ast.unparse(division.left)}` for {script.quote(division)}"
    return f"Leave out {script.quote(division)}"


def divided(script: Script) -> Cause | None:
    """A sum of weighted parts that is divided once more."""
    divisions = _divisions(script)
    means = [a.call for a in script.averaging.all if a.mean]
    if not divisions and not means:
        return None
    what = (
        f"Leave out {script.quote(divisions[0])}"
        if divisions
        else f"Sum in {script.quote(means[0])}, without `AVG`"
    )
    return Cause((*divisions, *means), f"{what}: the weights m/n of all ranks add up to 1 already.")


def multiplied(script: Script) -> Cause | None:
    """A sum over samples where the mean was meant, or a division that is one too many."""
    sums = list(sums_over_samples(script))
    sums += [
        n
        for loss in losses(script)
        for n in script.values.closure(loss)
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "sum"
    ]
    if not sums:
        return divided(script)
    return Cause(
        tuple(dict.fromkeys(sums)),
        f"{script.quote(sums[0])} is a sum: divide it by the number of elements that the whole batch's mean goes over.",
    )


def alone(script: Script) -> Cause | None:
    """A sum over the ranks whose result is not what is kept."""
    calls = tuple(a.call for a in sums(script))
    if not calls:
        return None
    return Cause(
        calls, f"Keep the tensor that {script.quote(calls[0])} was given: the sum stands in it afterwards."
    )


def unweighted(script: Script) -> Cause | None:
    """How the ranks' gradients are added up: the division that should not be, the sum that lacks its weights."""
    averages = sums(script)
    if not averages:
        return _differentiated(script)
    if late := _weighted_late(script, averages):
        return late
    divisions, means = _divisions(script), [a.call for a in averages if a.mean]
    nodes = tuple(dict.fromkeys((*divisions, *means, averages[0].call)))
    weight = _weight(script)
    if weight is None:
        return Cause(nodes, SUM_FORMULA)
    after = f" {_undone(script, divisions[0])}." if divisions else ""
    after = after or (f" Sum in {script.quote(means[0])}, without `AVG`." if means else "")
    return Cause(
        nodes,
        f"Weigh each rank's part by its samples: write `{weight[0]}` for {script.quote(weight[1])}.{after}",
    )


def of_some(script: Script) -> Cause | None:
    """What scales the gradients of some parameters alone, before or after the sum."""
    tree_of = script.names.tree
    scaled = _divisions(script)
    under = [n for n in scaled if isinstance(tree_of(n).parent.get(tree_of(n).statement(n)), ast.If)]
    if not under:
        return None
    branch = tree_of(under[0]).parent.get(tree_of(under[0]).statement(under[0]))
    assert isinstance(branch, ast.If), "it was looked for"
    told = f"which `if {ast.unparse(branch.test)}:` does to some parameters only"
    return Cause(
        (under[0],), f"{_undone(script, under[0])}, {told}: all of them are summed with the same weights."
    )


def _weighted_late(script: Script, averages: tuple[Average, ...]) -> Cause | None:
    """The weight of the rank's own share is put on the sum, so that all parts get that of the rank that keeps it."""
    for average in averages:
        tree, held = script.names.tree(average.call), ast.unparse(average.tensor)
        for read in reads_after(script, average.tensor, average.call):
            product, factors = _product(tree.parent, read)
            if factors and any(of_own_share(script, factor) for _, factor in factors):
                weight = _as_written(factors)
                return Cause(
                    (product, average.call),
                    f"Weigh each part before the sum: put `{held} *= {weight}` above {script.quote(average.call)} "
                    f"({script.at(average.call)}), and write `{ast.unparse(read)}` for {script.quote(product)}.",
                )
        function = tree.function(average.call)
        for node in ast.walk(function or tree.root):
            if not scales(node) or ast.unparse(node.target) != held:
                continue
            if start(node) > start(average.call) and of_own_share(script, node.value):
                return Cause(
                    (node, average.call),
                    f"Weigh each part before the sum: move {script.quote(node)} from {script.at(node)} above "
                    f"{script.quote(average.call)} ({script.at(average.call)}).",
                )
    return None


def _product(
    parent: dict[ast.AST, ast.AST], read: ast.expr
) -> tuple[ast.expr, list[tuple[ast.operator, ast.expr]]]:
    """The product that a read begins, and what it is multiplied with or divided by."""
    product, factors, above = read, list[tuple[ast.operator, ast.expr]](), parent.get(read)
    while is_scaled(above):
        if above.left is product:
            factors.append((above.op, above.right))
        elif isinstance(above.op, ast.Mult):
            factors.append((above.op, above.left))
        else:
            break
        product, above = above, parent.get(above)
    return product, factors


def _as_written(factors: list[tuple[ast.operator, ast.expr]]) -> str:
    written = {True: list[str](), False: list[str]()}
    for operator, factor in factors:
        text = ast.unparse(factor)
        written[isinstance(operator, ast.Mult)].append(f"({text})" if isinstance(factor, ast.BinOp) else text)
    return " / ".join([" * ".join(written[True]) or "1", *written[False]])


def of_own_share(script: Script, factor: ast.expr) -> bool:
    """Whether a factor counts this rank's own samples: another one on each rank, and not their number."""
    return not script.ranks.world(factor) and made_of_rank(script, factor)


def _weight(script: Script) -> tuple[str, ast.Call] | None:
    """`(loss * (len(x) / len(inputs))).backward()` in the script's own names, and the call that it stands for."""
    for backward in script.training.backwards:
        loss = called_on(backward)
        if not isinstance(loss, ast.Name | ast.Attribute) or backward.args:
            continue
        for call in script.updates.forwards(backward):
            given = call.args[0] if call.args else None
            made = script.values.origins(call.func)
            if given is None or not any(isinstance(o, ast.Call | ast.arg) for o in made):
                continue  # a function, no network
            for origin in script.values.origins(given) if isinstance(given, ast.Name) else (given,):
                if isinstance(origin, ast.Subscript) and isinstance(origin.value, ast.Name | ast.Attribute):
                    weight = f"len({ast.unparse(given)}) / len({ast.unparse(origin.value)})"
                    return f"({ast.unparse(loss)} * ({weight})).backward()", backward
    return None


def _differentiated(script: Script) -> Cause | None:
    """Where gradients are brought together by other means: the factor of what is differentiated, or that itself."""
    for loss in losses(script):
        for origin in (loss, *script.values.origins(loss)):
            if is_scaled(origin):
                made = [o for o in script.values.origins(origin.right) if isinstance(o, ast.BinOp)]
                quoted = script.quote(made[0] if made else origin)
                return Cause((*made, origin), f"{quoted} decides how much this rank counts. {SUM_FORMULA}")
    weight = _weight(script)
    if weight is not None:
        advice = f"Weigh each rank's part by its samples: write `{weight[0]}` for {script.quote(weight[1])}."
        return Cause((weight[1],), advice)
    return None
