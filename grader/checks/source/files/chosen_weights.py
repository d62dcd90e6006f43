"""Weights that are kept, or saved, for being the best by what one rank counted over its own share."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import weight_saves
from grader.checks.source.ranks.divergence import Divergence
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import end, names_in, start, walk


@dataclass(frozen=True, slots=True)
class OwnChoice:
    """A comparison by which the best weights are chosen, and what says so.

    Attributes:
        test: the comparison. kept: what is kept then. later: a call further down that brings the counts together.
        says: follows a place, such as `train.py:7`. hint: what to write.
    """

    test: ast.Compare
    kept: ast.Call
    later: ast.Call
    says: str
    hint: str


def chosen_by_own_share(script: Script) -> Iterable[OwnChoice]:
    """All of them; where a framework or other code brings values together unseen, there are none."""
    if not script.joins_group or script.frameworks.opaque:
        return
    divergence = Divergence(script)
    taken = {*script.called("state_dict"), *(c for c in weight_saves(script) if isinstance(c, ast.Call))}
    for tree in script.trees:
        for branch in (n for n in walk(tree.root) if isinstance(n, ast.If)):
            kept = next(
                (c for c in tree.calls_within(branch) if c in taken and _in_body(script, branch, c)), None
            )
            for test in _better(branch.test) if kept is not None else ():
                apart = divergence.of(test)
                later = _reduced_later(script, branch, test)
                if kept is not None and later is not None and apart is not None and apart.kind == "batch":
                    yield _choice(script, test, kept, later)
                    break


def _in_body(script: Script, branch: ast.If, call: ast.Call) -> bool:
    return any(script.names.tree(call).inside(call, s) for s in branch.body)


def _better(test: ast.expr) -> Iterable[ast.Compare]:
    """Comparisons of which is the larger."""
    for node in walk(test):
        if isinstance(node, ast.Compare) and all(
            isinstance(o, ast.Lt | ast.Gt | ast.LtE | ast.GtE) for o in node.ops
        ):
            yield node


def _reduced_later(script: Script, branch: ast.If, test: ast.Compare) -> ast.Call | None:
    """A collective below that is given what the comparison is made of; counts that never are, EVAL001 tells of."""
    tree = script.names.tree(branch)
    own = names_in(test)
    for call in script.collectives.direct:
        below = script.names.tree(call) is tree and tree.scope(call) is tree.scope(branch)
        if below and start(call) >= end(branch) and own & names_in(call):
            return call
    return None


def _choice(script: Script, test: ast.Compare, kept: ast.Call, later: ast.Call) -> OwnChoice:
    return OwnChoice(
        test,
        kept,
        later,
        f"chooses the weights to keep, {script.quote(kept)} at {script.at(kept)}, by what this rank alone counted over "
        f"its share: {script.quote(test)}. What is the best on one share need not be the best on the whole set. The "
        f"counts are brought together only at {script.at(later)}.",
        f"Compare below {script.at(later)}, where the counts are those of all ranks.",
    )
