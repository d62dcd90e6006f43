"""Averages of gradients put where they belong: between `backward` and the step, divided, and before a clip."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.gradients.averaging import Average, ReductionOrder
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import block_of, name_of, walk
from grader.model.fix import Fix

_DDP = "or let `DistributedDataParallel` do it"
_COPIES = ("clone", "detach", "float", "cpu")


def after_backward(script: Script, order: ReductionOrder) -> tuple[str, Fix | None]:
    """For an average that comes too late or too early: where to put it, and the edit where one statement makes it."""
    if len(order.backwards) != 1:
        return f"Average between `backward()` and `step()`, {_DDP}.", None
    backward = order.backwards[0]
    average, anchor = _neighbours(script, order.average, backward)
    what = _named(script, order.average, average)
    text = f"Move {what} to right after {script.quote(backward)} at {script.at(backward)}, before the step; {_DDP}."
    if isinstance(average, ast.If) and not _asks_for_ranks(script, average.test):
        # Where the test is not met, the step would go on without an average.
        return text.replace(
            ", before the step", f", out of the test {script.quote(average.test)} and before the step"
        ), None
    if average is None or anchor is None or not _alone(script, average):
        return text, None
    return text, _moved(script, average, anchor, "Averages before the step.")


def _asks_for_ranks(script: Script, test: ast.expr) -> bool:
    """`if world_size > 1:`, `if dist.is_initialized():`: whether there is anything to average with."""
    asked = (n for n in ast.walk(test) if isinstance(n, ast.expr))
    return any(script.ranks.world(n) or name_of(n) in ("is_initialized", "is_available") for n in asked)


def clip_later(script: Script, clip: ast.AST, order: ReductionOrder) -> tuple[str, Fix | None]:
    """For a clip before the average: where to put it, and the edit where both are statements of one block."""
    moved, anchor = _neighbours(script, clip, order.average)
    told = f"Move {script.quote(clip)} from {script.at(clip)} to behind the average at {script.at(order.average)}, "
    text = told + f"right before {script.quote(order.steps[0])}: average first, then clip, then step."
    if moved is None or anchor is None or not isinstance(moved, ast.Expr) or not _alone(script, anchor):
        return text, None
    return text, _moved(script, moved, anchor, "Clips what was averaged.")


def divided(script: Script, average: Average) -> tuple[str, Fix | None]:
    """For a sum over ranks: the division right behind it, in the script's own names."""
    edits, call, tensor = Edits(script), average.call, average.tensor
    tree = script.names.tree(call)
    vain = [n for n in script.averaging.divided_in_vain if tree.scope(n) is tree.scope(call)]
    if vain:
        return _in_place(script, vain[0])
    statement = tree.statement(call)
    world = f"{edits.name('torch.distributed.get_world_size', call)}()"
    if not isinstance(tensor, ast.Name | ast.Attribute):
        return "Divide by the number of ranks, or use `op=dist.ReduceOp.AVG` (NCCL).", None
    line = f"{edits.text(tensor)} /= {world}"
    waits = any(k.arg == "async_op" for k in call.keywords)
    text = f"Divide by the number of ranks right after {script.at(call)}: `{line}`."
    if (
        waits
        or "coalesced" in name_of(call)
        or not isinstance(statement, ast.Expr)
        or statement.value is not call
    ):
        return f"Divide by the number of ranks once the sum has arrived: `{line}`.", None
    edits.after(statement, line)
    return text, edits.fix("Makes a mean of the sum over ranks.")


def _in_place(script: Script, quotient: ast.AST) -> tuple[str, Fix | None]:
    """For a quotient that nothing reads: the same division, of the gradient itself."""
    edits, statement = Edits(script), script.names.tree(quotient).statement(quotient)
    told = f"{script.quote(statement)} at {script.at(statement)} makes a new tensor that nothing reads"
    if not isinstance(quotient, ast.BinOp) or not isinstance(quotient.left, ast.Name | ast.Attribute):
        return f"{told}: divide the gradient in place, with `/=` or `div_`.", None
    operator = "/" if isinstance(quotient.op, ast.Div) else "*"
    line = f"{edits.text(quotient.left)} {operator}= {edits.text(quotient.right)}"
    edits.rewrite(statement, line)
    return f"{told}. Divide in place: `{line}`.", edits.fix("Divides the gradient itself.")


def of_the_step(script: Script, vain: Sequence[ast.AST]) -> tuple[str, Fix | None]:
    """For averages that do not reach the step: what to do with the first of them."""
    copy = vain[0]
    held = copy
    while isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr in _COPIES:
        held = held.func.value
    if isinstance(copy, ast.Call) and reads_gradient(held):
        edits = Edits(script)
        edits.replace(copy, edits.text(held))
        told = f"Bring the gradient itself together, not a copy: write {script.quote(held)} instead of "
        fix = edits.fix("Reduces the gradient itself.") if _changed_in_place(script, copy) else None
        return f"{told}{script.quote(copy)} at {script.at(copy)}, and change it in place.", fix
    backwards = script.training.backwards
    if isinstance(copy, ast.Call) and name_of(copy) == "parameters" and len(backwards) == 1:
        edits = Edits(script)
        reduce, world = (edits.name(f"torch.distributed.{n}", copy) for n in ("all_reduce", "get_world_size"))
        told = f"`for p in {edits.text(copy)}:` with `{reduce}(p.grad)` and `p.grad /= {world}()` in it"
        return (
            f"Average gradients in each step, not weights now and then: {told}, right after "
            f"{script.quote(backwards[0])} at {script.at(backwards[0])}. {script.at(copy)} has no use then."
        ), None
    told = f"{script.at(copy)} averages, but not what this step uses: reduce every `parameter.grad` itself "
    return (
        f"{told}after `backward()` and before `step()`, in each step, and divide it by the number of ranks.",
        None,
    )


def _changed_in_place(script: Script, copy: ast.expr) -> bool:
    """Whether a value is bound to a name that nothing binds again."""
    tree = script.names.tree(copy)
    bound = tree.statement(copy)
    if (
        not isinstance(bound, ast.Assign)
        or bound.value is not copy
        or not isinstance(bound.targets[0], ast.Name)
    ):
        return False
    name, around = bound.targets[0].id, tree.function(copy) or tree.root
    stores = [
        n for n in walk(around) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
    ]
    again = [n for n in stores if not isinstance(tree.parent.get(n), ast.AugAssign)]
    return len(again) == 1 and len(bound.targets) == 1


def _moved(script: Script, statement: ast.stmt, anchor: ast.stmt, summary: str) -> Fix | None:
    edits = Edits(script)
    tree = script.names.tree(statement)
    lines = [script.line(tree.path, n) for n in range(statement.lineno, (statement.end_lineno or 0) + 1)]
    indent = lines[0][: statement.col_offset]
    if any(line.strip() and not line.startswith(indent) for line in lines):
        return None
    edits.after(anchor, *(line[len(indent) :].rstrip() for line in lines))
    edits.remove(statement)
    return edits.fix(summary)


def _neighbours(script: Script, one: ast.AST, other: ast.AST) -> tuple[ast.stmt | None, ast.stmt | None]:
    """The statements of one block that hold two nodes; None each where no block holds both."""
    tree = script.names.tree(one)
    if tree is not script.names.tree(other):
        return None, None
    for block in (block_of(tree.parent, tree.statement(node)) for node in (other, one)):
        anchor = next((s for s in block if tree.inside(other, s)), None)
        moved = next((s for s in block if tree.inside(one, s)), None)
        if moved is not None and anchor is not None and moved is not anchor:
            return moved, anchor
    return None, None


def _alone(script: Script, average: ast.stmt) -> bool:
    """Whether no other statement of the block goes on with what this one has brought together."""
    block = block_of(script.names.tree(average).parent, average)
    return not any(reads_gradient(n) for s in block if s is not average for n in walk(s))


def _named(script: Script, node: ast.AST, statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.For):
        return f"the loop at {script.at(statement)}"
    return f"{script.quote(node)} from {script.at(node)}"
