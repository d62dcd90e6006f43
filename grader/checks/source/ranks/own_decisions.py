"""Collectives under a test that each rank takes by itself: by its own share of the data, or by a draw of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.collectives.collective_calls import CollectiveCall
from grader.checks.source.ranks.divergence import Divergence
from grader.checks.source.ranks.guard_fixes import above_own_test
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS
from grader.checks.source.values.own_numbers import OwnNumbers, drawn_alike

_KINDS = ("batch", "draw")
_IN_EVERY_ROUND = (
    "Call it on every rank and in every round; put what is decided into the values that are reduced."
)


@dataclass(frozen=True, slots=True)
class OwnDecision:
    """One of them.

    Attributes:
        call: the call under the test that runs a collective; collective: the first that it runs.
        branch: the `if`. kind: `batch` or `draw`; made: what makes the test come out differently.
    """

    call: ast.Call
    collective: CollectiveCall
    branch: ast.If
    kind: str
    made: ast.AST

    def says(self, script: Script) -> str:
        """What the ranks do, and what comes of it."""
        runs = f"{script.at(self.call)} runs `{self.collective.name}` under {script.quote(self.branch.test)}"
        by = f"which each rank works out from its own share of the data ({script.at(self.made)}): some"
        if isinstance(self.made, ast.Call) and self.kind == "draw":
            coin = (
                f"{script.quote(self.made)} at {script.at(self.made)}: {OwnNumbers(script).seeded(self.made)}"
            )
            by = f"where each rank throws a coin of its own, {coin}. Some"
        return f"{runs}, {by} ranks call it and others don't, and every later collective meets the wrong partner."

    def hint(self, script: Script) -> str:
        """What to write instead."""
        if self.kind == "draw":
            return drawn_alike(script, self.made)
        return above_own_test(script, self.call, self.branch) or _IN_EVERY_ROUND

    def nodes(self) -> tuple[ast.AST, ...]:
        """What to look at: of a draw also where it is made, as the line that all the others follow from."""
        return (self.made, self.call, self.collective.call) if self.kind == "draw" else (self.call,)


def own_decisions(script: Script) -> Iterator[OwnDecision]:
    """All of them whose other branch runs no collective, each call under its innermost such test."""
    divergence = Divergence(script)
    for call, inside in script.collectives.running.items():
        tree = script.names.tree(call)
        child: ast.AST = call
        above = tree.parent.get(child)
        while above is not None and not isinstance(child, FUNCTIONS):
            plain = isinstance(above, ast.If) and child is not above.test
            if isinstance(above, ast.If) and plain and not script.conditions.of(above.test).partial:
                apart = divergence.of(above.test)
                other = above.orelse if child in above.body else above.body
                met = any(script.collectives.inside(s) for s in other)
                if apart is not None and apart.kind in _KINDS and not met:
                    yield OwnDecision(call, inside[0], above, apart.kind, apart.node)
                    break
            child, above = above, tree.parent.get(above)
