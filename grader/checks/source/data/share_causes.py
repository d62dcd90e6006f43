"""Where the text deals samples out as a run only shows the effect of: loaders, samplers, shares, shuffles.

Like `causes`, it answers with nodes, the likeliest first, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText, by_world, made_of_rank, names_rank, stands_at
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import name_of, names_in
from grader.checks.source.training_loops import SAMPLER
from grader.model.call_site import Site

_BY_POSITION = {
    f"torch.utils.data.{where}{name}"
    for where in ("", "sampler.")
    for name in ("RandomSampler", "SequentialSampler", "WeightedRandomSampler")
}


def loader_at(script: Script, site: Site | None) -> ast.Call | None:
    """The `DataLoader(…)` that stands at a place."""
    for loader in script.training.loaders():
        if stands_at(script, loader, site):
            return loader
    return None


def shares_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What tells the samplers of a loader their rank: the sampler, and where that number comes from."""
    loader = loader_at(script, site)
    for sampler in script.training.distributed_samplers(loader) if loader is not None else ():
        rank = script.given(sampler, "rank")
        if rank is not None:
            yield sampler
            yield from (o for o in script.values.origins(rank) if isinstance(o, ast.expr))


def over_samplers(script: Script, site: Site | None) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Samplers that a loader is given, and that go through another sampler's positions: `RandomSampler(sampler)`."""
    loader = loader_at(script, site)
    given = [script.argument(loader, name) for name in ("sampler", "batch_sampler")] if loader else []
    for node in [n for g in given if isinstance(g, ast.expr) for n in script.values.closure(g)]:
        if not isinstance(node, ast.Call) or script.names.qualified(node.func) not in _BY_POSITION:
            continue
        source = _source(script, node)
        made = script.values.origins(source) if isinstance(source, ast.expr) else ()
        if isinstance(source, ast.expr) and any(m in script.calls(SAMPLER) for m in made):
            yield node, source


def drawn_apart(script: Script, site: Site | None) -> Iterable[CauseInText]:
    """Samplers of torch that a loader is given and that each rank draws from by itself."""
    loader = loader_at(script, site)
    given = script.argument(loader, "sampler") if loader is not None else None
    for node in script.values.origins(given) if isinstance(given, ast.expr) else ():
        kind = script.names.qualified(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or loader is None or kind not in _BY_POSITION:
            continue
        weighted = name_of(node) == "WeightedRandomSampler"
        # Weights say nothing of the samples: these are the loader's.
        source = script.argument(loader, "dataset") if weighted else _source(script, node)
        if not isinstance(source, ast.expr) or made_of_rank(script, source):
            continue
        at, own, shared = script.at(node), script.quote(node), f"DistributedSampler({ast.unparse(source)})"
        told = "and call `set_epoch(epoch)` on it at the start of each epoch"
        balanced = (
            f"Give the loader `sampler={shared}` instead of {own}, {told}. The `weight=` of "
            "`F.cross_entropy` brings classes into balance as well."
        )
        yield CauseInText(
            (node,),
            f"{at} lets each rank draw from the whole set by itself: {own}.",
            balanced if weighted else f"Write `{shared}` instead of {own} at {at}, {told}.",
        )


def salted(script: Script, site: Site | None) -> CauseInText | None:
    """A share or an order that is made by `hash()` of a text: Python salts that for each process anew."""
    loader = loader_at(script, site)
    given = (
        [script.argument(loader, name) for name in ("dataset", "sampler", "batch_sampler")] if loader else []
    )
    made = [n for g in given if isinstance(g, ast.expr) for n in script.values.closure(g)]
    for call in (c for part in (*made, *orders_of(script, loader)) for c in ast.walk(part)):
        if not isinstance(call, ast.Call) or script.names.qualified(call.func) != "hash" or not call.args:
            continue
        if _of_numbers(call.args[0]):
            continue
        text = node_text(script, call.args[0])
        written = text if isinstance(call.args[0], ast.JoinedStr) else f"str({text})"
        return CauseInText(
            (call,),
            f"{script.at(call)} chooses samples by {script.quote(call)}, which is another number in each process: "
            "Python salts the hash of texts, so that ranks don't choose alike.",
            "Choose by something that all ranks agree on: by the position of a sample, or by "
            f"`zlib.crc32({written}.encode())` instead of {script.quote(call)}.",
        )
    return None


def _of_numbers(node: ast.expr) -> bool:
    """`(epoch, index)`, `7 * index`: numbers have one hash in all processes."""
    numbers = isinstance(node, ast.Tuple | ast.BinOp)
    return numbers and not any(
        isinstance(n, ast.JoinedStr) or name_of(n) == "str" or isinstance(getattr(n, "value", None), str)
        for n in ast.walk(node)
    )


def _source(script: Script, sampler: ast.Call) -> ast.AST | None:
    return script.argument(sampler, "data_source") or (sampler.args[0] if sampler.args else None)


def data_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What made the data set of a loader."""
    loader = loader_at(script, site)
    given = script.given(loader, "dataset") if loader is not None else None
    if given is not None:
        yield from (o for o in script.values.origins(given) if isinstance(o, ast.Call))


def batch_size_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What counts the number of ranks into the batch size of a loader."""
    loader = loader_at(script, site)
    size = script.given(loader, "batch_size") if loader is not None else None
    if size is not None:
        yield from by_world(script, size)


def own_seeds(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What samplers of the submission's own that a loader is given seed their shuffles with."""
    for function in orders_of(script, loader_at(script, site)):
        for call in script.names.tree(function).calls_within(function):
            if name_of(call) in ("manual_seed", "seed", "default_rng", "Random", "RandomState"):
                yield call


def seeds_by_rank(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """Where the seed of a loader's `DistributedSampler` becomes another number on each rank: `args.seed += rank`."""
    loader = loader_at(script, site)
    for sampler in script.training.distributed_samplers(loader) if loader is not None else ():
        seed = script.argument(sampler, "seed")
        parts = list(script.values.closure(seed)) if isinstance(seed, ast.expr) else []
        kept = {part.attr for part in parts if isinstance(part, ast.Attribute)}
        for stored in (
            d for tree in script.trees for name in sorted(kept) for d in tree.attributes.get(name, ())
        ):
            if stored.value is not None and names_rank(script, stored.value):
                yield stored.node
        # A name says nothing yet, what it was given does.
        yield from (p for p in parts if isinstance(p, ast.BinOp | ast.Call) and names_rank(script, p))


def seeded_by_epoch(script: Script, seed: ast.AST) -> str:
    """What to write where a shuffle of one's own is seeded with the same number in each epoch."""
    told = f"Seed the shuffle with the epoch, too: {script.at(seed)} repeats one number. "
    tree = script.names.tree(seed)
    owner = next((c for c in tree.classes if tree.inside(seed, c)), None)
    kept = {
        n.attr
        for n in ast.walk(owner or ast.Pass())
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    number = next((name for name in sorted(kept) if name.strip("_") in ("epoch", "current_epoch")), "")
    if number and isinstance(seed, ast.Call) and seed.args:
        given = node_text(script, seed.args[0])
        return f"{told}Write `{given} + self.{number}` instead of `{given}` there."
    return f"{told}Give it `seed + epoch` on all ranks."


def own_cuts(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """Where samplers of the submission's own that a loader is given cut out a rank's share."""
    for function in orders_of(script, loader_at(script, site)):
        seeds = [n for seed in own_seeds(script, site) for n in ast.walk(seed)]
        for node in ast.walk(function):
            if isinstance(node, ast.expr) and node not in seeds and script.ranks.rank(node):
                yield script.names.tree(function).statement(node)


def dealt_anew(script: Script, site: Site | None) -> str:
    """What to write in place of shares that a loader's sampler cuts once for all epochs."""
    loader = loader_at(script, site) if any(own_cuts(script, site)) else None
    data = script.given(loader, "dataset") if loader is not None else None
    batches = script.argument(loader, "batch_sampler") if loader is not None else None
    if data is None or batches is not None:
        return (
            "Cut the shares anew in each epoch from one permutation of all samples that every rank draws alike, with "
            "the epoch as its seed. `DistributedSampler` does so once `sampler.set_epoch(epoch)` is called."
        )
    return (
        "Let one permutation of all samples be dealt out anew in each epoch, in place of shares of your own: "
        f"`sampler = DistributedSampler({script.quote(data).strip('`')})` as the loader's `sampler=`, without "
        "`shuffle=`, and `sampler.set_epoch(epoch)` at the beginning of each epoch."
    )


def orders_of(script: Script, loader: ast.Call | None) -> Iterable[ast.FunctionDef]:
    """The `__iter__` methods of the submission's own samplers that a loader is given."""
    if loader is None:
        return
    for name in ("sampler", "batch_sampler"):
        given = script.given(loader, name)
        for origin in script.values.origins(given) if given is not None else ():
            owner = script.graph.built_class(origin)
            for part in owner.body if owner is not None else ():
                if isinstance(part, ast.FunctionDef) and part.name == "__iter__":
                    yield part


def cut_before(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """Subsets and slices by rank that a loader deals out a second time, also of what its data set holds."""
    loader = loader_at(script, site)
    given = script.argument(loader, "dataset") if loader is not None else None
    if loader is None or not isinstance(given, ast.expr):
        return
    again = bool(script.training.samplers(loader))
    for node in script.values.closure(given):
        subset = isinstance(node, ast.Call) and (script.names.qualified(node.func) or "").endswith("Subset")
        if (subset and names_rank(script, node)) or (again and _sliced_by_rank(script, node)):
            yield node
    made = set(script.values.origins(given))
    for stored in (d for tree in script.trees for found in tree.attributes.values() for d in found):
        if again and isinstance(stored.node, ast.Assign) and _sliced_by_rank(script, stored.value):
            owners = (t.value for t in stored.node.targets if isinstance(t, ast.Attribute))
            if any(made.intersection(script.values.origins(owner)) for owner in owners):
                yield stored.node


def _sliced_by_rank(script: Script, node: ast.AST | None) -> bool:
    cut = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
    return cut and isinstance(node, ast.Subscript) and names_rank(script, node.slice)


def whole_set(script: Script, subset: ast.AST) -> str:
    """What to write for a subset by rank that a sampler divides once more."""
    told = "Divide once: "
    if not isinstance(subset, ast.Call) or not subset.args:
        return (
            told + "give the sampler the whole set, or the loader your own share with `shuffle=True` alone."
        )
    whole = script.quote(subset.args[0])
    bound = script.names.tree(subset).statement(subset)
    if isinstance(bound, ast.Assign) and [ast.unparse(t) for t in bound.targets] == [
        ast.unparse(subset.args[0])
    ]:
        return f"{told}leave out {script.at(subset)}, so that the loader's sampler gets the whole of {whole}."
    return f"{told}write {whole} instead of {script.quote(subset)} at {script.at(subset)}, for the sampler to divide."


def batch_cuts(script: Script) -> Iterable[ast.Subscript]:
    """Slices of what a training loop draws: `images[:16]`."""
    for draw in script.training.draws:
        if not draw.trains or not isinstance(draw.loop, ast.For | ast.AsyncFor):
            continue
        drawn = names_in(draw.loop.target)
        for statement in draw.loop.body:
            for node in ast.walk(statement):
                if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
                    continue
                if isinstance(node.value, ast.Name) and node.value.id in drawn:
                    yield node
