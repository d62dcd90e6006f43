"""Whether what a validation loop counts is brought together over the ranks afterwards.

Looks for any collective that gathers or reduces and has the loop's counts in its arguments, directly or through the
submission's own functions. It prefers silence: a reduction that may be meant for the loop counts as one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.sites import Calls
from grader.checks.source.collectives.collective_calls import REDUCING, Collectives
from grader.checks.source.collectives.rank_messages import is_message, is_turn
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    UNKNOWN,
    end,
    loop_above,
    name_of,
    names_in,
    start,
    walk,
)
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.training_loops import Draw, Training
from grader.checks.source.values.collected_values import GROWING
from grader.checks.source.values.sources import Values

_REDUCERS = frozenset(name.rpartition(".")[2] for name in REDUCING)
_TELLING = ("reduce", "gather", "synchron", "sync_", "full_tensor")
_STORE_READS = ("get", "multi_get", "add")
"""Of a key-value store; what is added to a number in it comes back as the sum of all ranks."""


@lru_cache(maxsize=4096)
def names_reduction(name: str) -> bool:
    """Whether a function is called after what it does: `reduce_mean`, `gather_all`, `synchronize_between_processes`."""
    return name not in ("no_sync", "reduce_on_plateau") and any(t in name.lower() for t in _TELLING)


def _reads_store(call: ast.Call) -> bool:
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in _STORE_READS
        and "store" in name_of(func.value).lower()
    )


class Reductions:
    """Counts of loops, and the collectives that bring them together."""

    def __init__(
        self, names: Names, calls: Calls, values: Values, collectives: Collectives, training: Training
    ) -> None:
        self._calls = calls
        self._reducing: list[ast.Call] | None = None
        self._names, self._values, self._collectives, self._training = names, values, collectives, training

    def counted(self, draw: Draw) -> set[str]:
        """Names whose values grow inside a loop: `correct += …`, `totals[0] += …`, `losses.append(…)`."""
        tree = self._names.tree(draw.loop)
        scope = tree.scope(draw.loop)
        found: set[str] = set()
        for name, definitions in tree.definitions.get(scope, {}).items():
            if any(d.node is draw.loop for d in definitions):
                continue  # the batch itself, which the body may move or cast
            for definition in definitions:
                grows = definition.kind == "augment" or self._reads_itself(name, definition.value)
                if grows and tree.inside(definition.node, draw.loop):
                    found.add(name.partition("[")[0].partition(".")[0])
        for call in tree.calls_within(draw.loop):
            if isinstance(call.func, ast.Attribute) and call.func.attr in GROWING:
                owner = call.func.value
                if isinstance(owner, ast.Name) and tree.scope(call) is scope:
                    found.add(owner.id)
        return found - {"self"}

    def reduced(self, draw: Draw, counted: set[str]) -> bool:
        """Whether some reduction may bring a loop's counts together."""
        tree = self._names.tree(draw.loop)
        function = tree.function(draw.loop)
        own = function is not None and not self._training_too(function)
        calls = self._reducing_calls()
        for call in calls:
            if tree.inside(call, draw.loop):
                return True
            beside = self._names.tree(call).function(call) is function and not self._of_other(call, counted)
            if beside and (own or self._follows(tree, draw, call)):
                return True
            named = any(isinstance(n, ast.Name) and n.id in counted for n in walk(call))
            if named and self._names.tree(call) is tree and tree.scope(call) is tree.scope(draw.loop):
                return True
        # Only where nothing stands nearby is it worth following values through other functions.
        parts = [p for c in calls for p in (*arguments_of(c), c.func)]
        return self.made_of(draw, counted, parts) or self._of_callers(function, counted, parts)

    def _of_callers(self, function: ast.AST | None, counted: set[str], parts: Iterable[ast.expr]) -> bool:
        """Whether one of these values is made of what callers handed in for a loop to count into."""
        if not isinstance(function, FUNCTIONS):
            return False
        given = [
            expression
            for name in counted
            for site in self._calls.sites(function)
            if (expression := self._calls.bound(site, function, name)) is not None
            and expression is not UNKNOWN
        ]
        # A number is another one after the call: only what can be changed in place comes back.
        made = {o for g in given for o in self._values.origins(g) if not isinstance(o, ast.Constant)}
        return any(not made.isdisjoint(self._values.closure(part)) for part in parts) if made else False

    def made_of(self, draw: Draw, counted: set[str], parts: Iterable[ast.expr]) -> bool:
        """Whether one of these values is made of what a loop counts, through other functions, too."""
        tree = self._names.tree(draw.loop)
        inside: set[ast.AST] = {
            n for s in draw.loop.body for n in walk(s) if isinstance(n, ast.expr | ast.stmt)
        }
        scope = tree.scope(draw.loop)
        inside.update(n for name in counted for n in tree.loads.get(name, ()) if tree.scope(n) is scope)
        return any(not inside.isdisjoint(self._values.closure(part)) for part in parts)

    def takes(self, nodes: Iterable[ast.AST]) -> bool:
        """Whether a call that brings values of the ranks together is given what one of these has a part in."""
        own = set(nodes)
        given = (p for c in self._reducing_calls() for p in (*arguments_of(c), c.func))
        return any(not own.isdisjoint(self._values.closure(part)) for part in given)

    def reducing_after(self, draw: Draw) -> list[ast.Call]:
        """Calls below a loop, in its own function, that bring values of the ranks together, first one first."""
        tree = self._names.tree(draw.loop)
        scope = tree.scope(draw.loop)
        below = [
            c
            for c in self._reducing_calls()
            if self._names.tree(c) is tree and tree.scope(c) is scope and start(c) > end(draw.loop)
        ]
        return sorted(below, key=start)

    def _of_other(self, call: ast.Call, counted: set[str]) -> bool:
        """Whether a collective plainly reduces something else: a tensor made anew, that holds none of the counts."""
        given = call.args[0] if call.args else None
        name = self._names.qualified(call.func) or ""
        if not isinstance(given, ast.Name) or name not in (
            "torch.distributed.all_reduce",
            "torch.distributed.reduce",
        ):
            return False
        tree = self._names.tree(call)
        before = [n for n in tree.loads.get(given.id, ()) if start(n) < start(given)]
        made = self._values.origins(given)
        plain = (
            len(made) == 1
            and isinstance(made[0], ast.Call)
            and (self._names.qualified(made[0].func) in ("torch.tensor", "torch.as_tensor"))
        )
        # What is filled or handed on before may hold anything.
        if not plain or before or given.id in counted:
            return False
        return not any(isinstance(n, ast.Name) and n.id in counted for n in self._values.closure(given))

    def first_use(self, draw: Draw, counted: set[str]) -> ast.stmt | None:
        """The first statement after a loop that reads what it counted."""
        tree = self._names.tree(draw.loop)
        scope = tree.scope(draw.loop)
        loads = [n for name in counted for n in tree.loads.get(name, ())]
        later = [n for n in loads if start(n) > end(draw.loop) and tree.scope(n) is scope]
        return tree.statement(min(later, key=start)) if later else None

    def _reads_itself(self, name: str, value: ast.expr | None) -> bool:
        return value is not None and name in names_in(value)

    def _reducing_calls(self) -> list[ast.Call]:
        if self._reducing is None:
            self._reducing = [
                c for tree in self._training.trees for c in self._likely(tree) if self.reduces(c)
            ]
        return self._reducing

    def _likely(self, tree: Tree) -> list[ast.Call]:
        """The calls of a file that are called after a reduction, that run a collective, or that may be of a method."""
        likely = set(tree.called_like(lambda name: names_reduction(name) or self._calls.methods(name)))
        return [c for c in tree.calls if c in likely or c in self._collectives.running or self._exchanges(c)]

    def _exchanges(self, call: ast.Call) -> bool:
        """Whether a call, or one in the function that it calls, is named after a reduction or gets other ranks' part.

        So do those of functional collectives, of a process group's own methods and of a key-value store.
        """
        bodies = (self._names.tree(t).calls_within(t) for t in self._calls.targets(call))
        return any(
            names_reduction(name_of(inner))
            or _reads_store(inner)
            or is_message(self._names, inner)
            or is_turn(self._names, self._values, inner)
            for body in ((call,), *bodies)
            for inner in body
        )

    def reduces(self, call: ast.Call) -> bool:
        """Whether a call brings values of the ranks together, or is called as if it did."""
        if self._exchanges(call):
            return True
        name = name_of(call)
        inside = self._collectives.running.get(call, ())
        methods = self._calls.methods(name) if isinstance(call.func, ast.Attribute) else ()
        if methods and not self._calls.targets(call):
            # An object of a class nobody can tell: any method of that name may be meant.
            inside += tuple(c for m in methods for s in m.body for c in self._collectives.inside(s))
        return bool(inside) and any(c.name in _REDUCERS for c in inside)

    def _training_too(self, function: ast.AST) -> bool:
        """A function that also holds a training loop: its reductions may be the training loss's."""
        tree = self._names.tree(function)
        return any(d.trains and tree.inside(d.loop, function) for d in self._training.draws)

    def _follows(self, tree: Tree, draw: Draw, call: ast.Call) -> bool:
        """In one flat body: whether a reduction stands between the loop and the next round of the training loop."""
        if start(call) < end(draw.loop):
            return False
        above = loop_above(tree.parent, draw.loop)
        return above is None or tree.inside(call, above)
