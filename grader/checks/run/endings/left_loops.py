"""Training loops that some ranks had behind them while others still stood in them, as the stacks of a run tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.source.data.uneven_rounds import uneven_rounds
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, Loop, loop_above
from grader.model.run import Frame, RankRecord

_GONE = re.compile(
    r"[Cc]onnection (was )?(closed|reset|refused)|[Ss]ocket closed|[Bb]roken pipe|remote process exited"
)


@dataclass(frozen=True, slots=True)
class LeftLoop:
    """One such loop: a rank that has left it, a rank that stands in it, and all that have left."""

    loop: Loop
    one: RankRecord
    other: RankRecord
    gone: tuple[RankRecord, ...]


@dataclass(frozen=True, slots=True)
class UnevenLoop:
    """A loop that was left early because its text makes it longer on some ranks.

    Attributes:
        node: the bound, or the exit. sentence: how ranks come to differ. gone: ranks that had left.
    """

    node: ast.AST
    sentence: str
    gone: tuple[int, ...]


def held_ranks(evidence: Evidence) -> list[RankRecord]:
    """Ranks that wait in a collective, or whose collective broke because a partner had gone."""
    return [rank for rank in evidence.record.ranks if _held(rank)]


def left_loops(evidence: Evidence) -> Iterator[LeftLoop]:
    """All of them, for each pair of ranks that stand apart."""
    held = held_ranks(evidence)
    for one in held:
        for other in held:
            loop = _left_loop(evidence.script, one, other) if one is not other else None
            if loop is not None:
                gone = tuple(r for r in held if _left_loop(evidence.script, r, other) is loop)
                yield LeftLoop(loop, one, other, gone)


def uneven_loop(evidence: Evidence) -> UnevenLoop | None:
    """The first of them that the text itself makes longer on some ranks than on others."""
    for left in left_loops(evidence):
        for node, sentence in uneven_rounds(evidence.script):
            if _belongs(evidence.script, node, left.loop):
                return UnevenLoop(node, sentence, tuple(rank.rank for rank in left.gone))
    return None


def _belongs(script: Script, node: ast.AST, loop: Loop) -> bool:
    """Whether a place decides how often that very loop is gone through."""
    around = node if isinstance(node, LOOPS) else loop_above(script.names.tree(node).parent, node)
    return around is loop


def _held(rank: RankRecord) -> bool:
    if rank.failure is not None and rank.exit_code:
        return bool(_GONE.search(rank.failure.message))
    return rank.waiting is not None and bool(rank.waiting.operation)


def _left_loop(script: Script, one: RankRecord, other: RankRecord) -> Loop | None:
    """The loop around the other's line that one has behind it, in the outermost function where they stand apart."""
    if one.waiting is None or other.waiting is None:
        return None
    mine = [f for f in reversed(one.waiting.frames) if f.in_submission]
    theirs = [f for f in reversed(other.waiting.frames) if f.in_submission]
    for here, there in zip(mine, theirs, strict=False):
        if (here.path, here.function) != (there.path, there.function):
            return None
        if here.line != there.line:
            # A loop over a table of metrics is no training: that its entries differ is for DIST009 to say.
            passed = [
                n
                for n in loops_around(script, there)
                if (n.end_lineno or 0) < here.line and script.training.runs_backward(n)
            ]
            return min(passed, key=lambda n: n.lineno, default=None)
    return None


def loops_around(script: Script, frame: Frame) -> list[Loop]:
    """Loops of the text that a line of a stack stands in."""
    trees = (tree for tree in script.trees if tree.path == frame.path)
    return [n for tree in trees for n in tree.loops if n.lineno <= frame.line <= (n.end_lineno or 0)]
