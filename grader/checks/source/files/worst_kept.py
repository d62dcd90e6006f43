"""Tests that keep the worst weights: the smaller value counts as better, and they are given an accuracy.

Asked only where the saved weights have been seen to be those of the worst epoch; it says where, and decides nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.causes import CauseInText, weight_saves
from grader.checks.source.files.better_tests import BetterTest, better_tests
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import FUNCTIONS, default_of, name_of, steps_up

_RISING = re.compile(r"acc|correct|right|top_?[15k]|(^|_)(f1|auc|iou|map|score)", re.IGNORECASE)
_FALLING = re.compile(r"loss|err|perplexity|ppl|(^|_)(nll|mse|mae|rmse)($|_)", re.IGNORECASE)
_BEST = re.compile(r"best|lowest|highest|record|(^|_)(min|max|top)($|_)", re.IGNORECASE)
_MODE = re.compile(r"mode|direction", re.IGNORECASE)
_LIGHTNING = ("pytorch_lightning.", "lightning.")
_MOST_CALLS = 4


@dataclass(frozen=True, slots=True)
class _Fed:
    """What a comparison is given at last, and the minus in front of it on the way there."""

    value: ast.expr
    minus: ast.UnaryOp | None = None


def worst_kept(script: Script) -> CauseInText | None:
    """The first choice of weights to keep that takes the worst of what it is given for the best."""
    taken = [
        c for c in script.called("state_dict") if script.networks.is_network(getattr(c.func, "value", c))
    ]
    for keep in (*weight_saves(script), *taken):
        for place in ways_to(script.names, script.graph, keep, most=_MOST_CALLS):
            for child, above in steps_up(script.names.tree(place).parent, place, FUNCTIONS):
                if isinstance(above, ast.If) and child is not above.test:
                    for compared in better_tests(script, above.test):
                        if (found := _judged(script, compared, otherwise=child in above.orelse)) is not None:
                            return found
    return next(_by_libraries(script), None)


def _by_libraries(script: Script) -> Iterator[CauseInText]:
    """Lightning's `ModelCheckpoint`: it keeps the lowest value of what it watches where nothing says otherwise."""
    for call in script.called("ModelCheckpoint"):
        watched, mode = (script.given(call, name) for name in ("monitor", "mode"))
        told, way = script.values.constant(watched), script.values.constant(mode) if mode else "min"
        name = script.names.qualified(call.func) or ""
        if not name.startswith(_LIGHTNING) or not isinstance(told, str) or way not in ("min", "max"):
            continue
        rises, falls = (bool(kind.search(told)) for kind in (_RISING, _FALLING))
        if rises == falls or rises is (way == "max"):
            continue
        kind, taken = ("accuracy", "smaller") if rises else ("loss", "larger")
        yield CauseInText(
            (mode or call,),
            f"{script.at(call)} takes the {taken} value of `{told}` for the better one: of {_A[kind]} that is the "
            "worse one.",
            f'Give {script.quote(call)} `mode="{"max" if rises else "min"}"`.',
        )


def _judged(script: Script, compared: BetterTest, *, otherwise: bool) -> CauseInText | None:
    """What is wrong with a comparison, by what it takes for better and is given; `otherwise`: it has to fail."""
    sides = compared.sides
    best = [bool(_BEST.search(ast.unparse(side))) for side in sides]
    if best[0] == best[1]:
        return None
    value = sides[best.index(False)]
    mode = _mode(script, compared.node)
    if mode is None and compared.less is None:
        return None
    lower = compared.less is (value is sides[0])
    smaller = mode.smaller if mode is not None else lower is not otherwise
    for fed in _fed(script, value):
        if _rises(script, fed.value) is (smaller is (fed.minus is None)):
            return _cause(script, compared, mode, fed)
    return None


def _rises(script: Script, value: ast.expr) -> bool | None:
    """Whether a value is the better the larger it is, by what it is called; None where that says nothing."""
    rises, falls = (bool(kind.search(_called(script, value))) for kind in (_RISING, _FALLING))
    return rises if rises != falls else None


def _called(script: Script, node: ast.expr) -> str:
    """What a value is called: `val_acc`, `metrics["accuracy"]`, `logs[self.monitor]`, `logs.get(self.monitor)`."""
    key: ast.expr | None = node.slice if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and name_of(node) == "get" and node.args:
        key = node.args[0]
    named = script.values.constant(key)
    return named if isinstance(named, str) else name_of(node)


def _fed(script: Script, value: ast.expr, minus: ast.UnaryOp | None = None, depth: int = 0) -> Iterator[_Fed]:
    """What a value is by name: as the places call it that give it to a function, else as it is called itself."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) and minus is None:
        yield from _fed(script, value.operand, value, depth)
        return
    reaching = script.scopes.reaching(value.id, value) if isinstance(value, ast.Name) else ()
    known: list[_Fed] = []
    for definition in reaching if depth < _MOST_CALLS else ():
        function = script.names.tree(definition.node).function(definition.node)
        given: list[ast.expr | None] = []
        if definition.kind == "parameter" and function is not None and isinstance(value, ast.Name):
            given = [script.graph.bound(site, function, value.id) for site in script.graph.sites(function)]
        elif definition.kind == "assign" and isinstance(
            definition.value, ast.UnaryOp | ast.Name | ast.Subscript | ast.Call
        ):
            given = [definition.value]
        for one in given:
            if isinstance(one, ast.expr) and one is not UNKNOWN:
                known += [
                    fed
                    for fed in _fed(script, one, minus, depth + 1)
                    if _rises(script, fed.value) is not None
                ]
    yield from known or [_Fed(value, minus)]


@dataclass(frozen=True, slots=True)
class _Mode:
    """How a call that makes an object says which value is better: whether the smaller one, and what to write for it."""

    made: ast.AST
    smaller: bool
    turned: str


def _mode(script: Script, compared: ast.expr) -> _Mode | None:
    """The mode of the objects in whose class a comparison stands; None where they have none."""
    owner = script.names.tree(compared).enclosing_class(compared)
    init = script.graph.method(owner, "__init__") if owner is not None else None
    if init is None:
        return None
    for parameter in (*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs):
        for site in script.graph.sites(init) if _MODE.search(parameter.arg) else ():
            given = script.graph.bound(site, init, parameter.arg)
            stated = default_of(init, parameter) if given is None else given
            mode = script.values.constant(stated) if stated is not UNKNOWN else UNKNOWN
            if isinstance(mode, str) and mode.startswith(("min", "max")):
                smaller = mode.startswith("min")
                return _Mode(site.call, smaller, f'{parameter.arg}="{"max" if smaller else "min"}{mode[3:]}"')
    return None


def _cause(script: Script, compared: BetterTest, mode: _Mode | None, fed: _Fed) -> CauseInText:
    """The choice that has to change, what it is given, and what to write."""
    kind, taken = ("accuracy", "smaller") if _rises(script, fed.value) else ("loss", "larger")
    where: ast.AST = (
        mode.made if mode is not None else fed.minus if fed.minus is not None else compared.chosen
    )
    if mode is not None:
        hint = f"Give {script.quote(where)} at {script.at(where)} `{mode.turned}`."
    elif fed.minus is not None:
        plain = ast.unparse(fed.minus.operand)
        hint = f"Write `{plain}` for {script.quote(where)} at {script.at(where)}: what it is given is {_A[kind]}."
    else:
        hint = (
            f"Write `{compared.turned}` for {script.quote(where)} at {script.at(where)}, and begin with a best one "
            f"that is worse than any {kind}."
        )
    return CauseInText(
        (where, fed.value, compared.node),
        f"{script.at(where)} takes the {taken} value for the better one, and {script.at(fed.value)} gives it "
        f"{script.quote(fed.value)}: of {_A[kind]} that is the worse one.",
        hint,
    )


_A = {"loss": "a loss", "accuracy": "an accuracy"}
