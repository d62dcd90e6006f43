"""Counts of one rank's share brought together over all ranks, as edits before what first reads them."""

from __future__ import annotations

import ast

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.libraries.spelling import is_bound
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import Definition, end, name_of, start
from grader.checks.source.training_loops import Draw
from grader.model.fix import Fix

_MAKERS = {"torch.zeros", "torch.tensor", "torch.zeros_like"}


def brought_together(script: Script, draw: Draw, counted: set[str], use: ast.stmt) -> tuple[str, Fix | None]:
    """The lines that add counts up over all ranks, for advice, and the fix where it is certain what was counted."""
    tree = script.names.tree(use)
    scope = tree.scope(draw.loop)
    after = end(draw.loop)
    names = sorted(
        (
            name
            for name in counted
            if any(start(load) > after and tree.scope(load) is scope for load in tree.loads.get(name, ()))
        ),
        # Of several that one statement begins, by name: what stands in a set comes in any order.
        key=lambda name: (min((d.since for d in tree.definitions[scope].get(name, ())), default=after), name),
    )
    begun = {name: _begun(script, tree.definitions[scope].get(name, [])) for name in names}
    edits, place = Edits(script), _on_every_rank(script, use)
    if not names or place is None or script.frameworks.words is not None:
        return "", None
    if all(kind == "tensor" for kind in begun.values()):
        lines = [f"{edits.name('torch.distributed.all_reduce', use)}({name})" for name in names]
    elif all(kind == "number" for kind in begun.values()):
        value = next(
            name for name in ("counts", "reduced", "counts_of_all_ranks") if not is_bound(tree, name)
        )
        on = _device(script, use)
        if on is None:
            edits.give_up()
        made = f"{edits.name('torch.tensor', use)}([{', '.join(names)}]"
        kind = edits.name("torch.float64", use)
        target = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        lines = [
            f"{value} = {made}, dtype={kind}{on or ''})",
            f"{edits.name('torch.distributed.all_reduce', use)}({value})",
            f"{target} = {value}.tolist()",
        ]
    else:
        return "", None
    edits.before(place, *lines)
    return ", ".join(f"`{line}`" for line in lines), edits.fix(
        "Adds the counts of all ranks up before they are used."
    )


def _begun(script: Script, made: list[Definition]) -> str:
    """What a counter is: a tensor, a number, or "" for anything else."""
    kinds = set()
    for one in made:
        value: ast.expr | None = one.value
        for index in one.path:
            value = (
                value.elts[index]
                if isinstance(value, ast.Tuple | ast.List) and index < len(value.elts)
                else None
            )
        if one.kind == "augment":
            continue
        if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            kinds.add("number")
        elif isinstance(value, ast.Call) and script.names.qualified(value.func) in _MAKERS:
            kinds.add("tensor")
        else:
            kinds.add("")
    return kinds.pop() if len(kinds) == 1 else ""


def _on_every_rank(script: Script, use: ast.stmt) -> ast.stmt | None:
    """The statement before which all ranks come by."""
    statement = use
    for _ in range(5):
        guard = script.guards.partial(statement)
        if guard is None:
            return statement
        branch = script.names.tree(use).parent.get(guard.test)
        if not isinstance(branch, ast.If) or branch is statement:
            return None
        statement = branch
    return None


def _device(script: Script, use: ast.stmt) -> str | None:
    """The argument that puts a tensor where the group can send it; None where that isn't known."""
    tree = script.names.tree(use)
    scopes = (tree.scope(use), tree.root)
    if any("device" in tree.definitions.get(scope, {}) for scope in scopes):
        return ", device=device"
    started = [script.argument(call, "backend") for call in script.calls(INIT)]
    gloo = all(b is not None and b is not UNKNOWN and script.values.constant(b) == "gloo" for b in started)
    return "" if started and gloo else None


def too_small(script: Script, use: ast.stmt, counted: set[str]) -> str:
    """What a count of one share over the length of the whole set comes to."""
    for node in ast.walk(use):
        if not is_quotient(node):
            continue
        length = node.right
        if (
            isinstance(length, ast.Call)
            and script.names.qualified(length.func) == "len"
            and length.args
            and name_of(length.args[0]) not in counted
            and not any(o in script.training.loaders() for o in script.values.origins(length.args[0]))
        ):
            whole = script.quote(length)
            return f" Divided by {whole}, the whole set's length, it is too small by the number of ranks."
    return ""
