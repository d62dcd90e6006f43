"""Loops over epochs, and how the sampler of a training loader can be told there which epoch begins.

Answers only where one loop, one loader and one sampler are plain to see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import LOOPS, names_bound_in, names_in, start, steps_up, walk

_COUNTING = {"range", "tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange"}
_MAX_DEPTH = 4


def drawn_again(script: Script, loader: ast.Call) -> bool:
    """Whether training goes over a loader more than once.

    In a loop over epochs, in a generator that begins again, or by an iterator that is made anew.
    """
    training = script.training
    for draw in training.roles(loader).draws:
        tree = script.names.tree(draw.loop)
        endless = tree.function(draw.loop) in tree.yields
        if draw.iterates and (draw.trains or endless) and training.repeated(draw.loop):
            return True
    walks = [c for c in script.calls("iter") if c.args and training.repeated(c)]
    return any(loader in script.values.origins(c.args[0]) for c in walks)


def numbered_otherwise(script: Script, loader: ast.Call, sampler: ast.Call) -> bool:
    """Whether an epoch's number comes into a sampler without `set_epoch`: as its `epoch`, or with its seed."""
    return _sets_number(script, sampler) or _made_anew(script, loader, sampler)


def _sets_number(script: Script, sampler: ast.Call) -> bool:
    """`sampler.epoch = epoch`, all that `set_epoch` does."""
    for definition in (d for tree in script.trees for d in tree.attributes.get("epoch", ())):
        stored = (n for n in walk(definition.node) if isinstance(n, ast.Attribute) and n.attr == "epoch")
        owners = (n.value for n in stored if isinstance(n.ctx, ast.Store))
        changes = definition.kind == "augment" or script.values.constant(definition.value) is UNKNOWN
        told = any(sampler in script.values.origins(owner) for owner in owners)
        if told and changes and script.training.repeated(definition.node):
            return True
    return False


def _made_anew(script: Script, loader: ast.Call, sampler: ast.Call) -> bool:
    """`DistributedSampler(data, seed=epoch)` in the loop over epochs."""
    seed = script.argument(sampler, "seed")
    loop = _epoch_loop(script, sampler)
    if seed is None or loop is None or loop.iter not in script.values.closure(seed):
        return False
    return all(_epoch_loop(script, d.loop) is loop for d in script.training.roles(loader).draws if d.trains)


def tell_epoch(script: Script, edits: Edits, loader: ast.Call, sampler: ast.Call | None = None) -> None:
    """Have each epoch begin with `set_epoch` on the sampler of a loader; given up where that isn't plain to write.

    Args:
        script: the script. edits: where to write. loader: its `DataLoader(…)`.
        sampler: its sampler as it is made now; None for one that the edits give to the loader.
    """
    loops = {loop for draw in script.training.roles(loader).draws if draw.trains
             for loop in [_epoch_loop(script, draw.loop)]} | set(_iterated_anew(script, loader))  # fmt: skip
    loop = loops.pop() if len(loops) == 1 else None
    if loop is None or (sampler is not None and not _only_sampler(script, loader, sampler)):
        edits.give_up()
        return
    owner = held_name(script, sampler, loop) or _read(script, loop, sampler) if sampler is not None else ""
    if not owner:
        named = _read(script, loop, loader)
        owner = f"{named}.sampler" if named else ""
    number = _number(script, loop, edits)
    if not owner or not number:
        edits.give_up()
        return
    edits.before(loop.body[0], f"{owner}.set_epoch({number})")


def _only_sampler(script: Script, loader: ast.Call, sampler: ast.Call) -> bool:
    """Whether a loader draws by this sampler whatever the script was started with."""
    given = script.argument(loader, "sampler")
    return given is not None and script.values.origins(given) == (sampler,)


def retell_epoch(script: Script, edits: Edits, calls: list[ast.Attribute]) -> None:
    """Have the one call of `set_epoch` tell the number of the epoch that begins; given up where it isn't in a loop."""
    call = script.names.tree(calls[0]).parent.get(calls[0])
    loop = _epoch_loop(script, calls[0])
    same = loop is not None and script.names.tree(loop).inside(calls[0], loop)
    if len(calls) != 1 or not isinstance(call, ast.Call) or len(call.args) != 1 or loop is None or not same:
        edits.give_up()
        return
    number = _number(script, loop, edits)
    edits.replace(call.args[0], number) if number else edits.give_up()


def _epoch_loop(script: Script, node: ast.AST, depth: int = 0) -> ast.For | None:
    """The innermost loop around one that trains, also where a function lies between them."""
    tree = script.names.tree(node)
    for child, above in steps_up(tree.parent, node, tree.function(node)):
        # What a loop goes over is made before its first round.
        if isinstance(above, LOOPS) and child is not getattr(above, "iter", None):
            return above if isinstance(above, ast.For) else None
    function = tree.function(node)
    sites = script.graph.sites(function) if function is not None else []
    if len(sites) != 1 or sites[0].spawned or depth >= _MAX_DEPTH:
        return None
    return _epoch_loop(script, sites[0].call, depth + 1)


def _iterated_anew(script: Script, loader: ast.Call) -> Iterator[ast.For | None]:
    """Loops in which `iter(loader)` begins a new pass."""
    for call in script.calls("iter"):
        if call.args and script.training.repeated(call) and loader in script.values.origins(call.args[0]):
            yield _epoch_loop(script, call)


def _number(script: Script, loop: ast.For, edits: Edits) -> str:
    """The name of the epoch's number; one is given where the loop has none."""
    counts = isinstance(loop.iter, ast.Call) and script.names.qualified(loop.iter.func) in _COUNTING
    if not counts or not isinstance(loop.target, ast.Name) or not isinstance(loop.iter, ast.Call):
        return ""
    inner = loop.iter.args[0] if loop.iter.args else None
    if script.names.qualified(loop.iter.func) not in ("range", "tqdm.trange", "tqdm.auto.trange") and not (
        isinstance(inner, ast.Call) and script.names.qualified(inner.func) == "range"
    ):
        return ""
    tree = script.names.tree(loop)
    if loop.target.id != "_":
        return loop.target.id
    read = any(tree.inside(n, loop) for n in tree.loads.get("_", ()))
    if read or any("epoch" in scope for scope in tree.definitions.values()):
        return ""
    edits.replace(loop.target, "epoch")
    return "epoch"


def _read(script: Script, loop: ast.For, made: ast.Call) -> str:
    """A variable read in a loop that can be nothing but what one call made."""
    tree = script.names.tree(loop)
    stored = names_bound_in(loop)
    found = [
        node
        for statement in loop.body
        for node in walk(statement)
        if isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and tree.function(node) is tree.function(loop)
        and not stored & names_in(node)
        and script.values.origins(node) == (made,)
    ]
    return ast.unparse(min(found, key=start)) if found else ""
