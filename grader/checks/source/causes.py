"""Where the text does what a run only shows the effect of, so that a finding can name the line that did it.

Each function answers with nodes, the likeliest first; none where the text does not say. Decides nothing: whether there
is a fault at all, the run has shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import UNKNOWN, Script
from grader.model.finding import Location
from grader.model.trace import Site

_COMM_HOOK = "register_comm_hook"


def lines(script: Script, nodes: Iterable[ast.AST]) -> tuple[Location, ...]:
    """Nodes as places of a finding, each once."""
    return tuple(dict.fromkeys(script.location(n) for n in nodes))


def exchange_replaced(script: Script) -> Iterable[ast.AST]:
    """What takes the place of the wrapper's own exchange: its `process_group`, a communication hook, `no_sync`."""
    for wrap in script.training.wraps:
        group = script.argument(wrap, "process_group")
        if group is not None and group is not UNKNOWN:
            yield group
    yield from script.called(_COMM_HOOK)
    for tree in script.trees:
        for block in tree.withs:
            for item in block.items:
                calls = [n for n in ast.walk(item.context_expr) if isinstance(n, ast.Call)]
                yield from (
                    c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "no_sync"
                )


def rates_by_rank(script: Script) -> Iterable[ast.AST]:
    """What lets learning rates differ: schedules that some ranks alone advance, arguments made of the rank."""
    schedules = script.calls_under("torch.optim.lr_scheduler.")
    for call in script.called("step"):
        if isinstance(call.func, ast.Attribute) and script.guards.partial(call) is not None:
            origins = script.values.origins(call.func.value)
            if any(o is made for o in origins for _, made in schedules):
                yield call
    for _, call in (*schedules, *script.calls_under("torch.optim.")):
        for given in (*call.args, *(k.value for k in call.keywords)):
            if any(script.ranks.rank(n) for n in ast.walk(given) if isinstance(n, ast.expr)):
                yield given


def loader_at(script: Script, site: Site | None) -> ast.Call | None:
    """The `DataLoader(…)` that stands at a place."""
    for loader in script.training.loaders():
        if _stands_at(script, loader, site):
            return loader
    return None


def _stands_at(script: Script, call: ast.Call, site: Site | None) -> bool:
    where = script.location(call)
    return site is not None and where.path == site.path and where.line <= site.line <= (where.end_line or 0)


def shares_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What tells the samplers of a loader their rank: the sampler, and where that number comes from."""
    loader = loader_at(script, site)
    for sampler in script.training.distributed_samplers(loader) if loader is not None else ():
        rank = script.argument(sampler, "rank")
        if rank is not None and rank is not UNKNOWN:
            yield sampler
            yield from (o for o in script.values.origins(rank) if isinstance(o, ast.expr))


def data_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What made the data set of a loader."""
    loader = loader_at(script, site)
    given = script.argument(loader, "dataset") if loader is not None else None
    if given is not None and given is not UNKNOWN:
        yield from (o for o in script.values.origins(given) if isinstance(o, ast.Call))


def by_world(script: Script, node: ast.AST) -> Iterable[ast.AST]:
    """Where a value is multiplied or divided by the number of processes on its way."""
    for part in script.values.closure(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div | ast.FloorDiv):
            sides: tuple[ast.expr, ...] = (part.left, part.right)
        elif isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Mult | ast.Div | ast.FloorDiv):
            sides = (part.value,)
        else:
            continue
        if any(script.ranks.world(side) for side in sides):
            yield part


def batch_size_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What counts the number of ranks into the batch size of a loader."""
    loader = loader_at(script, site)
    size = script.argument(loader, "batch_size") if loader is not None else None
    if size is not None and size is not UNKNOWN:
        yield from by_world(script, size)


def rates_by_world(script: Script) -> Iterable[ast.AST]:
    """What counts the number of ranks into a learning rate."""
    for _, call in script.calls_under("torch.optim."):
        for name in ("lr", "max_lr", "base_lr"):
            rate = script.argument(call, name)
            if rate is not None and rate is not UNKNOWN:
                yield from by_world(script, rate)


def lengths_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What counts the steps of a schedule that was made at a place."""
    for _, call in script.calls_under("torch.optim.lr_scheduler."):
        if not _stands_at(script, call, site):
            continue
        for name in ("total_steps", "steps_per_epoch", "T_max", "total_iters"):
            length = script.argument(call, name)
            if length is not None and length is not UNKNOWN:
                parts = script.values.closure(length)
                yield from (
                    n for n in parts if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "len"
                )


def went_backward(script: Script) -> Iterable[ast.expr]:
    """The values that `backward` is called on."""
    for backward in script.training.backwards:
        yield backward.func.value if isinstance(backward.func, ast.Attribute) else backward


def sums_over_samples(script: Script) -> Iterable[ast.AST]:
    """Calls with `reduction="sum"` whose result goes backward."""
    for loss in went_backward(script):
        for node in script.values.closure(loss):
            if isinstance(node, ast.Call) and any(
                k.arg == "reduction" and script.values.constant(k.value) == "sum" for k in node.keywords
            ):
                yield node
