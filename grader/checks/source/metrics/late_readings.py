"""What a table is told too late: a clock that is set anew in each round, a learning rate at the end of its schedule.

Asked only where a scorer has found seconds that are too few, or a rate that is not the run's highest; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.written_values import column_values
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, ancestors, end, literal, loop_above, name_of, start

CLOCKS = ("perf_counter", "time", "monotonic", "default_timer")
PEAK = "Write the highest learning rate that the optimizer had in this run: of a schedule its peak, not where it ends."
_READS = ("get_last_lr", "get_lr")
_FROM_A_ROUND_ON = (ast.Gt, ast.GtE)


def restarted_clock(script: Script) -> Cause | None:
    """A clock that is set in the rounds of a loop and read behind it, so that it tells of the last round alone."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.op, ast.Sub)
                and isinstance(node.right, ast.Name)
            ):
                for definition in script.scopes.reaching(node.right.id, node.right):
                    if _is_set_in_rounds(script, definition, node):
                        return _restarted(script, definition.node)
    return None


def _is_set_in_rounds(script: Script, definition: Definition, read: ast.AST) -> bool:
    """Whether a clock is read into a name in many rounds of a loop, and the name is used behind the loop only."""
    tree, value = script.names.tree(definition.node), definition.value
    loop = loop_above(tree.parent, definition.node)
    if (
        loop is None
        or tree.inside(read, loop)
        or not isinstance(value, ast.Call)
        or name_of(value) not in CLOCKS
    ):
        return False
    if any(end(loop) < start(other) < start(read) for other in tree.loops):
        return False  # the first loop warms up, and its last round is where the clock begins
    tests = [a.test for a in ancestors(tree.parent, definition.node, loop) if isinstance(a, ast.If)]
    return all(isinstance(t, ast.Compare) and isinstance(t.ops[0], _FROM_A_ROUND_ON) for t in tests)


def _restarted(script: Script, assignment: ast.AST) -> Cause:
    tree = script.names.tree(assignment)
    loop = loop_above(tree.parent, assignment)
    assert loop is not None, "who asks has looked"
    test = next((a.test for a in ancestors(tree.parent, assignment, loop) if isinstance(a, ast.If)), None)
    again = f"{script.at(assignment)} sets the clock anew in each round"
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        beyond = " + 1" if isinstance(test.ops[0], ast.Gt) else ""
        once = f"{ast.unparse(test.left)} == {ast.unparse(test.comparators[0])}{beyond}"
        return Cause(
            (assignment, test),
            f"Write `{once}` for {script.quote(test)} at {script.at(test)}: {again} for which that is true, so that "
            "what is read behind the loop is the time of the last one alone.",
        )
    return Cause(
        (assignment,),
        f"Move {script.quote(assignment)} in front of the loop at {script.at(loop)}: {again}, so that what is read "
        "behind the loop is the time of the last one alone.",
    )


def last_rate(script: Script) -> Cause | None:
    """Where a column takes the learning rate from an optimizer or a schedule that has come to its end."""
    for value in column_values(script, "learning_rate"):
        for part in (value, *script.values.closure(value)):
            from_group = isinstance(part, ast.Subscript) and literal(part.slice) == "lr"
            if from_group or (isinstance(part, ast.Call) and name_of(part) in _READS):
                return Cause(
                    (part, *_made_with(script)),
                    f"{script.quote(part)} at {script.at(part)} is the rate as it stands then, when the schedule has "
                    f"brought it down. {_peak(script)}",
                )
    return None


def _made_with(script: Script) -> Iterator[ast.expr]:
    """The highest rate, as the text gives it to a schedule that has a peak, else to the optimizer."""
    for name in ("max_lr", "lr"):
        given = [
            g for _, call in script.calls_under("torch.optim.") if (g := script.given(call, name)) is not None
        ]
        if given:
            yield given[0]
            return


def _peak(script: Script) -> str:
    given = next(_made_with(script), None)
    return PEAK if given is None else f"Write its peak, {script.quote(given)} of {script.at(given)}."
