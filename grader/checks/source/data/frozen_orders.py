"""Orders that a script reads once and then goes by in every epoch: `list(sampler)`, or indices that are drawn once.

Like `causes`, it answers with nodes, the likeliest first; that an order was repeated, the run or another rule says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.data.epoch_numbers import drawn_again
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.training_loops import SAMPLER

_KEEPING = {
    "list", "tuple", "sorted", "numpy.array", "numpy.asarray", "numpy.fromiter", "torch.tensor", "torch.as_tensor",
    "torch.LongTensor",
}  # fmt: skip
_BATCHES = "torch.utils.data.BatchSampler"
_DRAWS = {"torch.randperm", "numpy.random.permutation", "random.sample"}


def frozen_in_training(script: Script) -> Iterable[CauseInText]:
    """Such lists for all training loaders that ranks go through several times."""
    loaders = script.training.loaders() if script.joins_group and not script.training.framework else ()
    for loader in loaders:
        if script.training.roles(loader).trains and drawn_again(script, loader):
            yield from frozen_orders(script, loader)


def frozen_orders(script: Script, loader: ast.Call | None) -> Iterable[CauseInText]:
    """Lists of what a sampler gives that are made once, for a loader that is gone through in several epochs."""
    if loader is None:
        return
    for part in ("batch_sampler", "sampler", "dataset"):
        for kept, sampler in _lists(script, loader, part):
            whole, place = script.quote(kept), script.at(kept)
            told = next((c for c in script.called("set_epoch") if isinstance(c.func, ast.Attribute)), None)
            vain = f", and `set_epoch` at {script.at(told)} changes nothing in it" if told is not None else ""
            tell = "" if told is not None else ", and call `set_epoch(epoch)` on it before each epoch"
            read = (
                node_text(script, sampler) if isinstance(sampler, ast.Name | ast.Attribute) else "the sampler"
            )
            name = read if read == "the sampler" else f"`{read}`"
            if part != "dataset" and _goes_through(script, loader, kept, part):
                hint = (
                    f"Write {name} in place of {whole} at {place}: a sampler itself is gone through anew in each "
                    f"epoch, in the order of that epoch{tell}."
                )
            else:
                hint = (
                    f"Give the loader all samples and the sampler itself, `sampler={read.replace(' ', '_')}`, or make "
                    f"{whole} and what is built of it in the loop over epochs, after `set_epoch(epoch)`."
                )
            yield CauseInText(
                (kept,),
                f"{place} makes a list of what {name} gives, {whole}, once: it holds the first epoch's order{vain}.",
                hint,
            )


def drawn_once(script: Script, loader: ast.Call | None) -> Iterable[CauseInText]:
    """Orders that are drawn at random once, for a loader whose order a run saw repeated."""
    if loader is None or script.training.distributed_samplers(loader):
        return
    for part in ("batch_sampler", "sampler", "dataset"):
        given = script.given(loader, part)
        for node in script.values.closure(given) if given is not None else ():
            drawn = isinstance(node, ast.Call) and script.names.qualified(node.func) in _DRAWS
            if not drawn or not _once(script, node):
                continue
            yield CauseInText(
                (node,),
                f"{script.at(node)} draws the order, {script.quote(node)}, once for all epochs. ",
                "Draw it in the loop over epochs, alike on all ranks and with the epoch in its seed, and build the "
                "loader on its share there. `DistributedSampler` does both once `sampler.set_epoch(epoch)` is called.",
            )


def _lists(script: Script, loader: ast.Call, part: str) -> Iterable[tuple[ast.expr, ast.expr]]:
    """Lists in what a loader is given that a sampler was read into, each once, with what was read."""
    given = script.given(loader, part)
    nodes = [n for n in script.values.closure(given) if isinstance(n, ast.expr)] if given is not None else []
    found = {n: read for n in nodes if (read := _read(script, n)) is not None and _once(script, n)}
    parents = (script.names.tree(n).parent.get(n) for n in found)
    outer = {n for n, parent in zip(found, parents, strict=True) if parent not in found}
    yield from ((n, read) for n, read in found.items() if n in outer)


def _read(script: Script, node: ast.expr) -> ast.expr | None:
    """The sampler that an expression makes a list of."""
    read: ast.expr | None = None
    if isinstance(node, ast.Call) and node.args and script.names.qualified(node.func) in _KEEPING:
        read = node.args[0]
    elif isinstance(node, ast.ListComp) and len(node.generators) == 1:
        read = node.generators[0].iter
    elif isinstance(node, ast.List) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Starred):
        read = node.elts[0].value
    if read is None:
        return None
    if (inner := _read(script, read)) is not None:
        return inner
    return read if any(_told_epochs(script, made) for made in script.values.origins(read)) else None


def _told_epochs(script: Script, made: ast.AST) -> bool:
    """Whether a call makes a sampler whose order changes from epoch to epoch."""
    if not isinstance(made, ast.Call):
        return False
    if made in script.calls(SAMPLER):
        shuffle = script.argument(made, "shuffle")
        return shuffle is None or script.values.constant(shuffle) is True
    owner = script.graph.built_class(made)
    return owner is not None and all(script.graph.method(owner, name) for name in ("set_epoch", "__iter__"))


def _once(script: Script, node: ast.AST) -> bool:
    """Whether an expression is computed before the epochs: not in a loop, nor where somebody asks for an order."""
    function = script.names.tree(node).function(node)
    method = function in script.graph.class_of
    if method and getattr(function, "name", "") != "__init__":
        return False
    return function not in script.names.tree(node).yields and not script.training.repeated(node)


def _goes_through(script: Script, loader: ast.Call, kept: ast.expr, part: str) -> bool:
    """Whether a list stands where a sampler may stand as well."""
    given = script.argument(loader, part)
    made = script.values.origins(given) if isinstance(given, ast.expr) else ()
    batches = [m for m in made if isinstance(m, ast.Call) and script.names.qualified(m.func) == _BATCHES]
    inside = [script.argument(one, "sampler") for one in batches]
    return kept in made or any(
        kept in script.values.origins(one) for one in inside if isinstance(one, ast.expr)
    )
