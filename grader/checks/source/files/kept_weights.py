"""State dicts that a loop keeps as they are, while it goes on to train the network that they belong to.

A new dictionary of the same tensors is no copy of them: `dict(state)`, `state.copy()`, `{k: v for k, v in …}`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import weight_saves
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of

_SAME_TENSORS = {"dict", "collections.OrderedDict", "OrderedDict", "copy.copy"}
"""What makes a new dictionary of what it is given, with the same tensors in it."""
_UNCOPIED = {"data", "detach"}
"""What gives another tensor with the same numbers in it, which the next step changes too."""
_EACH_ROUND = re.compile(r"epoch|step|batch|iter|round|valid|eval", re.IGNORECASE)
"""Names of methods that a trainer calls again and again."""


@dataclass(frozen=True, slots=True)
class KeptWeights:
    """Weights that are kept without a copy.

    Attributes:
        taken: asks the network for them. kept: what is kept of that. used: where, when training has gone on.
    """

    taken: ast.Call
    kept: ast.expr
    used: ast.Call


def kept_without_copy(script: Script) -> Iterable[KeptWeights]:
    """Each such place with the first use of it."""
    uses = _uses(script)
    for taken in script.called("state_dict"):
        kept = _uncopied(script, taken)
        choice = _choice(script, kept)
        if choice is None or not isinstance(taken.func, ast.Attribute):
            continue
        owner = taken.func.value
        inner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "module" else owner
        if not script.networks.is_network(inner) or script.networks.sharded(inner):
            continue
        if not _goes_on(script, choice, inner):
            continue
        for use, given in uses:
            if kept in given and not script.names.tree(use).inside(use, choice):
                yield KeptWeights(taken, kept, use)
                break


def _uses(script: Script) -> list[tuple[ast.Call, set[ast.AST]]]:
    """Calls that save or load weights, with what these may be."""
    found: list[tuple[ast.Call, set[ast.AST]]] = []
    for call in (*weight_saves(script), *script.called("load_state_dict")):
        if isinstance(call, ast.Call):
            parts = [a for one in arguments_of(call) for a in _parts(one)]
            given = {v for part in parts for o in script.values.origins(part) for v in _parts(o)}
            found.append((call, given))
    return found


def _parts(node: ast.AST) -> list[ast.AST]:
    """A value, or those of a dictionary that is written out."""
    return [node, *node.values] if isinstance(node, ast.Dict) else [node]


def _uncopied(script: Script, taken: ast.Call) -> ast.expr:
    """The outermost expression around a state dict that still holds its tensors, and nothing else."""
    tree = script.names.tree(taken)
    kept: ast.expr = taken
    while True:
        above = tree.parent.get(kept)
        if isinstance(above, ast.Call) and above.args == [kept] and not above.keywords:
            if script.names.qualified(above.func) not in _SAME_TENSORS:
                return kept
            kept = above
            continue
        method = tree.parent.get(above) if isinstance(above, ast.Attribute) else None
        if (
            not isinstance(above, ast.Attribute)
            or not isinstance(method, ast.Call)
            or method.func is not above
        ):
            return kept
        if above.attr == "copy":
            kept = method
            continue
        part = tree.parent.get(method)
        whole = tree.parent.get(part) if isinstance(part, ast.comprehension) else None
        if above.attr != "items" or not isinstance(whole, ast.DictComp) or not _same_items(whole):
            return kept
        kept = whole


def _same_items(whole: ast.DictComp) -> bool:
    """Whether each value of `{… for name, tensor in state.items()}` is the tensor itself, or a view of it."""
    target = whole.generators[0].target
    if len(whole.generators) != 1 or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return False
    value: ast.expr = whole.value
    while name_of(value) in _UNCOPIED:
        if isinstance(value, ast.Call) and not value.args:
            value = value.func
        if not isinstance(value, ast.Attribute):
            return False
        value = value.value
    return isinstance(value, ast.Name) and value.id == name_of(target.elts[1])


def _choice(script: Script, kept: ast.expr) -> ast.If | None:
    """The condition under which a state dict is assigned as it is; None where it isn't, or always is."""
    tree = script.names.tree(kept)
    node = tree.parent.get(kept)
    while isinstance(node, ast.Dict | ast.Tuple):
        node = tree.parent.get(node)
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return None
    above = tree.parent.get(node)
    return above if isinstance(above, ast.If) else None


def _goes_on(script: Script, choice: ast.If, network: ast.expr) -> bool:
    """Whether a loop comes back to the condition after steps of a network that was there before it began."""
    tree = script.names.tree(choice)
    loops = [
        loop
        for place in (choice, *_announced(script, choice))
        for loop in script.updates.rounds(place, script.updates.steps)
    ]
    made = script.values.origins(network)
    leaves = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(choice))
    return not leaves and any(
        not any(script.names.tree(o) is tree and tree.inside(o, loop) for o in made) for loop in loops
    )


def _announced(script: Script, choice: ast.If) -> Iterable[ast.Call]:
    """Calls that may run the method around a condition, where nothing calls it plainly: a trainer's callbacks.

    `callback.on_epoch_end(self)` of any of several classes, and `getattr(callback, event)(self)`.
    """
    function = script.names.tree(choice).function(choice)
    if not isinstance(function, FUNCTIONS) or not _EACH_ROUND.search(function.name):
        return
    if script.names.tree(choice).enclosing_class(choice) is None or script.graph.sites(function):
        return
    for tree in script.trees:
        for call in tree.calls:
            asked = isinstance(call.func, ast.Call) and script.names.qualified(call.func.func) == "getattr"
            named = isinstance(call.func, ast.Attribute) and call.func.attr == function.name
            if asked or (named and not script.graph.targets(call)):
                yield call
