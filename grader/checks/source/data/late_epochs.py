"""Calls of `set_epoch` behind the pass that they are meant for: what they tell counts for the next epoch alone."""

from __future__ import annotations

import ast

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits


def told_late(script: Script, sampler: ast.AST, *, sure: bool = True) -> CauseInText | None:
    """The one call that tells a sampler the number of the loop over epochs below the training in the loop's body.

    `sure`: asks that the first two epochs get one number, by a loop that counts from 0. A run may have shown that.
    """
    calls = [c for c in script.called("set_epoch") if isinstance(c.func, ast.Attribute)]
    meant = [
        c
        for c in calls
        if isinstance(c.func, ast.Attribute) and sampler in script.values.origins(c.func.value)
    ]
    if len(meant) != 1 or len(meant[0].args) != 1:
        return None
    call, tree = meant[0], script.names.tree(meant[0])
    statement = tree.statement(call)
    loop = tree.parent.get(statement)
    if not isinstance(loop, ast.For | ast.While) or statement not in loop.body:
        return None
    number, place = call.args[0], loop.body.index(statement)
    trained = [one for one in loop.body if script.training.runs_backward(one)]
    named = isinstance(number, ast.Name) and _counts(script, loop, number.id, place)
    if not named or not trained or any(loop.body.index(one) > place for one in trained):
        return None
    if sure and not (isinstance(loop, ast.For) and _counts_from_zero(script, loop)):
        return None
    edits = Edits(script)
    edits.before(loop.body[0], edits.text(call))
    edits.remove(statement)
    return CauseInText(
        (call,),
        f"{script.at(call)} tells the sampler the number of an epoch when that is over, and it counts for the next one:"
        " the first two epochs are both shuffled with the first number.",
        f"Move {script.quote(call)} from {script.at(call)} to the beginning of the loop's body, below "
        f"{script.at(loop)}: an epoch's number is told before its pass over the loader.",
        edits.fix("Tells the sampler the number of the epoch that begins."),
    )


def _counts(script: Script, loop: ast.For | ast.While, name: str, place: int) -> bool:
    """Whether a name has the round's number up to a place: a target of `for`, what `while` adds 1 to behind it."""
    if isinstance(loop, ast.For):
        return isinstance(loop.target, ast.Name) and loop.target.id == name
    tree = script.names.tree(loop)
    made = tree.definitions.get(tree.scope(loop), {}).get(name, ())
    grows = [d.node for d in made if tree.inside(d.node, loop)]
    return len(grows) == 1 and isinstance(grows[0], ast.AugAssign) and grows[0] in loop.body[place + 1 :]


def _counts_from_zero(script: Script, loop: ast.For) -> bool:
    counted = loop.iter
    if (
        not isinstance(counted, ast.Call)
        or script.names.qualified(counted.func) != "range"
        or not counted.args
    ):
        return False
    return len(counted.args) == 1 or script.values.constant(counted.args[0]) == 0
