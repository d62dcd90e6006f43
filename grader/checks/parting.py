"""Where ranks of one run parted ways: which of them went on with a loop that others had left, and after how much.

Joins the ledger's epochs with the places where ranks stood. Whether that was a stop, an uneven share or something else
is for the diagnoses to say.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.case import Case
from grader.checks.nodes import LOOPS
from grader.checks.shard import Epoch, Shard
from grader.checks.stand import Fate, Stand
from grader.checks.tree import Tree


@dataclass(frozen=True, slots=True)
class Apart:
    """Ranks at different places of their training.

    Attributes:
        behind: ranks that took part in the epoch no longer (or not at all); ahead: those that were in it.
        epoch: the epoch that `ahead` was in.
        finished: epochs that the ranks behind had been through before.
    """

    behind: tuple[Stand, ...]
    ahead: tuple[Stand, ...]
    epoch: Epoch
    finished: int


def stopped_training(case: Case) -> Apart | None:
    """Ranks that had left the loop over epochs while others were in one epoch more; None where nobody had."""
    for stream in case.seen.ledger.training:
        last = stream.epochs[-1] if stream.epochs else None
        if last is None or not last.own:
            continue
        inside = {s.rank for s in last.shards if not s.exhausted}
        ahead = tuple(s for s in case.stands if s.rank in inside)
        drew = {s.rank for s in last.shards}
        behind = tuple(s for s in case.stands if s.rank not in drew and s.fate is not Fate.UNKNOWN)
        if ahead and behind and all(_outside(case, s, ahead[0]) for s in behind):
            finished = max((_epochs_of(stream.epochs, s.rank) for s in behind), default=0)
            return Apart(behind, ahead, last, finished)
    return None


def left_epoch(case: Case) -> tuple[Epoch, tuple[Shard, ...], tuple[Shard, ...]] | None:
    """An epoch that some ranks were still in when others had left it: the epoch, who left, who went on."""
    for stream in case.seen.ledger.training:
        for epoch in stream.epochs:
            gone = tuple(s for s in epoch.shards if s.exhausted is not None)
            still = tuple(s for s in epoch.shards if s.exhausted is None)
            if epoch.own and gone and still:
                least = min(s.num_batches for s in gone)
                still = tuple(s for s in still if s.num_batches >= least and _in_step(case, s.rank))
                if still:
                    return epoch, gone, still
    return None


def exits(case: Case, stand: Stand) -> tuple[ast.Return | ast.Break, ...]:
    """`break` and `return` statements that leave the outermost loop a rank stood in; guarded ones first."""
    found = _outermost_loop(case, stand)
    if found is None:
        return ()
    tree, loop = found
    leaving: list[ast.Return | ast.Break] = []
    for node in ast.walk(loop):
        returns = isinstance(node, ast.Return) and tree.function(node) is tree.function(loop)
        if returns or (isinstance(node, ast.Break) and _loop_of(tree, node) is loop):
            leaving.append(node)
    guards = case.seen.script.guards
    return tuple(sorted(leaving, key=lambda n: (guards.partial(n) is None, n.lineno)))


def _in_step(case: Case, rank: int) -> bool:
    """Whether a rank waited in what belongs to a training step, or lost its partner there."""
    stand = case.stands[rank]
    return stand.inside_wrapper or stand.fate is Fate.LOST or stand.fate is Fate.FELL


def _epochs_of(epochs: tuple[Epoch, ...], rank: int) -> int:
    return sum(any(s.rank == rank for s in e.shards) for e in epochs)


def _outside(case: Case, stand: Stand, other: Stand) -> bool:
    """Whether a rank was no longer in the outermost loop that another one stood in."""
    if stand.fate is Fate.ENDED:
        return True
    found = _outermost_loop(case, other)
    if found is None or not stand.frames:
        return False
    tree, loop = found
    end = loop.end_lineno or loop.lineno
    return not any(f.path == tree.path and loop.lineno <= f.line <= end for f in stand.frames)


def _outermost_loop(case: Case, stand: Stand) -> tuple[Tree, ast.For | ast.AsyncFor | ast.While] | None:
    for frame in reversed(stand.frames):
        tree = next((t for t in case.seen.script.trees if t.path == frame.path), None)
        if tree is None:
            continue
        around = [n for n in tree.loops if _holds(n, frame.line)]
        if around:
            return tree, min(around, key=lambda n: (n.lineno, -(n.end_lineno or 0)))
    return None


def _holds(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _loop_of(tree: Tree, node: ast.AST) -> ast.AST | None:
    above = tree.parent.get(node)
    while above is not None and not isinstance(above, LOOPS):
        above = tree.parent.get(above)
    return above
