"""What a test says about ranks: rank 0, the others, some, or only whether there are other ranks at all.

Whatever else a test asks is taken to be the same on all ranks. It never claims more than it can follow: `sure` is False
where only part of a condition, or a name, speaks of the rank.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import Enum

from grader.checks.source.call_sites import Calls
from grader.checks.source.library_names import Names
from grader.checks.source.ranks import RANK_VARIABLES, WORLD_VARIABLES, Ranks, Strength, key_or_name
from grader.checks.source.syntax_nodes import FUNCTIONS, literal, name_of
from grader.checks.source.value_sources import Values
from grader.checks.source.written_numbers import whole

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


class RankSet(Enum):
    """The ranks for which a condition holds."""

    ALL = "all"
    """It says nothing about ranks."""
    MAIN = "main"
    OTHERS = "others"
    SOME = "some"
    DISTRIBUTED = "distributed"
    """Every rank of a distributed run."""
    ALONE = "alone"
    """Only a run without other ranks."""


_OPPOSITE = {
    RankSet.ALL: RankSet.ALL, RankSet.MAIN: RankSet.OTHERS, RankSet.OTHERS: RankSet.MAIN, RankSet.SOME: RankSet.SOME,
    RankSet.DISTRIBUTED: RankSet.ALONE, RankSet.ALONE: RankSet.DISTRIBUTED,
}  # fmt: skip
_PARTIAL = (RankSet.MAIN, RankSet.OTHERS, RankSet.SOME)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a test says about ranks; `sure` where it says nothing else besides and was followed to a rank."""

    which: RankSet
    sure: bool = True

    @property
    def partial(self) -> bool:
        """It holds for some ranks and not for others."""
        return self.which in _PARTIAL

    def negated(self) -> Condition:
        """The condition under which it fails."""
        return Condition(_OPPOSITE[self.which], self.sure)


_NOTHING = Condition(RankSet.ALL)


class Conditions:
    """Rank conditions over all files."""

    def __init__(self, names: Names, calls: Calls, values: Values, ranks: Ranks) -> None:
        self._names, self._calls, self._values, self._ranks = names, calls, values, ranks
        self._conditions: dict[ast.AST, Condition] = {}

    def of(self, test: ast.AST, depth: int = 0) -> Condition:
        """What a test says about ranks."""
        if test not in self._conditions:
            if depth > 12:
                return _NOTHING
            self._conditions[test] = _NOTHING
            self._conditions[test] = self._judge(test, depth + 1)
        return self._conditions[test]

    def of_case(self, match: ast.Match, case: ast.match_case) -> Condition:
        """What a `case` says about ranks: of a rank (`case 0:`), or of a test of it (`case True:`)."""
        before = match.cases[: match.cases.index(case)]
        strength = self._ranks.rank(match.subject)
        if not strength:
            test = self.of(match.subject)
            told = _constants(case.pattern) or {not c for b in before for c in _constants(b.pattern)}
            return test if told == {True} else test.negated() if told == {False} else _NOTHING
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
            return _all_of(parts) if isinstance(test.op, ast.And) else _any_of(parts)
        if isinstance(test, ast.Compare):
            return self._compared(test, depth)
        if isinstance(test, ast.NamedExpr):
            return self.of(test.value, depth)
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.IfExp | ast.BinOp):
            return self._named(test, depth)
        return _NOTHING

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
        name = key_or_name(test)
        found: list[Condition] = []
        for origin in self._values.origins(test):
            if isinstance(origin, ast.Constant):
                continue
            if isinstance(origin, FUNCTIONS) and not isinstance(test, ast.Call):
                return _NOTHING  # a predicate that is named but not called is always true
            if origin is not test and isinstance(origin, _ASKING):
                found.append(self.of(origin, depth))
        told = [c for c in found if c.which is not RankSet.ALL]
        if told:
            return told[0] if all(c.which is told[0].which for c in told) else _any_of(told)
        if isinstance(test, ast.Call) and self._calls.targets(test) and not MAIN_NAME.search(name):
            return _NOTHING
        strength = self._ranks.rank(test)
        if strength:
            return Condition(RankSet.OTHERS, strength > Strength.WEAK)
        if any(self._gathered_on_main(o) for o in self._values.origins(test)):
            return Condition(RankSet.MAIN)
        if isinstance(test, ast.Name | ast.Attribute) and (held := self._held_by(test, depth)).partial:
            return held
        of_arguments = isinstance(test, ast.Attribute) and "args" in name_of(test.value).lower()
        if MAIN_NAME.search(name) or (of_arguments and name in _MAIN_OF_ARGUMENTS):
            return Condition(RankSet.MAIN)
        if _DISTRIBUTED_NAME.search(name):
            return Condition(RankSet.DISTRIBUTED)
        return _NOTHING

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

    def _held_by(self, node: ast.expr, depth: int) -> Condition:
        """Which ranks have something in a name that is None on the others: a writer that rank 0 alone makes."""
        origins = self._values.origins(node)
        made = [o for o in origins if not (isinstance(o, ast.Constant) and o.value is None)]
        if not made or len(made) == len(origins):
            return _NOTHING
        mine = all(isinstance(o, ast.Call) and self._under_main(o, depth) for o in made)
        return Condition(RankSet.MAIN, isinstance(node, ast.Name)) if mine else _NOTHING

    def _under_main(self, node: ast.AST, depth: int) -> bool:
        """Whether a test of its own function lets nobody but rank 0 come to a node."""
        tree = self._names.tree(node)
        child, above = node, tree.parent.get(node)
        while above is not None and not isinstance(child, FUNCTIONS):
            if isinstance(above, ast.If | ast.IfExp) and child is not above.test:
                taken = child is above.body or (isinstance(above, ast.If) and child in above.body)
                condition = self.of(above.test, depth)
                if (condition if taken else condition.negated()).which is RankSet.MAIN:
                    return True
            child, above = above, tree.parent.get(above)
        return False

    def _compared(self, test: ast.Compare, depth: int) -> Condition:
        if len(test.ops) != 1:
            return _NOTHING
        left, right, op = test.left, test.comparators[0], test.ops[0]
        if isinstance(op, ast.In | ast.NotIn) and self._names.qualified(right) == "os.environ":
            return Condition(RankSet.DISTRIBUTED if isinstance(op, ast.In) else RankSet.ALONE)
        if self._ranks.rank(right) > self._ranks.rank(left):
            left, right, op = right, left, _MIRROR.get(type(op), type(op))()
        world, strength = self._ranks.world(left), self._ranks.rank(left)
        if strength:
            return self._rank_against(op, right, strength)
        if world or self._ranks.world(right):
            if not world:
                left, right, op = right, left, _MIRROR.get(type(op), type(op))()
            bound = self._values.constant(right)
            if isinstance(op, ast.Gt | ast.GtE | ast.NotEq) and bound in (0, 1, 2):
                return Condition(RankSet.DISTRIBUTED)
            if isinstance(op, ast.Eq | ast.LtE | ast.Lt) and bound in (1, 2):
                return Condition(RankSet.ALONE)
            return _NOTHING
        bound = self._values.constant(right)
        if bound is None and isinstance(op, ast.Is | ast.IsNot) and isinstance(right, ast.Constant):
            held = self._held_by(left, depth)
            return held if isinstance(op, ast.IsNot) else held.negated()
        if isinstance(bound, bool) and isinstance(op, ast.Eq | ast.Is):
            inner = self.of(left, depth)
            return inner if bound else inner.negated()
        return _NOTHING

    def _rank_against(self, op: ast.cmpop, right: ast.expr, strength: Strength) -> Condition:
        sure = strength > Strength.WEAK
        if isinstance(op, ast.In | ast.NotIn):
            values = [self._values.constant(e) for e in getattr(right, "elts", ())]
            which = RankSet.MAIN if values and set(values) <= {0, -1, "0", "-1"} else RankSet.SOME
            return Condition(which if isinstance(op, ast.In) else _OPPOSITE[which], sure)
        bound = self._values.constant(right)
        if isinstance(bound, str):
            number = whole(bound)
            bound = bound if number is None else number
        if bound is None or bound == "":
            return Condition(RankSet.ALONE if isinstance(op, ast.Is | ast.Eq) else RankSet.DISTRIBUTED)
        return Condition(_AGAINST.get((type(op), bound), RankSet.SOME), sure)


def _constants(pattern: ast.pattern) -> set[object]:
    """The values that a pattern names; none for one that takes everything."""
    if isinstance(pattern, ast.MatchOr):
        return {c for part in pattern.patterns for c in _constants(part)}
    if isinstance(pattern, ast.MatchValue):
        return {literal(pattern.value)}
    return {pattern.value} if isinstance(pattern, ast.MatchSingleton) else set()


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


def _all_of(parts: list[Condition]) -> Condition:
    for which in (RankSet.ALONE, *_PARTIAL, RankSet.DISTRIBUTED):
        found = [c for c in parts if c.which is which]
        if found:
            return Condition(which, any(c.sure for c in found))
    return _NOTHING


def _any_of(parts: list[Condition]) -> Condition:
    """In a distributed run the `ALONE` alternatives are false; an unrelated alternative makes the rest unsure."""
    kept = [c for c in parts if c.which is not RankSet.ALONE]
    if not kept:
        return Condition(RankSet.ALONE)
    partial = [c for c in kept if c.partial]
    if not partial:
        return kept[0] if all(c.which is kept[0].which for c in kept) else _NOTHING
    same = all(c.which is partial[0].which for c in kept)
    return Condition(partial[0].which if same else RankSet.SOME, same and all(c.sure for c in kept))
