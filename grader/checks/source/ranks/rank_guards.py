"""On which ranks does a line run: tests of the rank, early exits, decorators, and all of these at every call site.

Puts together what `conditions` reads one by one. A place that no known call leads to is claimed by nobody: neither to
run everywhere nor to be guarded.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from grader.checks.source.calls.decorated_functions import DecoratedFunctions
from grader.checks.source.calls.sites import Calls
from grader.checks.source.calls.ways import led_to, led_to_only, ways_to
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_sets import Condition, RankSet
from grader.checks.source.ranks.rank_tests import MAIN_NAME, Conditions
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, block_of, name_of, start
from grader.checks.source.values.reaching_assignments import leaves

_BRANCHES = (ast.If, ast.While)
_MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that a node runs under, with the node that states it."""

    condition: Condition
    test: ast.AST


class Guards:
    """Rank conditions over all files."""

    def __init__(self, names: Names, calls: Calls, conditions: Conditions, owners: LoopOwners) -> None:
        self._names, self._calls, self._conditions, self._owners = names, calls, conditions, owners
        self._decorators = DecoratedFunctions(names, calls)
        self._guards: dict[ast.AST, tuple[Guard, ...]] = {}
        self._run_only: dict[RankSet, Set[ast.AST | None]] = {}
        self._exits: dict[int, list[tuple[ast.If, bool]]] = {}

    def around(self, node: ast.AST) -> tuple[Guard, ...]:
        """Rank conditions a node runs under inside its own function, innermost first."""
        if node not in self._guards:
            self._guards[node] = ()  # ends a decorator that decorates itself
            self._guards[node] = tuple(self._local(node))
        return self._guards[node]

    def partial(self, node: ast.AST) -> Guard | None:
        """The innermost local condition that keeps a node from some ranks."""
        return next((g for g in self.around(node) if g.condition.partial), None)

    def alone(self, node: ast.AST) -> bool:
        """Whether a node runs only where there are no other ranks (a fallback for one process), call sites included."""
        return self._only(RankSet.ALONE, node)

    def among_others(self, node: ast.AST) -> bool:
        """Whether a node runs only in a distributed run, so that a single process goes without it."""
        return self._only(RankSet.DISTRIBUTED, node)

    def _only(self, which: RankSet, node: ast.AST) -> bool:
        def here(place: ast.AST) -> bool:
            return any(g.condition.which is which for g in self.around(place))

        if which not in self._run_only:
            self._run_only[which] = led_to_only(self._names, self._calls, here)
        return here(node) or self._names.tree(node).function(node) in self._run_only[which]

    def by_others(self, node: ast.AST) -> Guard | None:
        """The test that keeps rank 0, and nobody else, from a node, on some path of known calls."""

        def free(place: ast.AST) -> bool:
            return self.partial(place) is None and not self.alone(place)

        for place in ways_to(self._names, self._calls, node, most=_MAX_DEPTH, goes_on=free):
            local = [g for g in self.around(place) if g.condition.partial]
            others = all(g.condition.which is RankSet.OTHERS and g.condition.sure for g in local)
            if local and others and not self.alone(place):
                return local[0]
        return None

    def called_by_some(self, node: ast.AST) -> bool:
        """Whether all calls of a node's function stand under a test that keeps them from some ranks."""
        function = self._names.tree(node).function(node)
        sites = self._calls.sites(function) if function is not None else []
        return bool(sites) and all(self.partial(site.call) is not None for site in sites)

    def on_every_rank(self, node: ast.AST) -> bool:
        """Whether some path of known calls leads to a node with no rank condition on the way.

        False also where no path is known: methods that a library calls (but for known hooks), functions that nobody
        calls.
        """
        if self._kept_from_some(node):
            return False
        function = self._names.tree(node).function(node)
        return self._module_is_ranked() if function is None else function in self._run_on_every_rank

    @cached_property
    def _run_on_every_rank(self) -> set[ast.AST]:
        decorated = {f for f in self._calls.functions if self._decorated(f) is not None}
        return led_to(
            self._names,
            self._calls,
            lambda f: f not in decorated and self._begun(f),
            by=lambda site, f: f not in decorated and not self._kept_from_some(site.call),
        )

    def _begun(self, function: Function) -> bool:
        """Whether a function runs on every rank that no other function of the submission calls there."""
        sites = self._calls.sites(function)
        outside = (s.call for s in sites if self._names.tree(s.call).function(s.call) is None)
        return (
            any(s.spawned for s in sites)
            or any(self.on_every_rank(call) for call in outside)
            or self._owners.calls_everywhere(function)
            or any(self._handed_on(m) for m in self._calls.references(function))
        )

    def _handed_on(self, mention: ast.AST) -> bool:
        """A function named as an argument of a library call runs where that call runs; started processes apart."""
        above = self._names.tree(mention).parent[mention]
        in_call = isinstance(above, ast.Call) and not self._calls.targets(above)
        return in_call and self._names.tree(mention).function(mention) is None and self.on_every_rank(above)

    def _kept_from_some(self, node: ast.AST) -> bool:
        return any(g.condition.partial or g.condition.which is RankSet.ALONE for g in self.around(node))

    def _module_is_ranked(self) -> bool:
        # With `mp.spawn` the module level runs in the parent, once; under torchrun it runs on every rank.
        return not self._calls.spawn_sites

    def _decorated(self, function: Function) -> Guard | None:
        """The decorator that keeps a function from some ranks; of `ALL` where nobody can tell from which."""
        for decorator in function.decorator_list:
            condition = self._left_to(decorator)
            if condition is not None:
                return Guard(condition, decorator)
        return None

    def _left_to(self, decorator: ast.expr) -> Condition | None:
        """The ranks on which a decorator runs its function, by the tests around the places that use it."""
        uses = [u for p in self._decorators.receiving(decorator) for u in self._uses(p)]
        guards = [g for u in uses if (g := self.partial(u)) is not None]
        if guards:
            same = len(guards) == len(uses) and len({g.condition.which for g in guards}) == 1
            return guards[0].condition if same else Condition(RankSet.ALL)
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        # `@hydra.main(…)` marks the entry point, which is no matter of ranks.
        if not MAIN_NAME.search(name_of(named)) or name_of(named) == "main":
            return None
        unclear = self._calls.definition(named) is not None or "first" in name_of(named).lower()
        return Condition(RankSet.ALL if unclear else RankSet.MAIN)

    def _uses(self, parameter: ast.arg) -> list[ast.Name]:
        """Where a decorator calls the function that it was given, or gives it back as it is."""
        tree = self._names.tree(parameter)
        function = tree.function(parameter)
        loads = [n for n in tree.loads.get(parameter.arg, ()) if function and tree.inside(n, function)]
        return [
            n for n in loads if getattr(tree.parent[n], "func", None) is n or _is_returned(tree.parent, n)
        ]

    def _local(self, node: ast.AST) -> list[Guard]:
        tree = self._names.tree(node)
        found: list[Guard] = []
        tests: list[tuple[ast.expr, bool]] = []
        child, above = node, tree.parent.get(node)
        while above is not None and not isinstance(child, FUNCTIONS):
            is_statement = isinstance(child, ast.stmt)
            if is_statement and child is not node and not isinstance(node, ast.stmt):
                return [*found, *self.around(child)]  # as for all expressions of the statement
            if isinstance(above, _BRANCHES) and child is not above.test:
                self._note(found, above.test, child in above.body)
                tests.append((above.test, child in above.body))
            elif isinstance(above, ast.IfExp) and child is not above.test:
                self._note(found, above.test, child is above.body)
            elif isinstance(above, ast.For | ast.AsyncFor) and child in above.body:
                condition = self._rounds(above.iter)
                if condition.which is not RankSet.ALL:
                    found.append(Guard(condition, above.iter))
            elif isinstance(above, ast.Match) and isinstance(child, ast.match_case):
                condition = self._conditions.of_case(above, child)
                if condition.which is not RankSet.ALL:
                    found.append(Guard(condition, child.pattern))
            elif isinstance(above, ast.BoolOp) and isinstance(child, ast.expr):
                for value in above.values[: above.values.index(child)]:
                    self._note(found, value, isinstance(above.op, ast.And))
            block = block_of(tree.parent, child) if is_statement else []
            for branch, holds in self._exits_of(block) if block else ():
                if start(branch) < start(child) and self._stands(branch.test, holds, tests):
                    self._note(found, branch.test, holds)
            child, above = above, tree.parent.get(above)
        left = self._decorated(child) if isinstance(child, FUNCTIONS) and child is not node else None
        if left is not None and left.condition.which is not RankSet.ALL:
            found.append(left)
        return found

    def _rounds(self, gone_through: ast.expr) -> Condition:
        """The ranks on which a loop comes to its body at all; of a generator, those on which it yields anything."""
        targets = self._calls.targets(gone_through) if isinstance(gone_through, ast.Call) else ()
        yields = [y for t in targets for y in self._names.tree(t).yields.get(t, ())]
        guards = [self.partial(y) for y in yields]
        for which in (RankSet.MAIN, RankSet.OTHERS) if yields else ():
            if all(g is not None and g.condition.which is which for g in guards):
                return Condition(which)
        return Condition(RankSet.ALL) if yields else self._conditions.filled(gone_through)

    def _stands(self, test: ast.expr, holds: bool, tests: list[tuple[ast.expr, bool]]) -> bool:
        """Whether the test of an early exit says something of ranks that the tests further in don't refute."""
        if self._conditions.of(test).which is RankSet.ALL:
            return False
        known = {fact for inner, held in tests for fact in _facts(inner, held)}
        return not (known and _refuted(test, holds, known))

    def _note(self, found: list[Guard], test: ast.AST, holds: bool) -> None:
        condition = self._conditions.of(test)
        if condition.which is not RankSet.ALL:
            found.append(Guard(condition if holds else condition.negated(), test))

    def _exits_of(self, block: list[ast.stmt]) -> list[tuple[ast.If, bool]]:
        """The `if`s of a block one branch of which leaves: what follows runs where the other branch is taken."""
        if id(block) not in self._exits:
            found = []
            for statement in block:
                if isinstance(statement, ast.If):
                    if leaves(self._names, statement.body):
                        found.append((statement, False))
                    elif leaves(self._names, statement.orelse):
                        found.append((statement, True))
            self._exits[id(block)] = found
        return self._exits[id(block)]


def _is_returned(parent: Mapping[ast.AST, ast.AST], node: ast.AST) -> bool:
    """`return function if rank == 0 else nothing`."""
    above = parent[node]
    while isinstance(above, ast.IfExp | ast.BoolOp):
        above = parent[above]
    return isinstance(above, ast.Return)


def _facts(test: ast.expr, holds: bool) -> set[tuple[str, bool]]:
    """What is known of the parts of a test where it holds, or fails: their text, and whether each is true."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _facts(test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        settled = isinstance(test.op, ast.And) is holds
        return {f for value in test.values for f in _facts(value, holds)} if settled else set()
    return {(ast.unparse(test), holds)}


def _refuted(test: ast.expr, holds: bool, known: set[tuple[str, bool]]) -> bool:
    """Whether an exit, taken where `test` is not as `holds` says, is never taken where these facts are true.

    `if not sharded and rank != 0: return` keeps nobody from what stands under `if sharded:`.
    """
    return any((text, not truth) in known for text, truth in _facts(test, not holds))
