"""Where the text clears gradients at the wrong time, or only some of them: before the step, or of one layer alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import earlier_in_block, later_in_block, name_of, start, walk
from grader.model.fix import Fix


@dataclass(frozen=True, slots=True)
class ClearedStep:
    """A step that finds no gradient, whatever the optimizer holds, and what cleared it; `says` is a sentence."""

    clear: ast.Call
    step: ast.Call
    says: str
    hint: str
    fix: Fix | None


def steps_on_cleared(script: Script) -> Iterable[ClearedStep]:
    """Those of training loops that come after `zero_grad`, with no backward pass between the two."""
    for step in script.updates.steps:
        optimizer, tree = script.updates.stepped(step), script.names.tree(step)
        statement = tree.statement(step)
        loops = script.updates.rounds(step, script.training.backwards)
        if (
            optimizer is None
            or not loops
            or not isinstance(statement, ast.Expr)
            or _has_closure(script, step)
        ):
            continue
        same = [s for s in script.updates.steps if _same(script, script.updates.stepped(s), optimizer)]
        if any(len(script.updates.entries(loop, same)) > 1 for loop in loops):
            continue  # a step that has nothing to do beside one that has
        parent = script.names.tree(statement).parent
        before, behind = earlier_in_block(parent, statement), later_in_block(parent, statement)
        for number, one in reversed([*enumerate(before)]):
            if _gives_gradients(script, one):
                break
            clear = one.value if isinstance(one, ast.Expr) else None
            if isinstance(clear, ast.Call) and _clears(script, clear, optimizer):
                yield from _cleared_step(script, clear, step, before[:number], behind)
                break


def cleared_in_part(script: Script) -> list[ast.AST]:
    """What is walked or called to clear gradients in rounds that step."""
    loops = {
        loop for step in script.updates.steps for loop in script.updates.rounds(step, script.updates.clears)
    }
    found: list[ast.AST] = []
    for clear in script.updates.clears:
        tree = script.names.tree(clear)
        statement = tree.parent.get(tree.statement(clear))
        if any(script.names.tree(loop) is tree and tree.inside(clear, loop) for loop in loops):
            walked = isinstance(statement, ast.For) and statement not in loops
            found.append(statement.iter if isinstance(statement, ast.For) and walked else clear)
    return sorted(dict.fromkeys(found), key=start)


def _cleared_step(
    script: Script, clear: ast.Call, step: ast.Call, above: list[ast.stmt], below: list[ast.stmt]
) -> Iterable[ClearedStep]:
    edits, tree = Edits(script), script.names.tree(step)
    clearing, stepping = tree.statement(clear), tree.statement(step)
    backwards = [b for b in script.training.backwards if script.names.tree(b) is tree]
    later = next((b for s in below for b in backwards if tree.inside(b, s)), None)
    earlier = [b for b in backwards if tree.function(b) is tree.function(step) and start(b) < start(clear)]
    if earlier or any(script.training.runs_backward(s) for s in above):
        text = edits.text(clear)
        edits.remove(clearing)
        edits.after(stepping, text)
        yield ClearedStep(
            clear,
            step,
            f"{script.at(clear)} clears the gradients after the backward pass and right before the step, "
            f"{script.quote(step)} in {script.at(step)}, which finds none of them.",
            f"Move {script.quote(clear)} ({script.at(clear)}) below {script.quote(step)} ({script.at(step)}), or above "
            "`backward`.",
            edits.fix("Clears the gradients once they were stepped on."),
        )
    elif later is not None:
        text = edits.text(step)
        edits.remove(stepping)
        edits.after(tree.statement(later), text)
        yield ClearedStep(
            clear,
            step,
            f"{script.at(clear)} clears the gradients before {script.quote(step)} in {script.at(step)}, and `backward` "
            f"comes only after it, at {script.at(later)}.",
            f"Move {script.quote(step)} below {script.quote(later)} ({script.at(later)}).",
            edits.fix("Steps after the backward pass."),
        )


def _has_closure(script: Script, step: ast.Call) -> bool:
    return any(not script.updates.is_optimizer(a) for a in arguments_of(step))


def _gives_gradients(script: Script, statement: ast.stmt) -> bool:
    """Whether gradients may come of a statement: by `backward`, or because it assigns some."""
    return script.training.runs_backward(statement) or any(map(reads_gradient, walk(statement)))


def _clears(script: Script, call: ast.Call, optimizer: ast.expr) -> bool:
    """`optimizer.zero_grad()`, or that of the model whose parameters the script's one optimizer holds."""
    if name_of(call) != "zero_grad" or not isinstance(call.func, ast.Attribute):
        return False
    owner, built = call.func.value, script.updates.optimizers
    if script.updates.is_optimizer(owner):
        return _same(script, owner, optimizer)
    given = script.argument(built[0], "params") if len(built) == 1 else None
    held = given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) else None
    return held is not None and name_of(given or owner) == "parameters" and _same(script, owner, held)


def _same(script: Script, one: ast.expr | None, other: ast.expr) -> bool:
    if one is None:
        return False
    made = {o for o in script.values.origins(one, returns=False) if isinstance(o, ast.Call)}
    return ast.unparse(one) == ast.unparse(other) or not made.isdisjoint(
        script.values.origins(other, returns=False)
    )
