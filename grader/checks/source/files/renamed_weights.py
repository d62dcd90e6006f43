"""Names of weights that are changed on their way from a state dict into a file, and no longer are the network's."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import VARIABLES, name_of, start, walk

_STRIPS = ("lstrip", "strip")
# These leave names alone that lack what they take away.
_CAREFUL = ("removeprefix", "removesuffix", "replace")
_ROUNDS = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.For)
_PREFIX = '.removeprefix("module.")'


def renamed_weights(script: Script) -> Iterator[CauseInText]:
    """All places that write other names for the entries of a state dict, in the order of the files."""
    for tree in script.trees:
        for node in sorted((n for n in tree.parent if isinstance(n, _ROUNDS)), key=start):
            states = _states(script, node)
            for key, name in _keys(node) if states else ():
                wrapped = all(_is_wrapped(script, state) for state in states)
                if (found := _renamed(script, key, name, wrapped=wrapped)) is not None:
                    yield found


def _keys(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Expressions that give an entry its new name, with the variable that holds the old one."""
    if isinstance(node, ast.DictComp) and len(node.generators) == 1:
        yield node.key, _first(node.generators[0].target)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp) and len(node.generators) == 1:
        if isinstance(node.elt, ast.Tuple) and len(node.elt.elts) == 2:
            yield node.elt.elts[0], _first(node.generators[0].target)
    elif isinstance(node, ast.For):
        for statement in node.body:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if isinstance(target, ast.Subscript):
                yield target.slice, _first(node.target)


def _first(target: ast.expr) -> str:
    return name_of(target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target)


def _states(script: Script, node: ast.AST) -> list[ast.expr]:
    """What gives the state dicts whose entries a loop goes through: `model.state_dict` of each."""
    through = node.iter if isinstance(node, ast.For) else node.generators[0].iter  # type: ignore[attr-defined]
    if isinstance(through, ast.Call) and isinstance(through.func, ast.Attribute):
        through = through.func.value if through.func.attr in ("items", "keys") else through
    made = (o for o in script.values.origins(through) if isinstance(o, ast.Call))
    return [o.func for o in made if name_of(o) == "state_dict"]


def _is_wrapped(script: Script, state: ast.expr) -> bool:
    """Whether it is surely a wrapper's, with its prefix in front of all names: not what unwraps a model first."""
    if not isinstance(state, ast.Attribute) or not isinstance(state.value, VARIABLES):
        return False
    inner = any(name_of(o) == "module" for o in (state.value, *script.values.origins(state.value)))
    return script.training.wrapped(state.value) and not inner


def _renamed(script: Script, key: ast.expr, name: str, *, wrapped: bool) -> CauseInText | None:
    """What an expression makes of a name; None where it leaves the network's own alone, or a wrapper's prefix out."""
    origins = script.values.origins(key) if isinstance(key, ast.Name) and key.id != name else (key,)
    made = origins[0] if len(origins) == 1 and isinstance(origins[0], ast.expr) else key
    if isinstance(made, ast.Name) or not any(isinstance(n, ast.Name) and n.id == name for n in walk(made)):
        return None
    if isinstance(made, ast.Call) and name_of(made) in _CAREFUL:
        return None
    edits = Edits(script)
    written, summary = name, "Keeps the network's own names."
    does = f"writes other names than the network has, {script.quote(made)}"
    if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Slice):
        if wrapped:
            return None
        written, summary = name + _PREFIX, "Takes away a prefix only where there is one."
        does = f"cuts every name, {script.quote(made)}, also where there is no prefix to cut"
    elif isinstance(made, ast.Call) and name_of(made) in _STRIPS:
        written, summary = name + _PREFIX, "Takes away a prefix only where there is one."
        does = f"takes single letters off every name, {script.quote(made)}, and no prefix"
    edits.replace(made, written)
    return CauseInText(
        (made,),
        f"{script.at(made)} {does}.",
        f"At {script.at(made)} write `{written}` instead of {script.quote(made)}: the names of a network that no "
        "wrapper holds have no `module.` in front.",
        edits.fix(summary),
    )
