"""Lists that a collective fills with what the ranks hand in: read where they are not filled, or read in one place only.

`gather` and `gather_object` fill the list of one rank; the others have None. `all_gather` brings all ranks' parts, and
who reads the first of them alone has rank 0's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import end, start
from grader.checks.source.values.data_flow import source_text

_OF_ONE_RANK = {"gather": ("gather_list", "tensor"), "gather_object": ("object_gather_list", "obj")}
_OF_ALL = {"all_gather": ("tensor_list", "tensor"), "all_gather_object": ("object_list", "obj")}


@dataclass(frozen=True, slots=True)
class GatheredList:
    """A call that fills a list, and where that is read.

    Attributes:
        call: the collective; name: its own; filled: the list; given: what each rank hands in.
        use: what reads it.
    """

    call: ast.Call
    name: str
    filled: ast.expr
    given: ast.expr
    use: ast.expr


def read_unfilled(script: Script) -> Iterable[GatheredList]:
    """Lists of `gather` that a line reads on all ranks, or on others than the one that has it; the first such line."""
    for call, name, filled, given in _calls(script, _OF_ONE_RANK):
        told = script.argument(call, "dst")
        root = 0 if told is None else script.values.constant(told)
        reads = _reads(script, call, filled)
        if any(_asked(script, read) for read in reads):
            continue
        for use in reads:
            if isinstance(root, int) and _on_others(script, use, root):
                yield GatheredList(call, name, filled, given, use)
                break


def one_part_read(script: Script) -> Iterable[GatheredList]:
    """Lists of what all ranks counted over their shares, of which one rank's part alone is ever read."""
    for call, name, filled, given in _calls(script, _OF_ALL | _OF_ONE_RANK):
        reads = _reads(script, call, filled)
        tree = script.names.tree(call)
        above = [tree.parent.get(read) for read in reads]
        parts = [n for n in above if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load)]
        places = {script.values.constant(part.slice) for part in parts}
        if not parts or len(parts) < len(reads) or len(places) > 1 or not isinstance(places.pop(), int):
            continue
        if _of_a_share(script, given):
            yield GatheredList(call, name, filled, given, parts[0])


def filled_everywhere(script: Script, one: GatheredList) -> str:
    """What to write where all ranks need the list."""
    filled, given = node_text(script, one.filled), node_text(script, one.given)
    objects = one.name in ("gather_object", "all_gather_object")
    empty = f"{filled} = [None] * dist.get_world_size()"
    if not objects:
        empty = f"{filled} = [torch.empty_like({given}) for _ in range(dist.get_world_size())]"
    call = "all_gather_object" if objects else "all_gather"
    return (
        f"To have it on every rank, write `{empty}` and `dist.{call}({filled}, {given})`, with no test of the rank. "
        "Where one rank alone needs it, read it under a test of that rank."
    )


def all_parts(script: Script, one: GatheredList) -> str:
    """What to write to count all parts of a list, and not one of them."""
    filled = node_text(script, one.filled)
    if one.name in ("gather", "all_gather"):
        written = f"torch.stack({filled}).sum(dim=0)"
    elif isinstance(one.given, ast.Tuple | ast.List):
        written = f"[sum(column) for column in zip(*{filled})]"
    else:
        return f"Add up all entries of `{filled}`, not {script.quote(one.use)} alone."
    return f"Add up all parts: write `{written}` for {script.quote(one.use)}."


def _calls(
    script: Script, names: dict[str, tuple[str, str]]
) -> Iterable[tuple[ast.Call, str, ast.expr, ast.expr]]:
    for call, name in script.collectives.direct.items():
        if name not in names or script.names.qualified(call.func) != f"torch.distributed.{name}":
            continue
        filled, given = (script.argument(call, argument) for argument in names[name])
        if isinstance(filled, ast.IfExp):  # `parts if rank == 0 else None`
            filled = next((n for n in (filled.body, filled.orelse) if source_text(n)), None)
        # Who asks in the background reads it when it has waited.
        apart = script.argument(call, "async_op") is not None or script.argument(call, "group") is not None
        if isinstance(filled, ast.Name) and given is not None and given is not UNKNOWN and not apart:
            yield call, name, filled, given


def _reads(script: Script, call: ast.Call, filled: ast.expr) -> list[ast.expr]:
    """Where a list is read once the call has filled it, in its own function, up to where the name is bound anew."""
    tree = script.names.tree(call)
    scope, name = tree.scope(call), source_text(filled)
    function = tree.function(call)
    if function is None and len(script.trees) > 1:
        return []  # other files may read it
    made = tree.definitions.get(scope, {}).get(name, [])
    anew = min((start(d.node) for d in made if start(d.node) >= end(call)), default=None)
    found = [
        n
        for n in tree.loads.get(name, ())
        if tree.scope(n) is scope and start(n) >= end(call) and (anew is None or start(n) <= anew)
    ]
    inner = [n for n in tree.loads.get(name, ()) if tree.scope(n) is not scope and start(n) >= end(call)]
    return sorted((*found, *(n for n in inner if _closes_over(script, n, scope))), key=start)


def _closes_over(script: Script, node: ast.Name, scope: ast.AST) -> bool:
    """Whether a name inside a comprehension or a function of its own is the one of the scope around it."""
    tree = script.names.tree(node)
    return tree.inside(node, scope) and any(
        tree.scope(d.node) is scope for d in script.names.lookup(node.id, node)
    )


def _asked(script: Script, read: ast.expr) -> bool:
    """Whether a test asks for the list: who does so knows that it may not be there."""
    tree = script.names.tree(read)
    child: ast.AST = read
    above = tree.parent.get(read)
    while isinstance(above, ast.expr | ast.If | ast.While):
        if isinstance(above, ast.Compare | ast.BoolOp):
            return True
        if isinstance(above, ast.If | ast.While | ast.IfExp):
            return child is above.test
        child, above = above, tree.parent.get(above)
    return isinstance(above, ast.Assert)


def _on_others(script: Script, use: ast.expr, root: int) -> bool:
    """Whether a line that needs the list is run by ranks that don't have it."""
    tree = script.names.tree(use)
    above = tree.parent.get(use)
    if isinstance(above, ast.Return | ast.Delete):
        return False  # handed on as it is
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Call) and above in script.collectives.direct:
            return False  # sent on to the others
        above = tree.parent.get(above)
    while above is not None:
        if isinstance(above, ast.Try):
            return False
        above = tree.parent.get(above)
    guards = script.guards.around(use)
    if any(g.condition.keeps_off(root) for g in guards):
        return True
    return not any(g.condition.partial for g in guards) and script.guards.on_every_rank(use)


def _of_a_share(script: Script, given: ast.expr) -> bool:
    """Whether a value is made of what a loop counted over one rank's share."""
    for draw in script.training.draws:
        if any(script.sharding.of(loader) is Shared.YES for loader in draw.loaders):
            counted = script.reductions.counted(draw)
            if counted and script.reductions.made_of(draw, counted, [given]):
                return True
    return False
