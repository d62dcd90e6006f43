"""Saves of another network than the trained one: its name bound anew, a copy from before, one that no optimizer has.

Asked only where saved weights have been seen to know too little; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.causes import CauseInText, weight_saves
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import LOOPS, Definition, ancestors, end, name_of, start, walk

_COPYING = ("deepcopy", "clone", "copy")
_TAKING = (
    "load_state_dict", "copy_", "load_weights", "set_model_state_dict", "load", "vector_to_parameters", "lerp_",
    "swap_", "update_parameters", "update_bn",
)  # fmt: skip
"""What brings weights into a network."""
_MOVING = ("to", "cuda", "cpu", "train", "eval", "double", "float", "half", "requires_grad_")
_LOOKING = ("eval", "to", "cpu", "state_dict", "parameters", "print")
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class ReplacedNetwork:
    """The name, where its first network was trained, what bound it to another one, and the save."""

    name: str
    trained: ast.AST
    bound: ast.AST
    save: ast.AST


def replaced_networks(script: Script) -> Iterator[ReplacedNetwork]:
    """Each save of a network that a name was given after the training of another one under that name."""
    for save in weight_saves(script):
        tree = script.names.tree(save)
        for node in sorted(_saved_names(save), key=start):
            definitions = tree.definitions.get(tree.scope(node), {}).get(node.id, [])
            before = sorted(
                (d for d in definitions if start(d.node) < start(save)), key=lambda d: start(d.node)
            )
            if len(before) < 2 or not _is_fresh(script, before[-1], node.id):
                continue
            later = (before[-1].node, save)
            if _loaded_between(script, node.id, *later):
                continue
            first = next(
                (d for d in before if not _is_fresh(script, d, node.id) or d is before[0]), before[0]
            )
            following = next(d for d in before if start(d.node) > start(first.node))
            loop = _training(script, node.id, first.node, following.node)
            if loop is not None:
                yield ReplacedNetwork(node.id, loop, before[-1].node, save)
                break


def untrained_saves(script: Script) -> Iterator[CauseInText]:
    """Each save of a copy from before the training, or of a network that no optimizer was given.

    What is made of the trained network (averages, best epochs, quantised or merged weights) is no other one.
    """
    for save in weight_saves(script):
        given = save.args[0] if isinstance(save, ast.Call) and save.args else None
        if not isinstance(save, ast.Call) or given is None:
            continue
        for name in [
            *sorted(_saved_names(save), key=start),
            *([given] if isinstance(given, ast.Name) else []),
        ]:
            found = _never_stepped(script, save, name) or _copied_before(script, save, name)
            if found is not None:
                yield found
                break


def _never_stepped(script: Script, save: ast.Call, name: ast.Name) -> CauseInText | None:
    """A network that no optimizer was given, in a script whose optimizers were given another one."""
    own, stepped = set(_made(script, name)), set[ast.Call]()
    for optimizer in script.updates.optimizers:
        given = optimizer.args[0] if optimizer.args else script.given(optimizer, "params")
        owner = called_on(given) if isinstance(given, ast.Call) else None
        if owner is None or name_of(given or optimizer) != "parameters":
            return None
        stepped |= set(_made(script, owner))
    if not own or not stepped or _made_of(script, own, stepped) or _made_of(script, stepped, own):
        return None
    if not all(map(script.networks.is_network, (*own, *stepped))):
        return None
    if script.called(*_TAKING) or script.training.framework or script.names.foreign:
        return None
    made, other = (min(found, key=start) for found in (own, stepped))
    return CauseInText(
        (made, save),
        f"{script.at(save)} saves the network that {script.quote(made)} made at {script.at(made)}. No optimizer was "
        f"given its parameters: what was trained is the network of {script.at(other)}.",
        f"Save the network of {script.at(other)}: hand it on to where it is saved, with `return` for one thing.",
    )


def _made_of(script: Script, networks: set[ast.Call], others: set[ast.Call]) -> bool:
    """Whether any of some networks is one of the others, or made of one."""
    return any(not others.isdisjoint(script.values.closure(one)) for one in networks)


def _made(script: Script, network: ast.expr, depth: int = 0) -> Iterator[ast.Call]:
    """The calls that made a network, not what happens within them; what wraps or moves it is none."""
    for origin in script.values.origins(network, returns=False):
        if not isinstance(origin, ast.Call):
            continue
        moved = called_on(origin) if name_of(origin) in _MOVING else None
        inner = script.argument(origin, "module") if origin in script.training.wraps else moved
        if isinstance(inner, ast.expr) and inner is not UNKNOWN and depth < _MAX_DEPTH:
            yield from _made(script, inner, depth + 1)
        else:
            yield origin


def _copied_before(script: Script, save: ast.Call, name: ast.Name) -> CauseInText | None:
    """A copy that was taken before training and is read again for the save alone."""
    tree, scope = script.names.tree(save), script.names.tree(save).scope(name)
    reaching = script.scopes.reaching(name.id, name)
    value = reaching[0].value if len(reaching) == 1 and reaching[0].kind == "assign" else None
    if value is None or not any(isinstance(n, ast.Call) and name_of(n) in _COPYING for n in walk(value)):
        return None
    taken = reaching[0].node
    named = [n for n in walk(scope) if isinstance(n, ast.Name) and n.id == name.id]
    reads = [n for n in named if isinstance(n.ctx, ast.Load) and not tree.inside(n, save)]
    trains: list[ast.AST] = [
        n for n in walk(scope) if isinstance(n, LOOPS) and script.training.runs_backward(n)
    ]
    trains += [c for c in tree.calls_within(scope) if script.updates.entries(c, script.training.backwards)]
    before = any(end(taken) < start(t) < start(save) for t in trains)
    within = any(tree.inside(n, t) for n in (taken, *reads) for t in trains)
    if not before or within or any(name_of(tree.parent[n]) not in _LOOKING for n in reads):
        return None
    return CauseInText(
        (taken, save),
        f"{script.quote(taken)} at {script.at(taken)} copies the weights before they are trained, and that copy is "
        f"saved at {script.at(save)}.",
        f"Save what was trained: take the weights for {script.at(save)} when the training is done.",
    )


def _saved_names(save: ast.AST) -> Iterator[ast.Name]:
    """`model` of `torch.save(model.state_dict(), path)`."""
    for part in walk(save):
        if (
            isinstance(part, ast.Call)
            and name_of(part) == "state_dict"
            and isinstance(part.func, ast.Attribute)
        ):
            owner = part.func.value
            inner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "module" else owner
            if isinstance(inner, ast.Name):
                yield inner


def _is_fresh(script: Script, definition: Definition, name: str) -> bool:
    """Whether a network is built there of nothing that the name held: no copy, wrapper or average of it."""
    value, tree = definition.value, script.names.tree(definition.node)
    if definition.kind != "assign" or not isinstance(value, ast.Call):
        return False
    if any(isinstance(above, ast.If) for above in ancestors(tree.parent, definition.node)):
        return False
    read = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    copies = any("copy" in name_of(n) or "load" in name_of(n) for n in walk(value) if isinstance(n, ast.Call))
    return name not in read and not copies


def _loaded_between(script: Script, name: str, bound: ast.AST, save: ast.AST) -> bool:
    """Whether the new network is given weights that were kept: then it is the one that was trained."""
    tree = script.names.tree(save)
    return any(
        start(bound) < start(c) < start(save)
        and any(isinstance(n, ast.Name) and n.id == name for n in walk(c))
        for c in tree.called(*_TAKING)
    )


def _training(script: Script, name: str, since: ast.AST, until: ast.AST) -> ast.AST | None:
    """The loop between two places that trains what the name holds."""
    tree = script.names.tree(since)
    for loop in tree.loops:
        if not end(since) < start(loop) or not start(loop) < start(until) or tree.inside(until, loop):
            continue
        reads = any(isinstance(n, ast.Name) and n.id == name for n in walk(loop))
        if reads and script.updates.entries(loop, script.updates.steps):
            return loop
    return None
