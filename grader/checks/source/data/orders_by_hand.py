"""Orders of the samples that a training loop without a loader reads by: where they are drawn, and how to divide them.

Like `causes`, it answers with nodes, the likeliest first, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.causes import names_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop, name_of, walk
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded

_ORDERS = ("randperm", "permutation")
_MIXING = ("shuffle", "permutation", "randperm")
_FROM_ROW = "Let each rank read from `(step * world_size + rank) * batch_size` on"


def may_mix(script: Script) -> bool:
    """Whether a script may put samples into another order before it numbers them."""
    return bool(script.called(*_MIXING))


def orders_read(script: Script) -> list[ast.Call]:
    """Calls that draw an order of samples, such as `torch.randperm(n)`, which what is learned from is read by."""
    if any(script.training.roles(loader).trains for loader in script.training.loaders()):
        return []
    seeding = Seeding(script)
    found = (n for n in _learned_from(script) if isinstance(n, ast.Call) and name_of(n) in _ORDERS)
    return sorted({call for call in found if seeding.orders(call)}, key=lambda call: call.lineno)


def whole_order(script: Script, order: ast.Call) -> tuple[str, str]:
    """Why an order of the whole set that is read undivided divides nothing, and what to write."""
    own = Seeding(script).drawn(order)[1] is Seeded.BY_RANK
    drawn = f"{script.at(order)} draws an order of the whole set, {script.quote(order)}"
    why = (
        f"{drawn}, with the rank in its seed: each rank meets every sample, only in another order"
        if own
        else f"{drawn}, and every rank reads all of it"
    )
    return why, f"{divided(script, order)}{' The rank belongs in the slice, not in the seed.' if own else ''}"


def divided(script: Script, order: ast.Call | None) -> str:
    """What to write for an order that is drawn by hand, so that each rank gets a share of it, another in each epoch.

    `order`: None where the text does not show it.
    """
    name, many, seed, numpy = "order", "n", "seed + epoch", False
    if order is not None:
        statement = script.names.tree(order).statement(order)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        name = next((t.id for t in targets if isinstance(t, ast.Name)), name)
        many = ast.unparse(order.args[0]) if order.args else many
        seed = next(filter(None, map(_number, script.updates.loops_around(order))), seed)
        numpy = script.names.qualified(order.func) != "torch.randperm"
    whole = (
        f"np.random.default_rng({seed}).permutation({many})"
        if numpy
        else f"torch.randperm({many}, generator=torch.Generator().manual_seed({seed}))"
    )
    if order is not None and _dealt(script, order):
        return f"Draw the same order on all ranks, a new one in each epoch: `{name} = {whole}`."
    return (
        "Draw the same order on all ranks, a new one in each epoch, and let each rank take its share of it: "
        f"`{name} = {whole}[rank::world_size]`."
    )


def _dealt(script: Script, order: ast.Call) -> bool:
    """Whether each rank takes its share of an order somewhere: `order[rank::world_size]`."""
    return any(
        order in script.values.closure(node.value)
        for node in walk(script.names.tree(order).root)
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Slice)
        and node.slice.lower is not None
        and names_rank(script, node.slice.lower)
    )


def rows_of_own(script: Script) -> str:
    """What to write where rows are read one after the other or drawn at random; nothing that is done already."""
    seeding = Seeding(script)
    draws = [n for n in _learned_from(script) if isinstance(n, ast.Call) and seeding.drawn(n)[0]]
    by_rank = seeding.by_rank or any(seeding.drawn(n)[1] is Seeded.BY_RANK for n in draws)
    if by_rank:
        return f"{_FROM_ROW}."
    if draws:
        return f"{_FROM_ROW}, or seed its draws with `seed + rank`."
    return f"{_FROM_ROW}, or take rows of its own from each batch, inputs and targets alike: `[rank::world_size]`."


def _learned_from(script: Script) -> list[ast.AST]:
    return [node for backward in script.training.backwards for node in script.values.closure(backward)]


def _number(loop: Loop) -> str:
    """The name of a loop's own number, as that over epochs has one; "" where it has none."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or name_of(loop.iter) != "range":
        return ""
    name = name_of(loop.target)
    return "" if name == "_" else name
