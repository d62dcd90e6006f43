"""Gradient accumulation in the text: several backward passes for each optimizer step.

Three spellings: a step under `if (i + 1) % n == 0`, a step under a counter that is compared, and an inner loop of
backward passes with the step behind it. A round may be a function that a loop calls. Where none of them is plain to
see, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.gradients.updates import Updates
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, Loop, end, start, walk
from grader.checks.source.training_loops import Training
from grader.checks.source.values.reaching_assignments import leaves
from grader.checks.source.values.sources import Values


@dataclass(frozen=True, slots=True)
class Accumulation:
    """One place that accumulates.

    Attributes:
        loop: one round of it is one micro-batch; where a function has all of a round, that function.
        step: the optimizer step. backward: the backward pass, or the call that leads to it, at the loop's own level.
        guard: the `if` that lets only some rounds step; None where the step stands behind the loop.
        every: after how many micro-batches, None unknown.
    """

    loop: Loop | Function
    step: ast.Call
    backward: ast.AST
    guard: ast.If | None
    every: ast.expr | None


class Accumulations:
    """Gradient accumulation over all files."""

    def __init__(self, names: Names, values: Values, training: Training, updates: Updates) -> None:
        self._names, self._values = names, values
        self._training, self._updates = training, updates
        self._found: tuple[Accumulation, ...] | None = None
        self._with_backward = {names.tree(b).function(b) for b in training.backwards}

    @property
    def all(self) -> tuple[Accumulation, ...]:
        """Every accumulation that is plain to see, in the order of the text."""
        if self._found is None:
            self._found = tuple(a for step in self._updates.steps for a in self._at(step))
        return self._found

    def _at(self, step: ast.Call) -> Iterable[Accumulation]:
        # The step may stand in a helper: look at each place from which it is reached.
        for place in (step, *self._sites(step)):
            loop = next(iter((*self._updates.loops_around(place), *self._round(place))), None)
            if loop is None:
                continue
            guard, every = self._guard(place, loop)
            backwards = self._updates.entries(loop, self._training.backwards)
            if guard is not None:
                tree = self._names.tree(loop)
                outside = [b for b in backwards if not tree.inside(b, guard)]
                steps = self._updates.entries(loop, self._updates.steps)
                behind = not tree.inside(place, guard)  # the guard is an early `continue`
                own = [s for s in steps if not behind and not tree.inside(s, guard)]
                if len(outside) < len(backwards) or own:
                    return  # a second model that takes turns, with steps of its own
                if outside and not (isinstance(every, ast.Constant) and every.value == 1):
                    yield Accumulation(loop, step, outside[0], guard, every)
            else:
                yield from self._nested(step, place, loop, backwards)
            return

    def _round(self, step: ast.AST) -> Iterable[Function]:
        """The function around a step, where it also goes backward and a loop calls it: `train_step(images, labels)`."""
        function = self._names.tree(step).function(step)
        if not isinstance(function, FUNCTIONS) or function not in self._with_backward:
            return
        if any(self._updates.loops_around(site.call) for site in self._updates.sites(function)):
            yield function

    def _sites(self, step: ast.Call) -> list[ast.AST]:
        function = self._names.tree(step).function(step)
        if function is None or function in self._with_backward:
            return []
        return [s.call for s in self._updates.sites(function)]

    def _nested(
        self, step: ast.Call, place: ast.AST, outer: Loop | Function, backwards: list[ast.AST]
    ) -> Iterable[Accumulation]:
        """An inner loop of backward passes, the step behind it."""
        if len(backwards) != 1:
            return
        inner = self._updates.loops_around(backwards[0])
        if not inner or inner[0] is outer or start(place) < end(inner[0]):
            return
        if outer not in inner and not isinstance(outer, FUNCTIONS):
            return
        loop = inner[0]
        if any(loop is d.loop and d.iterates for d in self._training.draws):
            return  # a whole pass over a loader for one step: no micro-batches of one batch
        every = None
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and loop.iter.args:
            every = loop.iter.args[0] if self._names.qualified(loop.iter.func) == "range" else None
        yield Accumulation(loop, step, backwards[0], None, every)

    def _guard(self, place: ast.AST, loop: Loop | Function) -> tuple[ast.If | None, ast.expr | None]:
        tree = self._names.tree(place)
        child, above = place, tree.parent.get(place)
        while above is not None and child is not loop:
            if isinstance(above, ast.If) and child in above.body:
                every = self._every(above.test, loop)
                if every is not None:
                    return above, every
            for statement in getattr(above, "body", ()) if not isinstance(above, ast.expr) else ():
                if statement is child:
                    break
                if isinstance(statement, ast.If) and leaves(self._names, statement.body):
                    every = self._every(statement.test, loop)
                    if every is not None:
                        return statement, every
            child, above = above, tree.parent.get(above)
        return None, None

    def _every(self, test: ast.expr, loop: Loop | Function) -> ast.expr | None:
        """The number of micro-batches that a test counts to, by modulus or by a counter that the loop advances."""
        tree = self._names.tree(loop)
        named = [o for n in walk(test) if isinstance(n, ast.Name) for o in self._values.origins(n)]
        for node in (n for part in (test, *named) if isinstance(part, ast.expr) for n in walk(part)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                text = isinstance(node.left, ast.Constant | ast.JoinedStr)
                if not text:
                    return node.right
        for node in walk(test):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.ops) == 1:
                name = node.left.id
                advanced = [
                    d
                    for d in tree.definitions.get(tree.scope(loop), {}).get(name, ())
                    if tree.inside(d.node, loop)
                ]
                grows = any(d.kind == "augment" for d in advanced)
                restarts = any(isinstance(d.value, ast.Constant) and d.kind == "assign" for d in advanced)
                if grows and restarts and isinstance(node.ops[0], ast.Eq | ast.GtE):
                    return node.comparators[0]
        return None
