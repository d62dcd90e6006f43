"""Where batches and learning rates are counted for another number of ranks than there are, once a run has shown that.

Decides nothing itself: it names the place, and says what to write there in the script's own words.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.causes import CauseInText, by_world, names_world
from grader.checks.source.collectives.joined_groups import in_group
from grader.checks.source.data.share_causes import batch_size_of, loader_at
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import walk
from grader.checks.source.values.data_flow import all_parts
from grader.model.call_site import Site
from grader.model.fix import Fix

_WORLD = "torch.distributed.get_world_size"
_DEVICES = ("torch.cuda.device_count", "torch.accelerator.device_count")
_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


@dataclass(frozen=True, slots=True)
class Miscounted:
    """A number that counts ranks wrongly: where, the part that does, what to write for all of it, and the edits."""

    node: ast.BinOp
    part: ast.expr
    written: str
    fix: Fix | None


def chosen_for_all(script: Script, site: Site | None, total: int, num_loaders: int = 1) -> ast.AST | None:
    """Where a loader's batch is divided among the ranks, once, and what is divided is what all of them took.

    Where a step takes from several loaders, each has its part of it: `BATCH // (2 * world)`.
    """
    loader = loader_at(script, site)
    size = script.argument(loader, "batch_size") if loader is not None else None
    if not isinstance(size, ast.expr) or size is UNKNOWN:
        return None
    shares = [s for s in by_world(script, size) if isinstance(s, ast.BinOp)]
    divided = [s for s in shares if isinstance(s.op, ast.Div | ast.FloorDiv)]
    if len(divided) != 1:
        return None
    share, parts = divided[0], 1
    for product in (s for s in shares if s is not share):
        known = [script.values.constant(side) for side in (product.left, product.right)]
        numbers = [n for n in known if isinstance(n, int)]
        if product not in script.values.origins(share.right) or len(numbers) != 1:
            return None
        parts *= numbers[0]
    written = {p.value for p in all_parts(script, share.left) if isinstance(p, ast.Constant)}
    return share if any(isinstance(n, int) and n * num_loaders == total * parts for n in written) else None


def divided_by_devices(script: Script, site: Site | None) -> Miscounted | None:
    """The batch size of a loader, divided by the number of GPUs that one process sees."""
    loader = loader_at(script, site)
    size = script.argument(loader, "batch_size") if loader is not None else None
    for node in all_parts(script, size) if isinstance(size, ast.expr) and size is not UNKNOWN else ():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.FloorDiv):
            continue
        counted = all_parts(script, node.right)
        if any(isinstance(c, ast.Call) and script.names.qualified(c.func) in _DEVICES for c in counted):
            edits = Edits(script)
            world = f"{edits.name(_WORLD, node)}()"
            edits.replace(node.right, world)
            operator = "//" if isinstance(node.op, ast.FloorDiv) else "/"
            return Miscounted(
                node,
                node.right,
                f"{edits.text(node.left)} {operator} {world}",
                edits.fix("Divides the batch among the ranks.") if in_group(script, node) else None,
            )
    return None


def divided_twice(script: Script, site: Site | None) -> CauseInText | None:
    """The batch size of a loader, divided by the number of ranks once more than it should be."""
    found = [n for n in batch_size_of(script, site) if isinstance(n, ast.BinOp)]
    shares = [n for n in found if isinstance(n.op, ast.Div | ast.FloorDiv) and script.ranks.world(n.right)]
    if not shares:
        return None
    edits, last = Edits(script), shares[0]
    whole = edits.text(last.left)
    if len(shares) < 2:
        what = f"{script.at(last)} divides what is one rank's part already, {script.quote(last)}."
        return CauseInText((last,), what, f"Divide the whole batch there, or write `{whole}` instead.")
    first = shares[1]
    edits.replace(last, whole)
    return CauseInText(
        (last, *shares[1:]),
        f"{script.at(first)} divides it by the number of ranks, {script.quote(first)}, and {script.at(last)} does so "
        f"again, {script.quote(last)}.",
        f"Keep one of the two: at {script.at(last)} write `{whole}` instead of {script.quote(last)}.",
        edits.fix("Divides the batch among the ranks once."),
    )


def rate_of_own_batch(script: Script, base: int) -> Miscounted | None:
    """A quotient of one rank's batch size and the batch that the base learning rate belongs to."""
    own = _own_batches(script)
    for tree in script.trees:
        for node in walk(tree.root):
            if not is_quotient(node):
                continue
            if script.values.constant(node.right) != base or names_world(script, node):
                continue
            part = next(
                (n for n in walk(node.left) if isinstance(n, ast.expr) and _is_own(script, n, own)), None
            )
            if part is not None:
                edits = Edits(script)
                text, world = edits.text(part), f"{edits.name(_WORLD, part)}()"
                whole = f"{text} * {world}" if isinstance(part, _PLAIN) else f"({text}) * {world}"
                edits.replace(part, whole if part is not node.left else f"({whole})")
                fix = edits.fix("Takes the batch of all ranks.") if in_group(script, part) else None
                return Miscounted(node, part, edits.text(node).replace(text, whole, 1), fix)
    return None


def _own_batches(script: Script) -> set[ast.AST]:
    """What the batch sizes of training loaders come from."""
    sizes = [script.argument(one, "batch_size") for one in script.training.loaders() if _trains(script, one)]
    return {
        o
        for s in sizes
        if isinstance(s, ast.expr) and s is not UNKNOWN
        for o in (s, *script.values.origins(s))
    }


def _trains(script: Script, loader: ast.Call) -> bool:
    return script.training.roles(loader).trains


def _is_own(script: Script, node: ast.expr, own: set[ast.AST]) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "batch_size":
        made = script.values.origins(node.value)
        if any(isinstance(o, ast.Call) and _trains(script, o) for o in made):
            return True
    return isinstance(node, ast.Name | ast.Attribute) and bool({node, *script.values.origins(node)} & own)
