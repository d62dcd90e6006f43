"""What to write where the result of a reduction is lost: as edits, and as the line that the advice shows.

Nothing here looks for faults; whether there is one, `dropped_results` and `reduction_results` say.
"""

from __future__ import annotations

import ast

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import walk
from grader.checks.source.values.temporary_tensors import MAKERS
from grader.model.fix import Fix

_KEPT = ("op", "group", "async_op")
_VALUE = "reduced"


def on_what_is_kept(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> tuple[str, Fix | None]:
    """For a reduction into a tensor that nobody holds: advice, and the fix where the value's own name is known."""
    edits = Edits(script)
    if isinstance(tensor, ast.Call) and _is_clone(tensor):
        assert isinstance(tensor.func, ast.Attribute)
        held = tensor.func.value
        edits.replace(tensor, edits.text(held))
        fix = edits.fix(f"Reduces `{edits.text(held)}` itself.")
        return (
            f"Reduce what the script goes on with: {script.quote(held)} instead of {script.quote(tensor)}.",
            fix,
        )
    numbers = _numbers(script, tensor)
    made = edits.text(tensor)
    statement = script.names.tree(call).statement(call)
    if (
        not numbers
        or not isinstance(statement, ast.Expr)
        or statement.value is not call
        or _in_background(script, call)
    ):
        return (
            f"Give it a name first: `value = {made[:60]}`, then `dist.{name}(value)`, and go on with `value`.",
            None,
        )
    again = f"{', '.join(numbers)} = {_VALUE}.tolist()" if len(numbers) > 1 or _listed(tensor) else ""
    again = again or f"{numbers[0]} = {_VALUE}.item()"
    if len(numbers) == 1 and _listed(tensor):
        again = f"({numbers[0]},) = {_VALUE}.tolist()"
    edits.before(statement, f"{_VALUE} = {made}")
    edits.replace(tensor, _VALUE)
    edits.after(statement, again)
    if _VALUE in script.names.tree(call).loads:
        edits.give_up()
    reads = f"`{_VALUE} = {made[:60]}`, `dist.{name}({_VALUE})`, `{again}`"
    return f"Keep the tensor, and read the result out of it: {reads}.", edits.fix(
        "Reads the result of the reduction."
    )


def in_the_foreground(script: Script, call: ast.Call) -> Fix | None:
    """For a reduction that runs on in the background with nobody waiting for it."""
    edits = Edits(script)
    edits.take_away(call, "async_op", "False")
    return edits.fix("Waits for the result of the reduction.")


def for_all_ranks(script: Script, call: ast.Call, tensor: ast.expr) -> tuple[str, Fix | None]:
    """For a `reduce` whose result all ranks go on with: the call that gives it to all of them."""
    edits = Edits(script)
    given = [(name, script.argument(call, name)) for name in _KEPT]
    parts = [edits.text(tensor)]
    for name, value in given:
        if value is UNKNOWN:
            edits.give_up()
        elif isinstance(value, ast.expr):
            parts.append(f"{name}={edits.text(value)}")
    text = f"{edits.name('torch.distributed.all_reduce', call)}({', '.join(parts)})"
    edits.replace(call, text)
    return text, edits.fix("Gives the sum to all ranks.")


def added_up(script: Script, call: ast.Call, tensor: ast.expr) -> Fix | None:
    """For counts of which a reduction keeps the largest: only where all that the tensor holds is counted."""
    tree = script.names.tree(call)
    if not isinstance(tensor, ast.Name):
        return None
    elements = [
        node
        for node in walk(tree.scope(call))
        if isinstance(node, ast.Assign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id == tensor.id
    ]
    if not all(isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) for node in elements):
        return None
    edits = Edits(script)
    if any(keyword.arg == "op" for keyword in call.keywords):
        edits.take_away(call, "op", "")
    else:
        edits.give(call, "op", edits.name("torch.distributed.ReduceOp.SUM", call))
    return edits.fix("Adds the counts of all ranks up.")


def divided(
    script: Script, call: ast.Call, tensor: ast.expr, *, in_place: bool = False
) -> tuple[str, Fix | None]:
    """For a sum of means: the line below the reduction that makes their mean of it.

    Args:
        script: the text. call: the reduction. tensor: what it sums up.
        in_place: whether somebody else holds the tensor, a network say, so that a new one would be lost.
    """
    edits = Edits(script)
    text, world = edits.text(tensor), edits.name("torch.distributed.get_world_size", call)
    line = f"{text} /= {world}()" if in_place else f"{text} = {text} / {world}()"
    statement = script.names.tree(call).statement(call)
    if (
        not isinstance(tensor, ast.Name)
        or not isinstance(statement, ast.Expr)
        or _in_background(script, call)
    ):
        return line, None
    edits.after(statement, line)
    return line, edits.fix("Makes the mean over the ranks of their sum.")


def _is_clone(tensor: ast.Call) -> bool:
    func = tensor.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr == "clone"
        and isinstance(func.value, ast.Name)
        and not tensor.args
    )


def _numbers(script: Script, tensor: ast.expr) -> list[str]:
    """Names of the numbers that a tensor is made of, where it is made of names alone."""
    if (
        not isinstance(tensor, ast.Call)
        or script.names.qualified(tensor.func) not in MAKERS
        or not tensor.args
    ):
        return []
    given = tensor.args[0]
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    return names if len(names) == len(parts) == len(set(names)) else []


def _listed(tensor: ast.expr) -> bool:
    return isinstance(tensor, ast.Call) and isinstance(tensor.args[0], ast.List | ast.Tuple)


def _in_background(script: Script, call: ast.Call) -> bool:
    return script.argument(call, "async_op") is not None
