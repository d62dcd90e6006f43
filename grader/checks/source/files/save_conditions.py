"""Which tests decide in which rounds weights are saved, around a save and around the calls that lead to it.

Asked only where a run has shown that weights were saved too early or never; it says where and what to write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.causes import CauseInText, options_of, weight_saves
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    Function,
    Loop,
    ancestors,
    literal,
    loop_above,
    name_of,
    start,
    steps_up,
    walk,
)
from grader.checks.source.values.arithmetic import worked_out
from grader.checks.source.values.reaching_assignments import is_main_block

_MOST_CALLS = 4
_MOST_ROUNDS = 10_000
_OUT_OF_CASE = "Let every run save: take the save out of that condition, or save behind the loop as well."


def deciding_tests(script: Script, save: ast.AST) -> Iterator[ast.expr]:
    """Tests that have to hold for a save, those of ranks left out; the innermost first, callers' after them."""
    for place in ways_to(script.names, script.graph, save, most=_MOST_CALLS):
        parent = script.names.tree(place).parent
        for child, above in steps_up(parent, place, FUNCTIONS):
            if isinstance(above, ast.If) and child in above.body and not is_main_block(above):
                both = isinstance(above.test, ast.BoolOp) and isinstance(above.test.op, ast.And)
                for test in (
                    above.test.values if both and isinstance(above.test, ast.BoolOp) else (above.test,)
                ):
                    if script.conditions.of(test).which is RankSet.ALL:
                        yield test


def round_chosen(script: Script, saves: list[ast.AST]) -> CauseInText | None:
    """The test by which only some rounds of training save their weights, of a save that was made."""
    for save in saves:
        for test in deciding_tests(script, save):
            loop = _round_of(script, test)
            if loop is not None and _asks_round(test, loop):
                says = f"{script.at(test)} chose it: only where {script.quote(test)} holds does {script.at(save)} save."
                return CauseInText((test, save), says, _last_too(script, test, loop))
    return None


def never_saved(script: Script) -> CauseInText | None:
    """Why no save of the text was made in the run; None where it has none, or one that fails without a word."""
    saves = [(save, list(deciding_tests(script, save))) for save in weight_saves(script)]
    around = (above for save, _ in saves for above in ancestors(script.names.tree(save).parent, save))
    if any(isinstance(above, ast.Try) and above.handlers for above in around):
        return None
    for save, tests in saves:
        for test in tests:
            if (known := _never_true(script, test)) is not None:
                return _unmet(script, save, *known)
    for save, tests in saves:
        function = script.names.tree(save).function(save)
        if function is not None and _is_unused(script, function):
            return CauseInText(
                (function, save),
                f"{script.at(save)} would write weights, and nothing calls `{function.name}`, in which it stands.",
                f"Call `{function.name}` on rank 0 when an epoch has been validated, or behind the last one.",
            )
        if tests:
            return _unmet(script, save, (tests[0],), "which was never so in this run.", _OUT_OF_CASE)
    for save, _ in saves:
        said = f"{script.at(save)} would write weights, and no rank came to it."
        return CauseInText(
            (save,), said, "Bring rank 0 there in every run: look at what calls it, and leaves before it."
        )
    return None


def _unmet(script: Script, save: ast.AST, nodes: tuple[ast.AST, ...], why: str, hint: str) -> CauseInText:
    test = nodes[0]
    return CauseInText(
        (*nodes, save),
        f"{script.at(save)} would write weights and was never reached: {script.at(test)} asks for "
        f"{script.quote(test)}, {why}",
        hint,
    )


def _is_unused(script: Script, function: Function) -> bool:
    """Whether nothing runs a function; methods may be a library's to call."""
    method = script.names.tree(function).enclosing_class(function) is not None
    return not method and not script.graph.sites(function) and not script.graph.references(function)


_Never = tuple[tuple[ast.AST, ...], str, str]


def _never_true(script: Script, test: ast.expr) -> _Never | None:
    """The nodes, the rest of a sentence that names a test, and what to write, of a test that can't be true."""
    if (before := _set_before(script, test)) is not None:
        said, at_line = script.quote(before), script.at(before)
        why = (
            f"and {said} at {at_line} has taken this epoch's value for the best before it is compared: no value is "
            "better than itself."
        )
        return (
            (test, before),
            why,
            f"Compare first: move {said} from {at_line} below the `if` at {script.at(test)}.",
        )
    loop = _round_of(script, test)
    rounds = _rounds(script, loop) if loop is not None and _asks_round(test, loop) else None
    if loop is None or not rounds or any(_holds(script, test, name_of(loop.target), n) for n in rounds):
        return None
    why = f"and no epoch is one: `{name_of(loop.target)}` goes from {rounds[0]} to {rounds[-1]}."
    return (test, loop), why, _last_too(script, test, loop)


def _round_of(script: Script, test: ast.expr) -> ast.For | None:
    """The counting loop around a test, or around the calls of its function, whose number the test may ask for."""
    for place in ways_to(script.names, script.graph, test, most=_MOST_CALLS):
        loop: Loop | None = loop_above(script.names.tree(place).parent, place, FUNCTIONS)
        if (
            isinstance(loop, ast.For)
            and isinstance(loop.target, ast.Name)
            and name_of(loop.iter) in ("range", "trange")
        ):
            return loop
    return None


def _asks_round(test: ast.expr, loop: ast.For) -> bool:
    """Whether a test asks for the number of a round: by the loop's own name for it."""
    return any(isinstance(n, ast.Name) and n.id == name_of(loop.target) for n in walk(test))


def _last_too(script: Script, test: ast.expr, loop: ast.For) -> str:
    """The test that is true in the last round, too, where the text says which that is."""
    assert isinstance(loop.iter, ast.Call), "it counts"
    tree, name, ends = script.names.tree(test), name_of(loop.target), loop.iter.args
    same = script.names.tree(loop) is tree and tree.function(loop) is tree.function(test)
    if (
        not same
        or not 1 <= len(ends) <= 2
        or not isinstance(ends[-1], ast.Name | ast.Attribute | ast.Constant)
    ):
        return f"Save the last epoch's weights as well: once more behind the loop at {script.at(loop)}."
    number = literal(ends[-1])
    last = f"{name} == {number - 1 if isinstance(number, int) else f'{ast.unparse(ends[-1])} - 1'}"
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Eq):
        return f"Write `{last}` for {script.quote(test)}: that is the last one."
    written = f"{ast.unparse(test)} or {last}"
    written = f"({written})" if isinstance(tree.parent[test], ast.BoolOp) else written
    return f"Save the last epoch's weights as well: write `{written}` for {script.quote(test)}."


def _set_before(script: Script, test: ast.expr) -> ast.Assign | None:
    """What makes the best one of a strict comparison the best of this round, before it is compared."""
    if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(test.ops[0], ast.Gt | ast.Lt):
        return None
    tree = script.names.tree(test)
    sides = {ast.unparse(test.left), ast.unparse(test.comparators[0])}
    loop = loop_above(tree.parent, test, FUNCTIONS)
    for node in walk(tree.scope(test)):
        if not isinstance(node, ast.Assign) or not start(node) < start(test):
            continue
        value, best = node.value, ast.unparse(node.targets[0])
        chosen = value.args if isinstance(value, ast.Call) and name_of(value) in ("max", "min") else [value]
        under = [a.test for a in ancestors(tree.parent, node, loop) if isinstance(a, ast.If)]
        if best in sides and sides - {best} <= {ast.unparse(c) for c in chosen}:
            # Under another condition it is set in some rounds only.
            compared = all(sides <= {ast.unparse(n) for n in walk(u)} for u in under)
            if compared and loop_above(tree.parent, node, FUNCTIONS) is loop:
                return node
    return None


def _rounds(script: Script, loop: ast.For) -> range | None:
    """The numbers that a loop counts, where the text says how many."""
    assert isinstance(loop.iter, ast.Call), "it counts"
    numbers = [_number(script, a) for a in loop.iter.args]
    known = [int(n) for n in numbers if n is not None]
    if len(known) != len(numbers) or not 1 <= len(known) <= 3 or (len(known) == 3 and not known[2]):
        return None
    counted = range(*known)
    return counted if 0 < len(counted) <= _MOST_ROUNDS else None


def _number(script: Script, node: ast.expr) -> float | None:
    """A number that is written out, or the default of the option of the command line that it is."""
    value = script.values.constant(node)
    if not isinstance(value, int | float) and isinstance(node, ast.Attribute):
        given = {
            literal(d) for option in options_of(script, node.attr) if (d := script.given(option, "default"))
        }
        value = given.pop() if len(given) == 1 else None
    return value if isinstance(value, int | float) else None


def _holds(script: Script, test: ast.expr, name: str, number: int) -> bool:
    """Whether a test holds in a round; also where nobody can tell."""

    def told(part: ast.expr) -> float | None:
        return number if isinstance(part, ast.Name) and part.id == name else _number(script, part)

    found = worked_out(test, told)
    return found is None or bool(found)
