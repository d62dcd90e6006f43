"""Iterators that a training loop begins anew for every step: `next(iter(loader))` gives the first batch each time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.phrases import listed
from grader.checks.source.causes import stands_at, went_backward
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import FUNCTIONS, VARIABLES, Loop, name_of, names_in
from grader.checks.source.training_loops import DATA_LOADER
from grader.model.call_site import Site


@dataclass(frozen=True, slots=True)
class ReopenedLoader:
    """A step that takes its batch from a new iterator.

    Attributes:
        begins: makes the iterator, perhaps in a helper. loader: what it goes over, as it is written in the step.
        takes: the expression in the loop whose value is the batch. loop: the loop of steps.
    """

    begins: ast.Call
    loader: ast.expr
    takes: ast.expr
    loop: Loop

    @property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Its lines, the one that begins the iterator first."""
        return (self.begins, self.takes)


def reopened_loaders(script: Script) -> Iterator[ReopenedLoader]:
    """All of them whose batches go backward: other looks at a loader's first batch are none of the training's."""
    trained = {node for loss in went_backward(script) for node in script.values.closure(loss)}
    for call in (*script.called("iter"), *script.called("__iter__")):
        over = _gone_over(call)
        taken = _taken(script, call) if over is not None else None
        if over is None or taken is None:
            continue
        for loader, takes in ((over, taken), *_called_for(script, over, taken)):
            loops = script.updates.loops_around(takes)
            fed = taken in trained or _handed_to_training(script, takes)
            if loops and fed and any(_is_loader(script, made) for made in script.values.origins(loader)):
                yield ReopenedLoader(call, loader, takes, loops[0])


def reopened_at(script: Script, site: Site | None) -> ReopenedLoader | None:
    """The one whose iterators a run saw begin at a place."""
    return next((one for one in reopened_loaders(script) if stands_at(script, one.begins, site)), None)


def first_batch_again(script: Script) -> Iterator[ReopenedLoader]:
    """Those whose order is the same each time: a sampler shuffles by an epoch that is not told in between."""
    told = script.called("set_epoch")
    for one in reopened_loaders(script):
        tree = script.names.tree(one.loop)
        loaders = [o for o in script.values.origins(one.loader) if isinstance(o, ast.Call)]
        steady = loaders and all(
            script.training.distributed_samplers(o) for o in loaders if _is_loader(script, o)
        )
        if steady and not any(script.names.tree(c) is tree and tree.inside(c, one.loop) for c in told):
            yield one


def gone_through(script: Script, one: ReopenedLoader | None) -> str:
    """What to write in its place."""
    if one is None:
        return "Begin one iterator for each epoch: `for x, y in loader:` goes through all of its batches."
    loader = node_text(script, one.loader) if isinstance(one.loader, VARIABLES) else "loader"
    tree = script.names.tree(one.takes)
    statement = tree.statement(one.takes)
    assigned = (
        isinstance(statement, ast.Assign) and statement.value is one.takes and len(statement.targets) == 1
    )
    target = statement.targets[0] if assigned and isinstance(statement, ast.Assign) else None
    batch = node_text(script, target).strip("()") if target is not None else "batch"
    header = f"for {batch} in {loader}:"
    if isinstance(one.loop, ast.For) and isinstance(one.loop.target, ast.Name):
        number = one.loop.target.id
        used = any(number in names_in(s) for s in one.loop.body)
        several = isinstance(target, ast.Tuple | ast.List)
        counted = f"for {number}, {f'({batch})' if several else batch} in enumerate({loader}):"
        header = counted if used else header
    loop = f"in place of the loop's head at {script.at(one.loop)}"
    begun = tree.statement(one.begins) if script.names.tree(one.begins) is tree else statement
    needless = [s for s in (begun, statement) if tree.inside(s, one.loop)]
    out = f", and give the step `{batch}` for {script.quote(one.takes)} at {script.at(one.takes)}"
    if target is not None:
        told = [f"{script.quote(s)} at {script.at(s)}" for s in dict.fromkeys(needless)]
        out = f", and leave out {listed(told)}"
    return (
        f"Begin one iterator for each epoch: write `{header}` {loop}{out}. The loop then goes through all batches, and "
        "ends with them."
    )


def _gone_over(call: ast.Call) -> ast.expr | None:
    """`loader` of `iter(loader)` and `loader.__iter__()`."""
    if isinstance(call.func, ast.Name):
        return call.args[0] if len(call.args) == 1 else None
    return call.func.value if isinstance(call.func, ast.Attribute) and not call.args else None


def _taken(script: Script, begins: ast.Call) -> ast.expr | None:
    """What takes the first batch of an iterator, in the round that begins it."""
    tree = script.names.tree(begins)
    above = tree.parent.get(begins)
    if isinstance(above, ast.Call) and name_of(above) == "next" and begins in above.args:
        return above
    if isinstance(above, ast.Attribute) and above.attr == "__next__":
        call = tree.parent.get(above)
        return call if isinstance(call, ast.Call) else None
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Name):
        return None
    around = script.updates.loops_around(begins)[:1]
    reads = [n for n in tree.loads.get(above.targets[0].id, ()) if tree.scope(n) is tree.scope(begins)]
    takes = [c for c in map(tree.parent.get, reads) if isinstance(c, ast.Call) and name_of(c) == "next"]
    near = len(takes) == len(reads) == 1 and script.updates.loops_around(takes[0])[:1] == around
    return takes[0] if near else None


def _called_for(script: Script, over: ast.expr, taken: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Calls of a function that hands on such a batch, `return next(iter(loader))`, each with the loader it is given."""
    tree = script.names.tree(taken)
    function = tree.function(taken)
    if not isinstance(function, FUNCTIONS) or script.updates.loops_around(taken):
        return
    for site in script.graph.sites(function):
        given = script.graph.bound(site, function, over.id) if isinstance(over, ast.Name) else None
        yield (given if isinstance(given, ast.expr) and given is not UNKNOWN else over), site.call


def _handed_to_training(script: Script, takes: ast.expr) -> bool:
    """Whether a batch goes as it is into a call that runs `backward`, `train_step(*next(batches))`."""
    tree = script.names.tree(takes)
    above = tree.parent.get(takes)
    call = tree.parent.get(above) if isinstance(above, ast.Starred) else above
    return isinstance(call, ast.Call) and script.training.runs_backward(call)


def _is_loader(script: Script, made: ast.AST) -> bool:
    return isinstance(made, ast.Call) and script.names.qualified(made.func) == DATA_LOADER
