"""State dicts that a loop keeps as they are, while it goes on to train the network that they belong to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import weight_saves
from grader.checks.source.script import Script


@dataclass(frozen=True, slots=True)
class KeptWeights:
    """Where they are taken, and where they are used when training has gone on."""

    taken: ast.Call
    used: ast.Call


def kept_without_copy(script: Script) -> Iterable[KeptWeights]:
    """Each such place with the first use of it."""
    uses = _uses(script)
    for taken in script.called("state_dict"):
        choice = _choice(script, taken)
        if choice is None or not isinstance(taken.func, ast.Attribute):
            continue
        owner = taken.func.value
        inner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "module" else owner
        if not script.networks.is_network(inner) or script.networks.sharded(inner):
            continue
        if not _goes_on(script, choice, inner):
            continue
        for use, given in uses:
            if taken in given and not script.names.tree(use).inside(use, choice):
                yield KeptWeights(taken, use)
                break


def _uses(script: Script) -> list[tuple[ast.Call, set[ast.AST]]]:
    """Calls that save or load weights, with what these may be."""
    found: list[tuple[ast.Call, set[ast.AST]]] = []
    for call in (*weight_saves(script), *script.called("load_state_dict")):
        if isinstance(call, ast.Call):
            parts = [a for one in (*call.args, *(k.value for k in call.keywords)) for a in _parts(one)]
            given = {v for part in parts for o in script.values.origins(part) for v in _parts(o)}
            found.append((call, given))
    return found


def _parts(node: ast.AST) -> list[ast.AST]:
    """A value, or those of a dictionary that is written out."""
    return [node, *node.values] if isinstance(node, ast.Dict) else [node]


def _choice(script: Script, taken: ast.Call) -> ast.If | None:
    """The condition under which a state dict is assigned as it is; None where it isn't, or always is."""
    tree = script.names.tree(taken)
    node = tree.parent.get(taken)
    while isinstance(node, ast.Dict | ast.Tuple):
        node = tree.parent.get(node)
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return None
    above = tree.parent.get(node)
    return above if isinstance(above, ast.If) else None


def _goes_on(script: Script, choice: ast.If, network: ast.expr) -> bool:
    """Whether a loop comes back to the condition after steps of a network that was there before it began."""
    tree = script.names.tree(choice)
    loops = script.updates.rounds(choice, script.updates.steps)
    made = script.values.origins(network)
    leaves = any(isinstance(n, ast.Break | ast.Return) for n in ast.walk(choice))
    return not leaves and any(
        not any(script.names.tree(o) is tree and tree.inside(o, loop) for o in made) for loop in loops
    )
