"""Changes of a model that DDP has wrapped: numbers of another type, and any of them written before the wrap."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import arguments_of, called_on
from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import names_in, walk

_METHODS = ("half", "bfloat16", "double")
_GIVEN_TYPE = ("to", "type")
_TYPES = {f"torch.{name}" for name in ("float16", "half", "bfloat16", "float64", "double")}
"""Types that a model does not have by itself: `float()` alone changes nothing."""
_MOVES = ("to", "cuda", "cpu")


def retyped(script: Script) -> Iterable[CauseInText]:
    """Conversions after which DDP's hooks are gone, although training goes on with the same wrapper.

    A parameter of another type gets a new gradient accumulator, and DDP's hook sits on the old one.
    """
    for call in script.called(*_METHODS, *_GIVEN_TYPE):
        owner = called_on(call)
        wrap = script.replicas.holds_whole(owner) if owner is not None else None
        if owner is None or wrap is None or not _changes_type(script, call):
            continue
        within = script.names.tree(call).inside(wrap, call)
        if not (within or script.replicas.after(wrap, call)) or script.replicas.wrapped_again(call):
            continue
        if script.replicas.trained_after(call):
            yield _cause(script, call, owner, wrap)


def _changes_type(script: Script, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        return not call.args and not call.keywords
    given = arguments_of(call)
    return any(script.names.qualified(one) in _TYPES for one in given)


def _cause(script: Script, call: ast.Call, owner: ast.expr, wrap: ast.Call) -> CauseInText:
    some = script.replicas.on_some_ranks(call) is not None
    follows = (
        "those ranks send no gradients, and the others wait for them"
        if some
        else "no gradients are averaged, and each rank trains on its own"
    )
    model = "net" if owner is wrap else ast.unparse(owner)
    how = ast.unparse(call)[len(ast.unparse(owner)) :]
    return CauseInText(
        (call,),
        f"converts the model that DDP has wrapped in {script.at(wrap)} to another type. Its parameters get new "
        "gradient accumulators, and DDP's hooks stay on the old ones, also where it is converted back: from then on "
        f"{follows}",
        f"Convert a copy of what is saved: `{{name: value{how} for name, value in {model}.state_dict().items()}}`. "
        "A network that is to train in another type is converted before it is wrapped.",
    )


def before_wrap(script: Script, change: ast.AST, wrap: ast.Call) -> str:
    """Advice: a change's statement in the names that stand where the model is wrapped; "" where they are not known."""
    statement = script.names.tree(change).statement(change)
    inner = _bare(script.argument(wrap, "module"))
    if inner is None or statement.end_lineno != statement.lineno:
        return ""
    edits = Edits(script)
    name, written = edits.text(inner), edits.text(statement)
    held = [
        n
        for n in walk(statement)
        if isinstance(n, ast.Attribute) and n.attr == "module" and script.replicas.wrap_of(n) is wrap
    ]
    same = script.names.tree(wrap).scope(wrap) is script.names.tree(change).scope(change)
    named = same and name in names_in(statement)
    if not held and not named:
        return ""
    for node in held:
        written = written.replace(edits.text(node), name)
    return (
        f"Change the network before it is wrapped: `{written}` above {script.at(wrap)}, and drop "
        f"{script.at(statement)}."
    )


def _bare(module: object) -> ast.Name | ast.Attribute | None:
    """The network that a wrapper is given: `net` of `net.to(device)`."""
    if isinstance(module, ast.Call) and isinstance(module.func, ast.Attribute) and module.func.attr in _MOVES:
        module = module.func.value
    return module if isinstance(module, ast.Name | ast.Attribute) else None
