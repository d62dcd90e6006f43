"""Rates that follow a count of samples: one rank's own, over a length that is made of the samples of all ranks.

With N ranks such a count comes to an N-th of the length. A number of ranks anywhere in between, or a collective over
what is counted, may set that right, and then nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText, made_of_rank
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.optimisation.rate_causes import rates_given, set_by_hand
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, walk
from grader.checks.source.training_loops import DATA_LOADER

_SIZES = ("len", "size", "numel")


def clocks_of_one_rank(script: Script) -> Iterator[CauseInText]:
    """All of them: the count first, then the length, then where the rate is set."""
    divided = any(_divided(script))
    for setter, rate in chain(set_by_hand(script), rates_given(script)) if divided else ():
        parts = _parts(script, rate)
        counts = [n for n in parts if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]
        of_own = (n for n in counts if any(_of_batch(script, of) for of in _sizes(script, n.value)))
        length = next((n for n in parts if isinstance(n, ast.Call) and _of_whole_set(script, n)), None)
        count = next(of_own, None) if length is not None else None
        if (
            count is None
            or length is None
            or any(isinstance(n, ast.expr) and script.ranks.world(n) for n in parts)
        ):
            continue
        if _put_together(script, parts):
            continue
        at, counted, grown = script.at(count), script.quote(count), ast.unparse(count.value)
        grown = f"({grown})" if isinstance(count.value, ast.BinOp | ast.IfExp) else grown
        written = f"{ast.unparse(count.target)} += {grown} * dist.get_world_size()"
        yield CauseInText(
            (count, length, setter),
            f"The rate that {script.at(setter)} sets follows {counted} at {at}, which counts the samples of one rank, "
            f"on a curve whose length is made of those of all ranks, {script.quote(length)} at {script.at(length)}.",
            f"Count the samples of all ranks, `{written}` at {at}; or make the "
            "curve as long as one rank's share, `epochs * len(sampler)`.",
        )


def _parts(script: Script, rate: ast.expr) -> list[ast.AST]:
    """What a rate is made of, also by an object that is called; of batches, not the loader that they come from."""

    def is_loader(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and script.names.qualified(node.func) == DATA_LOADER

    found = dict.fromkeys(script.values.parts(rate, is_loader))
    for node in list(found):
        for one in _behind(script, node):
            found |= dict.fromkeys(script.values.parts(one, is_loader))
    counts = {grown: None for node in found for grown in _grown_in_class(script, node)}
    return [*found, *counts]


def _grown_in_class(script: Script, node: ast.AST) -> Iterator[ast.AugAssign]:
    """Where the class that reads `self.samples` adds to it."""
    tree = script.names.tree(node)
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        owner = tree.enclosing_class(node)
        stores = (d.node for d in tree.attributes.get(node.attr, ()) if owner is tree.enclosing_class(d.node))
        yield from (store for store in stores if isinstance(store, ast.AugAssign))


def _behind(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    """What an object of the script's own that is called was built of; what a property of one returns."""
    if isinstance(node, ast.Call):
        for made in script.values.origins(node.func):
            if isinstance(made, ast.Call) and script.graph.built_class(made) is not None:
                yield from arguments_of(made)
    elif isinstance(node, ast.Attribute):
        for made in script.values.origins(node.value):
            owner = script.graph.built_class(made)
            method = script.graph.method(owner, node.attr) if owner is not None else None
            returned = script.names.tree(method).returns.get(method, ()) if method is not None else ()
            yield from (r.value for r in returned if r.value is not None)


def _of_batch(script: Script, name: ast.Name) -> bool:
    """Whether a name stands for what a training loop draws from a loader that is divided, and not for the loader."""
    made, origins = script.values.closure(name), script.values.origins(name)
    return any(loader in made and loader not in origins for loader in _divided(script))


def _divided(script: Script) -> Iterator[ast.Call]:
    """Training loaders that give each rank its share."""
    for loader in script.training.loaders():
        if script.training.roles(loader).trains and script.sharding.of(loader) is Shared.YES:
            yield loader


def _sizes(script: Script, count: ast.expr) -> Iterator[ast.Name]:
    """Whose size a count grows by: `labels` of `len(labels)`, `labels.size(0)`, `labels.shape[0]`."""
    for node in script.values.closure(count):
        if isinstance(node, ast.Call) and name_of(node) in _SIZES:
            yield from (n for n in walk(node) if isinstance(n, ast.Name))
        elif isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
            yield node.value


def _of_whole_set(script: Script, call: ast.Call) -> bool:
    """`len(train_set)` of a set that training loaders deal out to the ranks."""
    if name_of(call) != "len" or len(call.args) != 1 or made_of_rank(script, call.args[0]):
        return False
    asked = set(script.values.origins(call.args[0]))
    for loader in _divided(script):
        dataset = script.argument(loader, "dataset")
        same = isinstance(dataset, ast.Name) and ast.unparse(call.args[0]) == dataset.id
        if same or (isinstance(dataset, ast.expr) and asked & set(script.values.origins(dataset))):
            return True
    return False


def _put_together(script: Script, parts: Iterable[ast.AST]) -> bool:
    """Whether a collective is given what has a part in the rate."""
    names = {ast.unparse(n) for n in parts if isinstance(n, ast.Name | ast.Attribute)}
    return any(ast.unparse(given) in names for call in script.collectives.direct for given in call.args[:1])
