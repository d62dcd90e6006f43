"""What keeps the first epoch although the script goes on to the next: `itertools.cycle`, and workers that live on.

`itertools.cycle` begins no second pass: it stores what the first one gave. A worker that persists works with the copy
of the data set that it was started with: what the main process writes into its own afterwards stays there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import walk

_CYCLE = "itertools.cycle"
_SETUP = ("__init__", "__len__")
_SAMPLER = (
    " Or let a sampler of the main process deal the samples out, and the data set hold all of them in one order: "
    "`sampler = DistributedSampler(whole_set)`, and `sampler.set_epoch(epoch)` in each epoch."
)


def cycled_loaders(script: Script) -> Iterable[CauseInText]:
    """Calls of `itertools.cycle` that are given a loader which shuffles."""
    for call in script.calls(_CYCLE):
        made = script.values.origins(call.args[0]) if call.args else ()
        if not any(loader in made and _shuffles(script, loader) for loader in script.training.loaders()):
            continue
        given = node_text(script, call.args[0])
        yield CauseInText(
            (call,),
            f"{script.at(call)} gives the loader to `itertools.cycle`, which goes through it once, keeps every batch, "
            "and gives the same ones again for ever: no later epoch draws anything, and `set_epoch` changes nothing.",
            "Begin a new pass each time: write "
            f"`itertools.chain.from_iterable(itertools.repeat({given}))` in place of {script.quote(call)} (with "
            "`import itertools`), and call `set_epoch(epoch)` on the sampler before each epoch's first batch.",
        )


def stale_copies(script: Script, loader: ast.Call) -> Iterable[CauseInText]:
    """Fields of a loader's data set that are set in the loop over epochs, where workers that persist can't see it."""
    workers = script.argument(loader, "num_workers")
    persists = script.values.constant(script.argument(loader, "persistent_workers")) is True
    given = script.argument(loader, "dataset")
    if (
        not persists
        or workers is None
        or script.values.constant(workers) == 0
        or not isinstance(given, ast.expr)
    ):
        return
    for made in script.values.origins(given):
        owner = script.graph.built_class(made)
        read = _read_by_workers(owner) if owner is not None else {}
        for setter, written in _set_later(script, made, owner) if owner is not None else ():
            field = next((name for name in written if name in read), None)
            if field is None or not script.training.repeated(setter):
                continue
            yield CauseInText(
                (setter, read[field], loader),
                f"{script.at(setter)} sets the data set's `{field}` in the main process. The workers of the loader at "
                f"{script.at(loader)} live on (`persistent_workers=True`) and work with the copy that they were "
                f"started with: {script.at(read[field])} reads its first value for ever.",
                f"Leave `persistent_workers=True` out at {script.at(loader)}, so that each epoch starts workers with "
                f"the data set as it is then.{'' if script.sharding.iterable(loader) else _SAMPLER}",
            )


def _shuffles(script: Script, loader: ast.Call) -> bool:
    roles = script.training.roles(loader)
    if roles.evaluates and not roles.trains:
        return False
    shuffle = script.argument(loader, "shuffle")
    if shuffle is not None and script.values.constant(shuffle) is True:
        return True
    told = [script.argument(s, "shuffle") for s in script.training.distributed_samplers(loader)]
    return any(one is None or script.values.constant(one) is True for one in told)


def _read_by_workers(owner: ast.ClassDef) -> dict[str, ast.AST]:
    """Fields that a data set reads where it is asked for samples, each with its first place there."""
    found: dict[str, ast.AST] = {}
    for part in owner.body:
        if isinstance(part, ast.FunctionDef) and part.name not in _SETUP:
            for node in walk(part):
                if field := _own_field(node, ast.Load):
                    found.setdefault(field, node)
    return found


def _set_later(script: Script, made: ast.AST, owner: ast.ClassDef) -> Iterable[tuple[ast.AST, set[str]]]:
    """Statements and calls that write fields of one object from outside its class, each with the fields."""
    for tree in script.trees:
        for node in walk(tree.root):
            stored = node if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else None
            if stored is not None and made in script.values.origins(stored.value):
                yield tree.statement(stored), {stored.attr}
    for method in (m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name not in _SETUP):
        fields = {field for n in walk(method) if (field := _own_field(n, ast.Store))}
        for call in script.called(method.name) if fields else ():
            if isinstance(call.func, ast.Attribute) and made in script.values.origins(call.func.value):
                yield call, fields


def _own_field(node: ast.AST, context: type[ast.expr_context]) -> str:
    """The name in `self.name`, where it is read or written as asked; "" for anything else."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, context):
        return ""
    return node.attr if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
