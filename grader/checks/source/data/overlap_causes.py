"""Which line lets ranks take the same samples, where a run has shown that they do.

One rank draws from the generator that all of them shuffle with; a window of many samples begins `rank` samples later
than the one before it, or moves on by one rank's samples alone; stripes of ranks and of their workers are counted
together. Decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText, names_rank
from grader.checks.source.data.short_advances import short_advances
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import READS, name_of, walk

_ORDERING = ("randperm", "permutation", "shuffle", "sample")
_TORCH_DRAWS = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")
_OWN_DRAWS = (
    "permutation", "shuffle", "sample", "choice", "choices", "integers", "randint", "random", "uniform", "normal",
    "standard_normal",
)  # fmt: skip
_WORKER = "torch.utils.data.get_worker_info"
_MAX_DEPTH = 3


def overlap_cause(script: Script, first_epoch: int) -> CauseInText | None:
    """The first one that the text shows; `first_epoch`: the number of the first epoch with samples in common."""
    known = (
        _drawn_by_some(script, first_epoch),
        _counted_together(script),
        short_advances(script),
        _windows(script),
    )
    return next((cause for found in known for cause in found), None)


def _drawn_by_some(script: Script, first_epoch: int) -> Iterable[CauseInText]:
    """A draw behind a test of the rank, from what the shuffle of all ranks is drawn from."""
    orders = [c for c in script.called(*_ORDERING) if script.guards.partial(c) is None]
    for draw in script.called(*_TORCH_DRAWS, *_OWN_DRAWS):
        guard = script.guards.partial(draw)
        source = _drawn_from(script, draw) if guard is not None else None
        if source is None or guard is None or (source == {"torch"} and first_epoch == 0):
            continue
        for order in orders:
            shared = _drawn_from(script, order)
            if not shared or shared.isdisjoint(source):
                continue
            named = next((k for k in draw.keywords if k.arg == "generator"), None)
            own = (
                f"leave `{ast.unparse(named)}` out of {script.quote(draw)}"
                if named is not None
                else (f"let {script.quote(draw)} draw from one of its own")
            )
            yield CauseInText(
                (draw, order, guard.test),
                f"{script.at(draw)} draws on some ranks only, behind {script.quote(guard.test)}, from the generator "
                f"that all ranks shuffle with at {script.at(order)}: from then on each has another order.",
                f"Keep the generator of the shuffle to the shuffle: {own} at {script.at(draw)}.",
            )


def _drawn_from(script: Script, call: ast.Call) -> set[object] | None:
    """The generators that a call may draw from, `torch` for the global one; None where it is no known draw."""
    name = script.names.qualified(call.func) or ""
    if name.startswith("torch."):
        given = script.argument(call, "generator")
        if given is UNKNOWN or name.rpartition(".")[2] not in _TORCH_DRAWS:
            return None
        return {"torch"} if given is None else set(script.values.origins(given, returns=False))
    func = call.func
    if name or not isinstance(func, ast.Attribute) or func.attr not in _OWN_DRAWS:
        return None
    made = script.values.origins(func.value, returns=False)
    makers = {script.names.qualified(o.func) for o in made if isinstance(o, ast.Call)}
    return (
        set(made)
        if makers & {"numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}
        else None
    )


def _counted_together(script: Script) -> Iterable[CauseInText]:
    """`rank + worker`: worker 1 of rank 0 then has the number of worker 0 of rank 1."""
    for node, rank, other in _sums_with_rank(script):
        if not _of_worker(script, other, "id"):
            continue
        tree = script.names.tree(node)
        scope = tree.function(node)
        many = [
            n
            for n in walk(scope or tree.root)
            if isinstance(n, ast.Name | ast.Attribute)
            and isinstance(n.ctx, ast.Load)
            and _of_worker(script, n, "num_workers")
        ]
        workers = ast.unparse(many[0]) if many else "num_workers"
        right = f"{ast.unparse(rank)} * {workers} + {ast.unparse(other)}"
        yield CauseInText(
            (node,),
            f"{script.at(node)} numbers the stripes by {script.quote(node)}: worker 1 of rank 0 and worker 0 of rank 1 "
            "read the same one.",
            f"Write `{right}` for {script.quote(node)} at {script.at(node)}: each rank has a number for each of its "
            "workers.",
        )


def _of_worker(script: Script, node: ast.expr, part: str) -> bool:
    """Whether a value is the worker's number, or how many there are."""
    return any(
        isinstance(o, ast.Attribute)
        and o.attr == part
        and any(
            isinstance(m, ast.Call) and script.names.qualified(m.func) == _WORKER
            for m in script.values.origins(o.value)
        )
        for o in script.values.origins(node)
    )


def _windows(script: Script) -> Iterable[CauseInText]:
    """`order[first:first + share]` with `first = start + rank`, or as many samples further as something else says."""
    for tree in script.trees:
        for node in walk(tree.root):
            lower, upper = _span(script, node)
            if lower is None or not isinstance(upper, ast.BinOp) or not isinstance(upper.op, ast.Add):
                continue
            begins = ast.unparse(lower)
            sides = (upper.left, upper.right)
            lengths = [b for a, b in (sides, sides[::-1]) if ast.unparse(a) == begins]
            if not lengths or script.values.constant(lengths[0]) == 1:
                continue
            length = ast.unparse(lengths[0])
            factor = length if isinstance(lengths[0], (*READS, ast.Constant)) else f"({length})"
            for begin in _behind(script, lower, 0):
                added = [(begin, begin)] if _plain_rank(script, begin) else []
                added += [(total, rank) for total, rank, _ in _with_rank(script, begin)]
                for total, rank in added:
                    own = ast.unparse(rank)
                    within = "" if rank is total else f" in {script.quote(total)}"
                    yield CauseInText(
                        (total, node),
                        f"{script.at(total)} begins a window {script.quote(total)}, one sample behind that of the "
                        f"rank before, but it is `{length}` samples long.",
                        f"Write `{own} * {factor}` for `{own}`{within} at {script.at(total)}.",
                    )
                if not added and names_rank(script, begin) and not _multiplied(begin, length):
                    yield CauseInText(
                        (begin, node),
                        f"{script.at(begin)} begins a rank's window at {script.quote(begin)}, and it is `{length}` "
                        "samples long.",
                        f"Let windows begin as far apart as they are long: at `rank * {factor}`.",
                    )


def _multiplied(begin: ast.expr, length: str) -> bool:
    """Whether a window begins some number of its lengths behind, and something else perhaps."""
    if not isinstance(begin, ast.BinOp):
        return False
    if isinstance(begin.op, ast.Add):
        return _multiplied(begin.left, length) or _multiplied(begin.right, length)
    return isinstance(begin.op, ast.Mult) and length in (ast.unparse(begin.left), ast.unparse(begin.right))


def _span(script: Script, node: ast.AST) -> tuple[ast.expr | None, ast.expr | None]:
    """Where a slice or a range without a step begins and ends."""
    if isinstance(node, ast.Slice) and node.step is None:
        return node.lower, node.upper
    if (
        isinstance(node, ast.Call)
        and script.names.qualified(node.func) in ("range", "slice")
        and len(node.args) == 2
    ):
        return node.args[0], node.args[1]
    return None, None


def _behind(script: Script, node: ast.expr, depth: int) -> Iterable[ast.expr]:
    """What a value is worked out by: itself, or what the name it is held by was given."""
    given = [
        definition.value
        for definition in (script.scopes.reaching(node.id, node) if isinstance(node, ast.Name) else ())
        if definition.kind == "assign"
        and not definition.path
        and isinstance(definition.value, ast.Name | ast.Attribute | ast.BinOp)
    ]
    if not given or depth == _MAX_DEPTH:
        yield node
    for value in given if depth < _MAX_DEPTH else ():
        yield from _behind(script, value, depth + 1)


def _sums_with_rank(script: Script) -> Iterable[tuple[ast.BinOp, ast.expr, ast.expr]]:
    for tree in script.trees:
        for node in walk(tree.root):
            if isinstance(node, ast.BinOp):
                yield from _with_rank(script, node)


def _with_rank(script: Script, node: ast.expr) -> Iterable[tuple[ast.BinOp, ast.expr, ast.expr]]:
    """A sum one side of which is the rank as it is, with the other side."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        for rank, other in ((node.left, node.right), (node.right, node.left)):
            if _plain_rank(script, rank):
                yield node, rank, other
                return


def _plain_rank(script: Script, node: ast.expr) -> bool:
    """Whether a value is the rank as it is, nothing worked out from it."""
    if not (isinstance(node, ast.Name | ast.Attribute) or name_of(node) == "get_rank"):
        return False
    return bool(script.ranks.rank(node)) and not any(
        isinstance(origin, ast.BinOp) for origin in script.values.origins(node)
    )
