"""What a test says about ranks: rank 0, the others, some, or only whether there are other ranks at all.

Whatever else a test asks is taken to be the same on all ranks. It never claims more than it can follow: `sure` is False
where only part of a condition, or a name, speaks of the rank.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.given_roles import GivenRoles
from grader.checks.source.ranks.rank_expressions import (
    RANK_VARIABLES,
    WORLD_VARIABLES,
    Ranks,
    Strength,
    key_or_name,
)
from grader.checks.source.ranks.rank_sets import NOTHING, OPPOSITE, Condition, RankSet, all_of, any_of
from grader.checks.source.syntax.nodes import FUNCTIONS, literal, name_of, whole
from grader.checks.source.values.chosen_values import ChosenValues
from grader.checks.source.values.reaching_assignments import Scopes
from grader.checks.source.values.sources import Values

MAIN_NAME = re.compile(
    r"(^|_)(is_?)?(main|master|primary|chief|root|lead|rank_?(zero|0)|global_zero|process_zero)(_?(process|rank|proc|worker|node|gpu))?$"
    r"|is_(local_)?(world_)?(main_)?process(_zero)?$|rank_?(zero|0)_only|on_(local_)?main_process",
    re.IGNORECASE,
)
_MAIN_OF_ARGUMENTS = ("should_log", "should_save")
"""Of the training arguments of transformers; elsewhere such a name asks whether it is time to."""
_DISTRIBUTED_NAME = re.compile(r"distributed|(^|_)(ddp|dist|multi_?gpu|parallel)($|_)|is_dist", re.IGNORECASE)
_DISTRIBUTED_CALLS = {
    "torch.distributed.is_initialized", "torch.distributed.is_available",
    "torch.distributed.is_torchelastic_launched", "torch.distributed.is_nccl_available",
}  # fmt: skip
_LAUNCHED = RANK_VARIABLES | WORLD_VARIABLES
_ASKING = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.NamedExpr, ast.Attribute, ast.Subscript)

_STATE = "torch.distributed.checkpoint.state_dict.get_"
_WHOLE_ON_MAIN = ("full_state_dict", "cpu_offload")


class Conditions:
    """Rank conditions over all files."""

    def __init__(self, names: Names, scopes: Scopes, calls: Calls, values: Values, ranks: Ranks) -> None:
        self._names, self._calls, self._values, self._ranks = names, calls, values, ranks
        self._chosen = ChosenValues(names, scopes, calls, values, self.of)
        self._roles = GivenRoles(names, scopes, values, self._chosen)
        self._conditions: dict[ast.AST, Condition] = {}

    def of(self, test: ast.AST, depth: int = 0) -> Condition:
        """What a test says about ranks."""
        if test not in self._conditions:
            if depth > 12:
                return NOTHING
            self._conditions[test] = NOTHING
            self._conditions[test] = self._judge(test, depth + 1)
        return self._conditions[test]

    def filled(self, gone_through: ast.expr) -> Condition:
        """The ranks on which a loop has something to go over: `range(rank == 0)`, `lines if main else []`."""
        sources = self._values.origins(gone_through)
        node = sources[0] if len(sources) == 1 else gone_through
        factors: list[ast.expr] = []
        if isinstance(node, ast.Call) and self._names.qualified(node.func) == "range":
            factors = node.args if len(node.args) == 1 else []
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            factors = [node.left, node.right]
        told = [self.of(f) for f in factors if not self._ranks.rank(f)]
        return all_of(told) if factors else self._chosen.true(gone_through)

    def of_case(self, match: ast.Match, case: ast.match_case) -> Condition:
        """What a `case` says about ranks: of a rank (`case 0:`), of a test of it (`case True:`), of what it chose."""
        before = match.cases[: match.cases.index(case)]
        strength = self._ranks.rank(match.subject)
        if not strength:
            test = self.of(match.subject)
            told = _constants(case.pattern) or {not c for b in before for c in _constants(b.pattern)}
            if test.partial and told in ({True}, {False}):
                return test if told == {True} else test.negated()
            if named := _written(case.pattern):
                return self._chosen.compared(match.subject, ast.Eq(), named)
            earlier = [value for b in before if b.guard is None for value in _written(b.pattern)]
            return self._chosen.compared(match.subject, ast.Eq(), earlier).negated()
        numbers = _constants(case.pattern)
        left = {c for b in before if b.guard is None for c in _constants(b.pattern)}
        if numbers:
            return Condition(RankSet.MAIN if numbers == {0} else RankSet.SOME, strength > Strength.WEAK)
        if case.guard is not None:
            return self.of(case.guard)
        which = RankSet.OTHERS if left == {0} else RankSet.SOME if left else RankSet.ALL
        return Condition(which, strength > Strength.WEAK)

    def _judge(self, test: ast.AST, depth: int) -> Condition:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.of(test.operand, depth).negated()
        if isinstance(test, ast.BoolOp):
            parts = [self.of(v, depth) for v in test.values]
            if isinstance(test.op, ast.And):
                return all_of(parts)
            # `rank == 0 or epoch < last`: in the rounds in which the alternative fails, the rank alone decides.
            kept = [c for c, v in zip(parts, test.values, strict=True) if c.partial or not self._of_round(v)]
            if len(kept) < len(parts) and kept and all(c.partial and c.sure for c in kept):
                return Condition(RankSet.SOME)
            return any_of(parts)
        if isinstance(test, ast.Compare):
            return self._compared(test, depth)
        if isinstance(test, ast.NamedExpr):
            return self.of(test.value, depth)
        if isinstance(test, ast.BinOp) and isinstance(test.op, ast.BitAnd):
            return self._roles.having(test.right, test.left)
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.IfExp | ast.BinOp):
            return self._named(test, depth)
        return NOTHING

    def _of_round(self, test: ast.expr) -> bool:
        """Whether a test compares the number of a loop's round, and so holds in some of them only."""
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        compared = [test.left, *test.comparators] if isinstance(test, ast.Compare) else [test]
        counted = isinstance(test, ast.Compare) or (
            isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod)
        )
        names = (n for part in compared for n in ast.walk(part) if isinstance(n, ast.Name))
        return counted and any(
            isinstance(o, ast.For) and name_of(o.iter) in ("range", "trange", "enumerate")
            for n in names
            for o in self._values.origins(n)
        )

    def _named(self, test: ast.expr, depth: int) -> Condition:
        if isinstance(test, ast.Call) and self._names.qualified(test.func) in _DISTRIBUTED_CALLS:
            return Condition(RankSet.DISTRIBUTED)
        if self._ranks.environment(test) in _LAUNCHED:
            # A text, and "0" is as true as "1": it asks whether there is one.
            return Condition(RankSet.DISTRIBUTED)
        made = self._names.qualified(test.func) if isinstance(test, ast.Call) and test.args else ""
        if isinstance(test, ast.Call) and made in ("bool", "int"):
            number = made == "int" and self._ranks.rank(test.args[0])
            return Condition(RankSet.OTHERS) if number else self.of(test.args[0], depth)
        if isinstance(test, ast.Call) and self._names.qualified(test.func) == "isinstance" and test.args:
            asked = test.args[-1]
            return self._chosen.made_by(test.args[0], asked.elts if isinstance(asked, ast.Tuple) else [asked])
        name = key_or_name(test)
        found: list[Condition] = []
        for origin in self._values.origins(test):
            if isinstance(origin, ast.Constant):
                continue
            if isinstance(origin, FUNCTIONS) and not isinstance(test, ast.Call):
                return NOTHING  # a predicate that is named but not called is always true
            if origin is not test and isinstance(origin, _ASKING):
                found.append(self.of(origin, depth))
        told = [c for c in found if c.which is not RankSet.ALL]
        if told:
            return told[0] if all(c.which is told[0].which for c in told) else any_of(told)
        if isinstance(test, ast.Call) and self._calls.targets(test) and not MAIN_NAME.search(name):
            return NOTHING
        strength = self._ranks.rank(test)
        if strength:
            return Condition(RankSet.OTHERS, strength > Strength.WEAK)
        if any(self._gathered_on_main(o) for o in self._values.origins(test)):
            return Condition(RankSet.MAIN)
        if (chosen := self._chosen.true(test)).partial:
            return chosen
        of_arguments = isinstance(test, ast.Attribute) and "args" in name_of(test.value).lower()
        if MAIN_NAME.search(name) or (of_arguments and name in _MAIN_OF_ARGUMENTS):
            return Condition(RankSet.MAIN)
        if _DISTRIBUTED_NAME.search(name):
            return Condition(RankSet.DISTRIBUTED)
        return NOTHING

    def _gathered_on_main(self, origin: ast.AST) -> bool:
        """`get_model_state_dict(…)` of whole, offloaded tensors, which is empty on all ranks but the first."""
        if not isinstance(origin, ast.Call) or not (self._names.qualified(origin.func) or "").startswith(
            _STATE
        ):
            return False
        options = self._calls.argument(origin, "options")
        made = self._values.origins(options) if options is not None else ()
        return any(
            isinstance(o, ast.Call)
            and all(self._values.constant(self._calls.argument(o, name)) is True for name in _WHOLE_ON_MAIN)
            for o in made
        )

    def _compared(self, test: ast.Compare, depth: int) -> Condition:
        if len(test.ops) != 1:
            return NOTHING
        left, right, op = test.left, test.comparators[0], test.ops[0]
        if isinstance(op, ast.In | ast.NotIn) and self._names.qualified(right) == "os.environ":
            return Condition(RankSet.DISTRIBUTED if isinstance(op, ast.In) else RankSet.ALONE)
        if self._ranks.rank(right) > self._ranks.rank(left):
            left, right, op = right, left, _MIRROR.get(type(op), type(op))()
        world, strength = self._ranks.world(left), self._ranks.rank(left)
        if strength and self._ranks.moves_on(left):
            return NOTHING
        if strength:
            changed = any(isinstance(o, ast.BinOp) for o in self._values.origins(left))
            found = self._rank_against(op, right, strength)
            return replace(found, only=None) if changed else found
        if world or self._ranks.world(right):
            if not world:
                left, right, op = right, left, _MIRROR.get(type(op), type(op))()
            bound = self._values.constant(right)
            if isinstance(op, ast.Gt | ast.GtE | ast.NotEq) and bound in (0, 1, 2):
                return Condition(RankSet.DISTRIBUTED)
            if isinstance(op, ast.Eq | ast.LtE | ast.Lt) and bound in (1, 2):
                return Condition(RankSet.ALONE)
            return NOTHING
        bound = self._values.constant(right)
        if bound is None and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            given = self._chosen.given(left)
            return given if isinstance(op, ast.IsNot | ast.NotEq) else given.negated()
        if isinstance(bound, bool) and isinstance(op, ast.Eq | ast.Is):
            inner = self.of(left, depth)
            return inner if bound else inner.negated()
        if isinstance(op, ast.In | ast.NotIn) and not isinstance(right, ast.Tuple | ast.List | ast.Set):
            having = self._roles.having(left, right)
            return having if isinstance(op, ast.In) else having.negated()
        among = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else [right]
        return self._chosen.compared(left, op, among)

    def _rank_against(self, op: ast.cmpop, right: ast.expr, strength: Strength) -> Condition:
        sure = strength > Strength.WEAK
        if isinstance(op, ast.In | ast.NotIn):
            values = [self._values.constant(e) for e in getattr(right, "elts", ())]
            which = RankSet.MAIN if values and set(values) <= {0, -1, "0", "-1"} else RankSet.SOME
            return Condition(which if isinstance(op, ast.In) else OPPOSITE[which], sure)
        bound = self._values.constant(right)
        if isinstance(bound, str):
            number = whole(bound)
            bound = bound if number is None else number
        if bound is None or bound == "":
            return Condition(RankSet.ALONE if isinstance(op, ast.Is | ast.Eq) else RankSet.DISTRIBUTED)
        only = bound if isinstance(bound, int) and isinstance(op, ast.Eq | ast.Is) else None
        return Condition(_AGAINST.get((type(op), bound), RankSet.SOME), sure, only)


def _constants(pattern: ast.pattern) -> set[object]:
    """The values that a pattern names; none for one that takes everything."""
    if isinstance(pattern, ast.MatchOr):
        return {c for part in pattern.patterns for c in _constants(part)}
    if isinstance(pattern, ast.MatchSingleton):
        return {pattern.value}
    return {literal(value) for value in _written(pattern)}


def _written(pattern: ast.pattern) -> list[ast.expr]:
    """The expressions that a pattern compares with."""
    parts = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    return [part.value for part in parts if isinstance(part, ast.MatchValue)]


_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
# -1 stands for "not distributed" in many scripts, so a test against it is no test of which rank.
_AGAINST: dict[tuple[type[ast.cmpop], object], RankSet] = {
    (ast.Eq, 0): RankSet.MAIN, (ast.LtE, 0): RankSet.MAIN, (ast.Lt, 1): RankSet.MAIN, (ast.Is, 0): RankSet.MAIN,
    (ast.NotEq, 0): RankSet.OTHERS, (ast.Gt, 0): RankSet.OTHERS, (ast.GtE, 1): RankSet.OTHERS,
    (ast.IsNot, 0): RankSet.OTHERS,
    (ast.Eq, -1): RankSet.ALONE, (ast.Lt, 0): RankSet.ALONE, (ast.LtE, -1): RankSet.ALONE,
    (ast.NotEq, -1): RankSet.DISTRIBUTED, (ast.GtE, 0): RankSet.DISTRIBUTED, (ast.Gt, -1): RankSet.DISTRIBUTED,
}  # fmt: skip
