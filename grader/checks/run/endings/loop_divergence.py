"""Where ranks of one run parted ways: which of them went on with a loop that others had left, and after how much.

Joins the ledger's epochs with the places where ranks stood. Whether that was a stop, an uneven share or something else
is for the diagnoses to say.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.run.data.epoch_shards import EpochShards, Shard
from grader.checks.run.data.sample_ledger import Stream
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.rank_position import Fate, RankPosition
from grader.checks.source.data.uneven_rounds import equal_rounds, uneven_rounds
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop, loop_above
from grader.checks.source.syntax.tree import Tree
from grader.model.drawn_data import Pass
from grader.model.finding import Location

# Between an exception and the end of the loop that it leaves.
_AT_ONCE_S = 0.02


@dataclass(frozen=True, slots=True)
class LoopDivergence:
    """Ranks at different places of their training.

    Attributes:
        behind: ranks that had left the loop over epochs; ahead: those that were in one epoch more.
        finished: epochs that the ranks behind had begun.
    """

    behind: tuple[RankPosition, ...]
    ahead: tuple[RankPosition, ...]
    finished: int


def stopped_training(run: FailedRun) -> LoopDivergence | None:
    """Ranks that had left the loop over epochs while others were in one epoch more; None where nobody had."""
    for stream in run.evidence.ledger.training:
        begun = {s.rank: _passes(run, stream, s.rank) for s in run.positions}
        most = max(len(passes) for passes in begun.values())
        if not most:
            continue
        # The last epoch may hold no step yet, so the ledger need not know it: the passes over the loader do.
        ahead = tuple(
            s
            for s in run.positions
            if len(begun[s.rank]) == most
            and _still_in(run, s.rank, begun[s.rank][-1].exhausted, begun[s.rank][-1].ended_t)
        )
        behind = tuple(s for s in run.positions if len(begun[s.rank]) < most and s.fate is not Fate.UNKNOWN)
        if ahead and behind and all(_outside(run, s, ahead[0]) for s in behind):
            return LoopDivergence(behind, ahead, max(len(begun[s.rank]) for s in behind))
    return None


def _passes(run: FailedRun, stream: Stream, rank: int) -> list[Pass]:
    """A rank's passes over the stream's loaders, which may be built anew for each epoch."""
    sites = {s.loader.site for e in stream.epochs for s in e.shards if s.loader is not None}
    loaders = {ld.id for ld in run.evidence.rank(rank).loaders if ld.site in sites and ld.site is not None}
    return [p for p in run.evidence.rank(rank).passes if p.loader in loaders]


def left_epoch(run: FailedRun) -> tuple[EpochShards, tuple[Shard, ...], tuple[Shard, ...]] | None:
    """An epoch that some ranks were still in when others had left it: the epoch, who left, who went on."""
    for stream in run.evidence.ledger.training:
        for epoch in stream.epochs:
            still = tuple(s for s in epoch.shards if _still_in(run, s.rank, s.exhausted, s.end_t))
            gone = tuple(s for s in epoch.shards if s not in still)
            if epoch.own and gone and still:
                least = min(s.num_batches for s in gone)
                still = tuple(s for s in still if s.num_batches >= least and _in_step(run, s.rank))
                if still:
                    return epoch, gone, still
    return None


def exits(
    run: FailedRun, stand: RankPosition, *, of_epoch: bool = False
) -> tuple[ast.Return | ast.Break, ...]:
    """`break` and `return` statements that leave the loop over epochs (or over batches), guarded ones first."""
    found = _loop(run, stand, innermost=of_epoch)
    if found is None:
        return ()
    tree, loop = found
    leaving: list[ast.Return | ast.Break] = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Return) and tree.function(node) is tree.function(loop):
            leaving.append(node)
        if isinstance(node, ast.Break) and loop_above(tree.parent, node) is loop:
            leaving.append(node)
    guards = run.evidence.script.guards
    return tuple(sorted(leaving, key=lambda n: (guards.partial(n) is None, n.lineno)))


def _still_in(run: FailedRun, rank: int, exhausted: bool | None, ended_t: float | None) -> bool:
    """Whether a rank was in the pass at last: it never came to its end, or an exception ended it."""
    if exhausted is None or exhausted:
        return exhausted is None
    failure = run.positions[rank].failure
    return failure is not None and ended_t is not None and ended_t >= failure.t - _AT_ONCE_S


def _in_step(run: FailedRun, rank: int) -> bool:
    """Whether a rank waited in what belongs to a training step, or lost its partner there."""
    stand = run.positions[rank]
    return stand.inside_wrapper or stand.fate is Fate.LOST or stand.fate is Fate.FAILED


def _outside(run: FailedRun, stand: RankPosition, other: RankPosition) -> bool:
    """Whether a rank was no longer in the outermost loop that another one stood in."""
    if stand.fate is Fate.ENDED:
        return True
    found = _loop(run, other, innermost=False)
    if found is None or not stand.frames:
        return False
    tree, loop = found
    end = loop.end_lineno or loop.lineno
    return not any(f.path == tree.path and loop.lineno <= f.line <= end for f in stand.frames)


def _loop(run: FailedRun, stand: RankPosition, *, innermost: bool) -> tuple[Tree, Loop] | None:
    """The outermost loop on a rank's stack, or the innermost one."""
    for frame in stand.frames if innermost else reversed(stand.frames):
        tree = next((t for t in run.evidence.script.trees if t.path == frame.path), None)
        around = [n for n in tree.loops if _holds(n, frame.line)] if tree is not None else []
        if around and tree is not None:
            around.sort(key=lambda n: (n.lineno, -(n.end_lineno or 0)))
            return tree, around[-1 if innermost else 0]
    return None


def _holds(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def shorter_loop(script: Script) -> tuple[tuple[Location, ...], str]:
    """Where the text makes a training loop longer on some ranks than on others, and what to write there."""
    for node, _ in uneven_rounds(script):
        written, _ = equal_rounds(script, node)
        if written:
            said = f"Let all ranks go through the loop at {script.at(node)} equally often: write `{written}`, not what "
            return (script.location(node),), said + f"holds the rank, in {script.quote(node)}."
    return (), ""
