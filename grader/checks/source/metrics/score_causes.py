"""What in the text makes a reported figure another than that of the saved weights.

Asked only where the scorer has found that it is another; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from itertools import chain

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.metrics.rank_major_orders import in_order_of_ranks
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.reported_figures import asked_for, parts_of
from grader.checks.source.metrics.unreset_meters import unreset_meters
from grader.checks.source.models.weight_changes import weight_changes
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors

_HOLDING = (
    "parameters",
    "named_parameters",
    "state_dict",
    "buffers",
    "named_buffers",
    "module",
    "weight",
    "bias",
)

_FILLING = ("numpy.pad", "numpy.resize", "torch.nn.functional.pad")


def score_cause(script: Script, names: Collection[str], *, in_blocks: bool = False) -> Cause | None:
    """The likeliest one that the text shows for what is reported by one of these names; None where it shows none.

    `in_blocks`: the run has shown that the ranks' shares stand one behind the other in the data set.
    """
    figure = parts_of(script, names)
    causes = chain(
        () if in_blocks else in_order_of_ranks(script, figure),
        unreset_meters(script, figure),
        _full_batches(script),
        _full_batches_added(script),
        _updated_on_some_ranks(script, asked_for(script, names)),
        _changed_on_some_ranks(script, figure),
    )
    return next(causes, None)


def fillings(script: Script, names: Collection[str]) -> list[ast.Call]:
    """Calls that make what is scored longer than it is, where a figure is made of what they give."""
    figure = parts_of(script, names)
    made = {t for p in figure if isinstance(p, ast.Call) for t in script.graph.targets(p)}
    longer = (
        call for tree in script.trees for call in tree.called(*{n.rpartition(".")[2] for n in _FILLING})
    )
    return [
        call
        for call in longer
        if script.names.qualified(call.func) in _FILLING
        and (call in figure or script.names.tree(call).function(call) in made)
    ]


def _full_batches(script: Script) -> Iterable[Cause]:
    """`len(loader) * loader.batch_size` as the number of samples: a last batch that is smaller counts as a whole."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _of_one_loader(node):
                yield Cause(
                    (node,),
                    f"Count the samples that were scored, `count += len(labels)` for each batch, instead of "
                    f"{script.quote(node)} at {script.at(node)}: the last batch may be smaller than the others.",
                )


def _full_batches_added(script: Script) -> Iterable[Cause]:
    """`count += loader.batch_size` for each batch of a validation loop, the last and smaller one among them."""
    for draw in script.training.draws:
        target = draw.loop.target if isinstance(draw.loop, ast.For | ast.AsyncFor) else None
        counted = script.reductions.counted(draw) if draw.evaluates and target is not None else set()
        last = target.elts[-1] if isinstance(target, ast.Tuple) else target
        for node in (n for s in draw.loop.body for n in ast.walk(s)) if counted else ():
            grows = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
            for part in ast.walk(node.value) if grows and isinstance(node, ast.AugAssign) else ():
                if _is_batch_size(script, part, draw.loaders) and last is not None:
                    yield Cause(
                        (part,),
                        f"Count the samples of each batch, `len({ast.unparse(last)})` instead of {script.quote(part)} "
                        f"at {script.at(part)}: the last batch may be smaller than the others.",
                    )


def _is_batch_size(script: Script, node: ast.AST, loaders: Iterable[ast.Call]) -> bool:
    """Whether a value is how many samples a loader puts into a full batch."""
    if isinstance(node, ast.Attribute) and node.attr == "batch_size":
        return any(loader in script.values.origins(node.value) for loader in loaders)
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    given = [
        size for loader in loaders if isinstance(size := script.argument(loader, "batch_size"), ast.expr)
    ]
    return any(
        ast.unparse(size) == ast.unparse(node) and script.values.origins(size) == script.values.origins(node)
        for size in given
    )


def _of_one_loader(product: ast.BinOp) -> bool:
    sides = {ast.unparse(product.left), ast.unparse(product.right)}
    sizes = [side for side in sides if side.endswith(".batch_size")]
    return any(f"len({size.removesuffix('.batch_size')})" in sides for size in sizes)


def _updated_on_some_ranks(script: Script, asked: list[ast.Call]) -> Iterable[Cause]:
    """`if rank == 0: average.update(model)`, and all ranks score their share with `average`."""
    if any(script.guards.partial(call) for call in asked):
        return
    scored = {
        name.id
        for call in asked
        for given in arguments_of(call)
        for name in ast.walk(given)
        if isinstance(name, ast.Name)
    }
    for call in script.all_calls():
        func = call.func
        if (
            not isinstance(func, ast.Attribute)
            or not isinstance(func.value, ast.Name)
            or func.value.id not in scored
            or func.attr in _HOLDING
            or script.names.qualified(func.value) is not None  # a module holds nothing that is scored with
        ):
            continue
        guard = script.guards.partial(call)
        if guard is not None:
            yield Cause(
                (call, guard.test),
                f"Let all ranks run {script.quote(call)} at {script.at(call)}, outside of `if "
                f"{ast.unparse(guard.test)}:`: every rank scores its share with `{func.value.id}`.",
            )


def _changed_on_some_ranks(script: Script, figure: Collection[ast.AST]) -> Iterable[Cause]:
    """The same by hand: weights of what all ranks score with, written to under a test of the rank."""
    made = set(figure)
    given = (a for n in figure if isinstance(n, ast.Call) and script.graph.targets(n) for a in n.args)
    named = {n.id for n in given if isinstance(n, ast.Name)}
    for node, owner in weight_changes(script):
        guard = script.guards.partial(node)
        held = _weights_of(script, owner) if guard is not None else []
        if guard is not None and any(
            one.id in named or made & set(script.values.origins(one)) for one in held
        ):
            changed = _outermost(script, node, guard.test)
            yield Cause(
                (guard.test, node),
                f"Let all ranks run {script.quote(changed)} at {script.at(changed)}, outside of `if "
                f"{ast.unparse(guard.test)}:`: every rank scores its share with what it holds, and on the others that "
                "is still what it was.",
            )


def _weights_of(script: Script, owner: ast.expr) -> list[ast.Name]:
    """The networks that a tensor is of: `net` of `for t in net.parameters()`."""
    asked = (
        n.value
        for n in (owner, *script.values.closure(owner))
        if isinstance(n, ast.Attribute) and n.attr in _HOLDING
    )
    return [n for n in (owner, *asked) if isinstance(n, ast.Name)]


def _outermost(script: Script, node: ast.AST, test: ast.AST) -> ast.AST:
    """The statement of a test's own block that a node belongs to."""
    tree = script.names.tree(node)
    below = tree.statement(node)
    for above in ancestors(tree.parent, below):
        if isinstance(above, ast.If) and above.test is test:
            break
        below = above if isinstance(above, ast.stmt) else below
    return below
