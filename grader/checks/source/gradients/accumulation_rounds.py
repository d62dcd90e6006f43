"""In which rounds of an accumulating loop exchanges are held back, and in which it steps: both tests, round by round.

Works out tests made of the round's number, a modulus, comparisons and `not`, `and`, `or`; anything else is unknown, and
what is unknown is never claimed. It runs nothing of the submission.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.gradients.sync_switches import Switch, is_no_sync, switched
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_tests import Conditions
from grader.checks.source.syntax.nodes import walk
from grader.checks.source.values.arithmetic import worked_out
from grader.checks.source.values.sources import Values

_EVERY = 4
"""Stands for a number of micro-batches that the text does not tell."""


@dataclass(frozen=True, slots=True)
class CountedRounds:
    """A loop that knows which of its rounds it is in: the name of the number, the first one, how many rounds."""

    name: str
    first: int
    length: ast.expr

    @property
    def last(self) -> str:
        """The test that holds in the last round alone."""
        return f"{self.name} == {ast.unparse(self.length)}" + ("" if self.first else " - 1")


def counted_rounds(loop: ast.AST, names: Names) -> CountedRounds | None:
    """`for i in range(n)`, `for i, batch in enumerate(group)`, also from one on; None for any other."""
    counted = loop.iter if isinstance(loop, ast.For) else None
    if not isinstance(loop, ast.For) or not isinstance(counted, ast.Call) or not counted.args:
        return None
    how, *others = (
        names.qualified(counted.func) or "",
        *counted.args[1:],
        *(k.value for k in counted.keywords),
    )
    if how == "range" and isinstance(loop.target, ast.Name) and not others:
        return CountedRounds(loop.target.id, 0, counted.args[0])
    first = others[0] if others else ast.Constant(0)
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
    if how != "enumerate" or not isinstance(target, ast.Name) or len(others) > 1:
        return None
    begin = first.value if isinstance(first, ast.Constant) else None
    if not isinstance(begin, int) or begin not in (0, 1):
        return None
    length = ast.Call(ast.Name("len", ast.Load()), [counted.args[0]], [])
    return CountedRounds(target.id, begin, length)


class AccumulationRounds:
    """Rounds of accumulating loops over all files."""

    def __init__(self, names: Names, values: Values, conditions: Conditions) -> None:
        self._names, self._values, self._conditions = names, values, conditions

    def held_when_stepping(self, found: Accumulation) -> ast.AST | Switch | None:
        """The `no_sync`, or the switch, that holds the exchange back in a round that steps; None where none does."""
        if found.guard is None:
            return self._held_at_last(found)
        if not self._names.tree(found.guard).inside(found.step, found.guard):
            return None
        for test, holds, place in self._held(found):
            numbers = self._numbers(found.guard.test, test)
            if numbers is None:
                continue
            others = self._other_reasons(found.guard.test)
            for number in range(3 * _EVERY):
                known = {key: (number if value is None else value) for key, value in numbers.items()}
                for assumed in ({}, *({reason: 1} for reason in others)):
                    steps = self._value(found.guard.test, {**known, **assumed}, 0)
                    held = self._value(test, {**known, **assumed}, 0)
                    if steps is not None and held is not None and bool(steps) and bool(held) is holds:
                        return place
        return None

    def _held_at_last(self, found: Accumulation) -> ast.AST | Switch | None:
        """The same in the last round of a loop that counts its rounds, behind which the step stands."""
        counted = counted_rounds(found.loop, self._names)
        if counted is None:
            return None
        number = self._value(counted.length, {}, 0)
        rounds = number if isinstance(number, int) and number > 1 else _EVERY
        known = {_key(counted.length): rounds, counted.name: rounds - 1 + counted.first}
        for test, holds, place in self._held(found):
            held = self._value(test, known, 0)
            if held is not None and bool(held) is holds:
                return place
        return None

    def _other_reasons(self, test: ast.expr) -> list[str]:
        """Alternatives of a test that say nothing of the modulus: `… or i == last`, the last round of an epoch."""
        parts = [p for o in (test, *self._origins(test)) if isinstance(o, ast.BoolOp) for p in o.values]
        return [_key(p) for p in parts if isinstance(p, ast.Compare) and not _counts_rounds(p)]

    def _held(self, found: Accumulation) -> Iterable[tuple[ast.expr, bool, ast.AST | Switch]]:
        """Tests under which the loop holds the exchange back, whether they must hold, and where."""
        tree = self._names.tree(found.loop)
        yield from switched(tree, found, self._conditions)
        for block in tree.withs:
            if not tree.inside(block, found.loop):
                continue
            for item in block.items:
                for context in (item.context_expr, *self._made(item.context_expr)):
                    if isinstance(context, ast.IfExp):
                        for branch, holds in ((context.body, True), (context.orelse, False)):
                            if is_no_sync(branch):
                                yield context.test, holds, context
                above = tree.parent.get(block)
                if is_no_sync(item.context_expr) and isinstance(above, ast.If):
                    yield above.test, block in above.body, block

    def _made(self, node: ast.expr) -> list[ast.expr]:
        if not isinstance(node, ast.Name):
            return []
        tree = self._names.tree(node)
        found = tree.definitions.get(tree.scope(node), {}).get(node.id, [])
        return [found[0].value] if len(found) == 1 and found[0].value is not None else []

    def _numbers(self, *tests: ast.expr) -> dict[str, int | None] | None:
        """Names that stand for the round's number (None) or for the modulus; None where the tests count differently."""
        rounds: list[set[str]] = []
        every: dict[str, int | None] = {}
        for test in tests:
            counted: set[str] = set()
            for node in (n for part in (test, *self._origins(test)) for n in walk(part)):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                    counted |= {_key(n) for n in walk(node.left) if isinstance(n, ast.Name)}
                    if isinstance(node.right, ast.Name | ast.Attribute):
                        every[_key(node.right)] = _EVERY
            rounds.append(counted)
        if any(len(counted) != 1 for counted in rounds) or rounds[0] != rounds[1]:
            return None
        return {**every, **dict.fromkeys(rounds[0])}

    def _origins(self, test: ast.expr) -> list[ast.expr]:
        found = [o for n in walk(test) if isinstance(n, ast.Name) for o in self._values.origins(n)]
        return [o for o in found if isinstance(o, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp)]

    def _value(self, node: ast.expr, known: dict[str, int], depth: int) -> Any:
        """What an expression comes to in one round; None where that can't be told."""
        return worked_out(node, lambda part: self._known(part, known, depth))

    def _known(self, node: ast.expr, known: dict[str, int], depth: int) -> Any:
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, int) else None
        if not isinstance(node, ast.Name | ast.Attribute | ast.Compare | ast.Call):
            return None
        if _key(node) in known or isinstance(node, ast.Compare | ast.Call):
            return known.get(_key(node))
        origins = self._values.origins(node)
        if len(origins) != 1 or origins[0] is node or not isinstance(origins[0], ast.expr) or depth >= 4:
            return None
        return self._value(origins[0], known, depth + 1)


def _counts_rounds(node: ast.expr) -> bool:
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(node))


def _key(node: ast.expr) -> str:
    return ast.unparse(node)
