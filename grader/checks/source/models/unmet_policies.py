"""Tests that pick which modules are sharded: where a run sharded none by them, they are what to look at."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.phrases import listed
from grader.checks.source.causes import stands_at
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, ancestors, name_of, walk
from grader.model.call_site import Site

_LISTS = (ast.Set, ast.List, ast.Tuple, ast.Dict, ast.Constant, ast.Lambda)


@dataclass(frozen=True, slots=True)
class UnmetPolicy:
    """A call of `fully_shard` that no module came to.

    Attributes:
        call: that call. picks: the test above it, or the loop that finds nothing; made: what that goes by.
    """

    call: ast.Call
    picks: ast.AST
    made: tuple[ast.AST, ...]

    def says(self, script: Script) -> str:
        """What came of it, as a sentence."""
        by = f" ({', '.join(script.at(n) for n in self.made)})" if self.made else ""
        if isinstance(self.picks, LOOPS):
            return f"The loop at {script.at(self.picks)} found no module for {script.at(self.call)} to shard{by}."
        return (
            f"{script.at(self.call)} would shard parts of it, but {script.quote(self.picks)} at "
            f"{script.at(self.picks)}{by} held for none of its modules."
        )

    def hint(self, script: Script, whole: str) -> str:
        """What to write; `whole`: the class of the model that was sharded as one."""
        own = [f"`{name}`" for name in _modules(script) if name != whole]
        such = f", such as {listed(own, 3)}" if own else ""
        return f"Let it hold for the blocks of this model, by the names or classes that they have here{such}."


def unmet_policy(script: Script, met: Site | None) -> UnmetPolicy | None:
    """The first one, beside the call that sharded the whole model at a place; None where the text has none."""
    for call in script.called("fully_shard"):
        if stands_at(script, call, met):
            continue
        tree = script.names.tree(call)
        above = list(ancestors(tree.parent, call, tree.function(call)))
        tests = [one.test for one in above if isinstance(one, ast.If | ast.IfExp)]
        loops = [one for one in above if isinstance(one, LOOPS)]
        for picks in (*tests, *loops):
            asked = picks.iter if isinstance(picks, ast.For | ast.AsyncFor) else picks
            return UnmetPolicy(call, picks, tuple(dict.fromkeys(_goes_by(script, asked))))
    return None


def _goes_by(script: Script, test: ast.AST) -> Iterable[ast.AST]:
    """Where the names of a test come from: lists of classes, predicates."""
    for part in walk(test):
        if isinstance(part, ast.Call) and script.graph.targets(part):
            yield from (t for t in script.graph.targets(part) if isinstance(t, FUNCTIONS))
        elif isinstance(part, ast.Name):
            yield from (o for o in script.values.origins(part) if isinstance(o, _LISTS))


def _modules(script: Script) -> list[str]:
    classes = (c for tree in script.trees for c in tree.classes)
    return [c.name for c in classes if any(name_of(base) == "Module" for base in c.bases)]
