"""Wrappers whose `__getattr__` looks into the module inside: a method that is found there calls the bare module."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Function, literal, name_of, walk
from grader.checks.source.training_loops import DDP

_MODULE = "torch.nn.Module"


@dataclass(frozen=True, slots=True)
class ForwardedCall:
    """A method of the inner module that is called on its wrapper.

    Attributes:
        call: such as `model.training_step(batch)`. forwarding: the wrapper's `__getattr__`.
        method: what it finds. inner: the forward pass in there, such as `self(x)`.
    """

    call: ast.Call
    forwarding: Function
    method: Function
    inner: ast.Call


def forwarded_calls(script: Script) -> Iterator[ForwardedCall]:
    """Those whose result is trained on, in the order of the text."""
    forwarding = dict(_forwarding(script))
    trained = {c for b in script.training.backwards for c in script.updates.forwards(b)} if forwarding else ()
    for tree in script.trees if forwarding else ():
        for call in tree.calls:
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if call not in trained or owner is None or script.training.gradients_off(call):
                continue
            for made in script.values.origins(owner):
                built = script.graph.built_class(made)
                found = forwarding.get(built) if built is not None else None
                inner = (
                    _inner(script, built, name_of(call)) if built is not None and found is not None else None
                )
                if found is not None and inner is not None:
                    yield ForwardedCall(call, found, *inner)
                    break


def around_the_wrapper(script: Script, found: ForwardedCall) -> tuple[str, str]:
    """What such a call does, as a sentence, and what to write."""
    owner = ast.unparse(found.call.func.value) if isinstance(found.call.func, ast.Attribute) else "model"
    given = ", ".join(map(ast.unparse, arguments_of(found.call)))
    method = found.method.name
    says = (
        f"{script.at(found.call)} calls `{method}` on the wrapper, which has none: its `__getattr__` "
        f"({script.at(found.forwarding)}) finds that of the module inside, and {script.quote(found.inner)} there "
        f"({script.at(found.inner)}) is a forward pass of the bare module."
    )
    hint = (
        f"Call the wrapper itself in training: let the module's `forward` do what `{method}` does while "
        f"`self.training` holds, and write `{owner}({given})` at {script.at(found.call)}; or compute the loss there, "
        f"from the outputs that `{owner}(…)` gives. Methods without a forward pass may stay as they are."
    )
    return says, hint


def _forwarding(script: Script) -> Iterable[tuple[ast.ClassDef, Function]]:
    """Classes around DDP, its heirs or holders of one, that look into the module for what they lack."""
    for tree in script.trees:
        for owner in tree.classes:
            method = script.graph.method(owner, "__getattr__")
            if method is not None and _looks_inside(method) and _is_around_ddp(script, owner):
                yield owner, method


def _looks_inside(method: Function) -> bool:
    """`return getattr(self.module, name)`."""
    asked = [a.arg for a in method.args.args[1:]]
    for node in walk(method):
        if isinstance(node, ast.Call) and name_of(node) == "getattr" and len(node.args) > 1:
            name = node.args[1]
            parts = [*ast.walk(node.args[0])]
            inside = any(getattr(p, "attr", "") == "module" or literal(p) == "module" for p in parts)
            if inside and isinstance(name, ast.Name) and name.id in asked:
                return True
    return False


def _is_around_ddp(script: Script, owner: ast.ClassDef) -> bool:
    family = script.graph.family(owner)
    inherits = any(script.names.qualified(b) == DDP for c in family for b in c.bases)
    wraps = script.training.wraps
    return inherits or any(
        script.names.tree(w).inside(w, c) for w in wraps for c in family if _same(script, w, c)
    )


def _same(script: Script, node: ast.AST, other: ast.AST) -> bool:
    return script.names.tree(node) is script.names.tree(other)


def _inner(script: Script, wrapper: ast.ClassDef, name: str) -> tuple[Function, ast.Call] | None:
    """A method of a module that the wrapper lacks, and the forward pass of that module in it."""
    if script.graph.method(wrapper, name) is not None:
        return None
    for tree in script.trees:
        for owner in tree.classes:
            method = script.graph.method(owner, name)
            if method is None or not any(
                script.names.qualified(b) == _MODULE for c in script.graph.family(owner) for b in c.bases
            ):
                continue
            for node in walk(method):
                if isinstance(node, ast.Call) and _is_forward(node, method):
                    return method, node
    return None


def _is_forward(call: ast.Call, method: Function) -> bool:
    """`self(x)`, and `self.forward(x)`."""
    itself = method.args.args[0].arg if method.args.args else ""
    func = (
        call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "forward" else call.func
    )
    return isinstance(func, ast.Name) and func.id == itself
