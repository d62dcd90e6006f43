"""Positions that begin at a rank's own place and move on by one rank's batch: `start = rank * n`, then `start += n`.

What all ranks together read in a step is as many batches as there are ranks. Decides nothing: that ranks read the same
samples, a run has shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import CauseInText, names_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import READS, part_of, walk

_MAX_DEPTH = 4


def short_advances(script: Script) -> Iterable[CauseInText]:
    """All of them that something is cut out by, in the order of the text."""
    for tree in script.trees:
        cut_by = {ast.unparse(n.lower) for n in walk(tree.root) if isinstance(n, ast.Slice) and n.lower}
        moves = [m for node in walk(tree.root) if (m := _move(script, node)) is not None]
        for move in sorted(moves, key=lambda m: m.step.lineno):
            step, start = move.step, next((s for s in move.starts if _apart(script, s)), None)
            if start is None or move.position not in cut_by:
                continue
            if names_rank(script, step) or _of_all(script, step, 0):
                continue
            own = ast.unparse(step) if isinstance(step, (*READS, ast.Constant)) else f"({ast.unparse(step)})"
            whole = move.written.format(f"{own} * {_world(script, step)}")
            yield CauseInText(
                (step, start),
                f"{script.at(step)} moves on by {script.quote(step)} in each step, from a place of each rank's own, "
                f"{script.quote(start)}: what one rank reads, another has read or reads in its turn.",
                f"Write `{whole}` at {script.at(step)}: that much all ranks together read in a step.",
            )


@dataclass(frozen=True, slots=True)
class _Move:
    """A position, what moves it on, what it may begin at, and how that is written with `{}` for another step."""

    position: str
    step: ast.expr
    starts: tuple[ast.expr, ...]
    written: str


def _move(script: Script, node: ast.AST) -> _Move | None:
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        position = ast.unparse(node.target)
        return _Move(position, node.value, tuple(_begins(script, node.target)), f"{position} += {{}}")
    counted = node.iter if isinstance(node, ast.For) else None
    if not isinstance(node, ast.For) or not isinstance(counted, ast.Call) or len(counted.args) != 3:
        return None
    if script.names.qualified(counted.func) != "range":
        return None
    first, last, step = counted.args
    written = f"range({ast.unparse(first)}, {ast.unparse(last)}, {{}})"
    return _Move(ast.unparse(node.target), step, (first,), written)


def _begins(script: Script, target: ast.expr) -> Iterable[ast.expr]:
    """What a position is set to, elsewhere than where it moves on."""
    if isinstance(target, ast.Attribute):
        found = tuple(script.names.tree(target).attributes.get(target.attr, ()))
    else:
        found = tuple(script.scopes.reaching(ast.unparse(target), target))
    set_to = (part_of(definition) for definition in found if definition.kind == "assign")
    yield from (value for value in set_to if isinstance(value, ast.expr))


def _apart(script: Script, start: ast.expr) -> bool:
    """Whether a place is as many samples behind that of the rank before as something says: `batch * rank`."""
    products = (n for n in walk(start) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mult))
    return any(names_rank(script, product) for product in products)


def _of_all(script: Script, node: ast.expr, depth: int) -> bool:
    """Whether the number of ranks is a factor of a value; that it was divided by makes it one rank's."""
    for origin in script.values.origins(node) if depth < _MAX_DEPTH else ():
        if isinstance(origin, ast.BinOp):
            divided = isinstance(origin.op, ast.Div | ast.FloorDiv | ast.Mod)
            sides = [origin.left] if divided else [origin.left, origin.right]
            if any(_of_all(script, side, depth + 1) for side in sides):
                return True
        elif script.ranks.world(node if isinstance(origin, ast.arg) else origin):
            return True
    return False


def _world(script: Script, node: ast.AST) -> str:
    """How the number of ranks is written where a node stands."""
    tree = script.names.tree(node)
    function, owner = tree.function(node), tree.enclosing_class(node)
    fields = [n for n in walk(owner or ast.Pass()) if isinstance(n, ast.Attribute)]
    for near in (function or tree.root, *fields, tree.root):
        for read in (near,) if near in fields else walk(near):
            if isinstance(read, ast.Attribute) and ast.unparse(read.value) == "self":
                held = [part_of(d) for d in tree.attributes.get(read.attr, ())] or [read]
            elif isinstance(read, ast.Name):
                known = script.scopes.reaching(read.id, node)
                held = [part_of(d) if d.kind == "assign" else read for d in known]
            else:
                continue
            if held and all(_is_world(script, value) for value in held):
                return ast.unparse(read)
    return "dist.get_world_size()"


def _is_world(script: Script, value: ast.AST | None) -> bool:
    """Whether a value is the number of ranks; a rank's batch, which that has only a part in, is another."""
    made = script.values.origins(value) if value is not None else ()
    computed = any(isinstance(origin, ast.BinOp | ast.AugAssign) for origin in made)
    return value is not None and not computed and bool(script.ranks.world(value))
