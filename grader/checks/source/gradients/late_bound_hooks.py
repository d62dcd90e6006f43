"""Hooks that are made in a loop and look up the loop's variable only when they are called: all find its last value."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, ancestors, walk
from grader.checks.source.syntax.tree import Tree

_REGISTERS = re.compile(r"^register_\w*hook$")
_Closure = ast.Lambda | Function
_Walk = ast.For | ast.ListComp | ast.SetComp | ast.GeneratorExp


def late_bound_hook(script: Script) -> CauseInText | None:
    """The first one that exchanges what the loop's variable stands for; None where the text has none."""
    for tree in script.trees:
        for call in tree.called_like(_REGISTERS.search):
            for given in arguments_of(call):
                found = _late(script, tree, call, given)
                if found is not None:
                    return _cause(script, call, *found)
    return None


def _late(
    script: Script, tree: Tree, call: ast.Call, given: ast.expr
) -> tuple[_Closure, str, _Walk, ast.AST] | None:
    """A hook with the name that it looks up late, the loop over it, and the exchange that uses it."""
    for loop in _walks(script, tree, call):
        closure = _made_in(tree, loop, given)
        names = _given_anew(loop)
        for name in sorted(names - _own(closure)) if closure is not None else ():
            used = next((u for u in _exchanges(script, tree, closure, name)), None) if closure else None
            if closure is not None and used is not None:
                return closure, name, loop, used
    return None


def _walks(script: Script, tree: Tree, call: ast.Call) -> Iterator[_Walk]:
    """Loops around a call that are over before a hook is called: none that go backward, or that end after the call."""
    for above in ancestors(tree.parent, call):
        if isinstance(above, (*FUNCTIONS, ast.Lambda)):
            return
        if isinstance(above, _Walk) and not script.training.runs_backward(above):
            ends = (n for s in getattr(above, "body", ()) for n in walk(s))
            if not any(isinstance(n, ast.Break | ast.Return) for n in ends):
                yield above


def _given_anew(loop: _Walk) -> set[str]:
    """Names that each round gives anew: the loop's own, and what its body makes of them."""
    targets = [loop.target] if isinstance(loop, ast.For) else [g.target for g in loop.generators]
    names = _named(targets)
    for statement in loop.body if isinstance(loop, ast.For) else ():
        if isinstance(statement, ast.Assign) and _named([statement.value]) & names:
            names |= _named(t for t in statement.targets if isinstance(t, ast.Name | ast.Tuple))
    return names


def _named(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def _made_in(tree: Tree, loop: _Walk, given: ast.expr) -> _Closure | None:
    """The lambda that is given, or the function by that name which is written inside the loop."""
    if isinstance(given, ast.Lambda):
        return given
    if not isinstance(given, ast.Name):
        return None
    named = tree.definitions.get(tree.scope(given), {}).get(given.id, ())
    made = [d.node for d in named]
    if len(made) != 1 or not isinstance(made[0], FUNCTIONS) or not tree.inside(made[0], loop):
        return None
    return made[0]


def _own(closure: _Closure) -> set[str]:
    """Names that belong to a function itself: parameters, and what it assigns."""
    args = closure.args
    given = [*args.posonlyargs, *args.args, *args.kwonlyargs, *(a for a in (args.vararg, args.kwarg) if a)]
    stored = (n.id for n in ast.walk(closure) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    return {a.arg for a in given} | set(stored)


def _exchanges(script: Script, tree: Tree, closure: _Closure, name: str) -> Iterable[ast.AST]:
    """Calls of a closure that exchange something among ranks, and are given what the name stands for."""
    for call in tree.calls_within(closure):
        parts = [*arguments_of(call)]
        if isinstance(call.func, ast.Attribute):
            parts.append(call.func.value)
        used = any(isinstance(n, ast.Name) and n.id == name for p in parts for n in ast.walk(p))
        if used and script.collectives.of(call):
            yield call


def _cause(
    script: Script, call: ast.Call, closure: _Closure, name: str, loop: _Walk, used: ast.AST
) -> CauseInText:
    edits = Edits(script)
    if isinstance(closure, ast.Lambda):
        bound = _bound(closure, name)
        edits.replace(closure, bound)
        hint = f"Bind it when the hook is made: `{bound}` at {script.at(closure)}."
    else:
        hint = (
            f"Bind it when the hook is made: give {script.at(closure)} `{name}={name}` as its last parameter, or "
            f"register `functools.partial({closure.name}, {name}={name})` with `{name}` as a parameter."
        )
        edits.give_up()
    where = script.at(loop)
    return CauseInText(
        (closure if isinstance(closure, FUNCTIONS) else call,),
        f"{script.at(call)} gives each tensor a hook that looks up `{name}` only when it is called, and by then the "
        f"loop at {where} is over: every hook works on the last `{name}`, {script.quote(used)} exchanges that one "
        "again and again, and nothing else.",
        hint,
        edits.fix(f"Binds `{name}` to each hook as it is made."),
    )


def _bound(closure: ast.Lambda, name: str) -> str:
    """A lambda that takes the name's value of the moment as a default."""
    made = copy.deepcopy(closure)
    default = ast.Name(name, ast.Load())
    if made.args.vararg or made.args.kwonlyargs:
        made.args.kwonlyargs.append(ast.arg(name))
        made.args.kw_defaults.append(default)
    else:
        made.args.args.append(ast.arg(name))
        made.args.defaults.append(default)
    return ast.unparse(made)
