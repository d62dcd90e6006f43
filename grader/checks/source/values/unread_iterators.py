"""Iterators that nothing goes through, `map(dist.broadcast, tensors)` as a statement: none of their calls is made."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from grader.checks.source.calls.handed_functions import LAZY, left_alone
from grader.checks.source.causes import CauseInText
from grader.checks.source.collectives.collective_calls import ALL
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, walk
from grader.model.fix import Fix

_PREFIX = "torch.distributed."
SENDING = ("broadcast", "scatter")
REDUCING = ("all_reduce", "reduce", "all_gather", "reduce_scatter")


def unread(script: Script) -> Iterator[ast.expr]:
    """Iterators that stand as statements, or in a variable that nothing reads, and that would call something."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if not isinstance(node, ast.Expr | ast.Assign) or not left_alone(tree, node.value):
                continue
            # What a module keeps another one may read.
            within = isinstance(node, ast.Expr) or tree.function(node) is not None
            if within and _lazy(script, node.value):
                yield node.value


def advice(script: Script, value: ast.expr) -> str:
    """What to write instead."""
    kind = "a function that yields" if _yields(script, value) else "an iterator"
    return (
        f"Go through it: put `list(…)` around it at {script.at(value)}, or write a loop with the call in its body. "
        f"Nothing of {kind} runs until something asks it for its next value."
    )


def gone_through(script: Script, value: ast.expr) -> Fix | None:
    """The same in a list, which runs all of it; None where some ranks alone would then call a collective."""
    edits = Edits(script)
    if script.guards.partial(value) or isinstance(value, ast.GeneratorExp):
        return None
    edits.replace(value, f"list({edits.text(value)})")
    return edits.fix("Goes through the iterator, so that its calls are made.")


def unread_exchange(script: Script, names: Collection[str]) -> CauseInText | None:
    """The first one that would have called one of these collectives."""
    for value in unread(script):
        meant = next((n for n in _collectives(script, value) if n.startswith(tuple(names))), "")
        if meant:
            return CauseInText(
                (value,),
                f"{script.at(value)} calls no `{meant}`: {script.quote(value)} makes an iterator, and nothing goes "
                "through it.",
                advice(script, value),
                gone_through(script, value),
            )
    return None


def _lazy(script: Script, value: ast.expr) -> bool:
    if isinstance(value, ast.GeneratorExp):
        return any(isinstance(n, ast.Call) for n in walk(value.elt))
    if not isinstance(value, ast.Call):
        return False
    place = LAZY.get(script.names.qualified(value.func) or "")
    handed = place is not None and len(value.args) > place and not script.graph.targets(value)
    return handed or _yields(script, value)


def _yields(script: Script, value: ast.expr) -> bool:
    """Whether a call is of a function of the script that yields, and that no decorator makes something else of."""
    made = script.graph.targets(value) if isinstance(value, ast.Call) else ()
    return bool(made) and all(
        isinstance(f, ast.FunctionDef) and f in script.names.tree(f).yields and not f.decorator_list
        for f in made
    )


def _collectives(script: Script, value: ast.expr) -> Iterator[str]:
    """Short names of the collectives that an iterator would call, by itself or through functions of the script."""
    for part in walk(value):
        dotted = script.names.qualified(part) if isinstance(part, ast.Name | ast.Attribute) else None
        if dotted in ALL:
            yield dotted.removeprefix(_PREFIX)
        function = script.graph.definition(part) if isinstance(part, ast.Name | ast.Attribute) else None
        if isinstance(function, FUNCTIONS):
            yield from (one.name for one in script.collectives.inside(function))
