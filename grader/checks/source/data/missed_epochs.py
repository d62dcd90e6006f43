"""Calls of `set_epoch` that don't tell a sampler which epoch begins: another object, another number, or too late."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from grader.checks.source.data.late_epochs import told_late
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors, name_of, walk

_BATCHES = "torch.utils.data.BatchSampler"


@dataclass(frozen=True, slots=True)
class MissedEpoch:
    """One such call with the tests that let it through; what it does, as a sentence for a message, what to write.

    `late`: it tells the right sampler the right number, behind the pass.
    """

    call: ast.Call
    tests: tuple[ast.expr, ...]
    says: str
    hint: str
    late: bool = False


def missed_epochs(script: Script, loader: ast.Call | None, *, changes: bool = False) -> Iterable[MissedEpoch]:
    """For a loader whose order a run saw repeated: what the `set_epoch` calls do instead of telling who makes it.

    `changes`: the run has seen that the sampler was told several numbers, so that some came too late.
    """
    makers = dict(_order_makers(script, loader)) if loader is not None else {}
    named = (c for c in script.called("set_epoch") if isinstance(c.func, ast.Attribute) and c.args)
    calls = [c for c in named if script.may_run(c)]
    told = {
        m for c in calls if isinstance(c.func, ast.Attribute) for m in script.values.origins(c.func.value)
    }
    own = any(script.graph.built_class(m) is not None for m in told & makers.keys())
    if own or (loader is not None and not makers):
        return  # what a sampler of one's own makes of the number, or who makes the order, nothing here tells
    for call in calls:
        assert isinstance(call.func, ast.Attribute)
        owner = script.quote(call.func.value)
        reached = [m for m in script.values.origins(call.func.value) if m in makers]
        late = told_late(script, reached[0], sure=False) if reached else None
        if late is not None:
            yield MissedEpoch(call, (), late.says, late.hint, late=True)
        elif reached and changes:
            says = f"{script.at(call)} told the `DistributedSampler` another number, but not between these epochs."
            hint = f"Call {script.quote(call)} once per epoch, before its pass over the loader."
            yield MissedEpoch(call, (), says, hint, late=True)
        elif reached:
            yield MissedEpoch(
                call,
                (),
                f"{script.at(call)} tells the `DistributedSampler` the same number each time, "
                f"{script.quote(call.args[0])}. ",
                f"Give it the variable of the loop over epochs: {owner[:-1]}.set_epoch(epoch)`, once per epoch.",
            )
        else:
            made = next(iter(makers), None)
            part, kind = (
                (makers[made], name_of(made)) if made is not None else ("sampler", "DistributedSampler")
            )
            tests = tuple(_tests_of(script, call, call.func.value))
            through = f"; so does the test at {script.at(tests[0])}" if tests else ""
            where = "there and in that test" if tests else "there"
            meant = _written(call.func.value, part) or _named(script, call, {made: "", loader: f".{part}"})
            if meant == owner:
                meant = "what makes the loader's order"  # nothing is put in its own place
            yield MissedEpoch(
                call,
                tests,
                f"{script.at(call)} asks {owner}{through}, and that is not the loader's `{kind}`, which was told "
                "nothing. ",
                f"Write {meant or f'`loader.{part}`'} instead of {owner}, {where}: "
                f"it is the `{kind}`, and is told the number of each epoch before that begins.",
            )


def untold(script: Script, loader: ast.Call | None) -> str:
    """What to write where a sampler of one's own takes the epoch's number and repeats its order; "" for no such one."""
    if loader is None:
        return ""
    for made, part in _order_makers(script, loader):
        if script.graph.built_class(made) is None:
            continue
        for call in script.called("set_epoch"):
            told = isinstance(call.func, ast.Attribute) and made in script.values.origins(call.func.value)
            if told and call.args:
                number = script.quote(call.args[0])
                return (
                    f"Let {script.at(call)} tell a number that changes with each epoch, in place of {number}."
                )
        statement = script.names.tree(loader).statement(loader)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Name):
            told_by = f"`{target.id}.{part}.set_epoch(epoch)`"
            return f"Call {told_by} at the start of each epoch, before the loop over `{target.id}`."
    return ""


def takes_epoch(script: Script, node: ast.AST) -> bool:
    """Whether a line of a sampler reads what its own `set_epoch` keeps: it needs no other number of the epoch."""
    owner = script.names.tree(node).enclosing_class(node)
    method = script.graph.method(owner, "set_epoch") if owner is not None else None
    kept = {n.attr for n in walk(method) if _is_own(n, ast.Store)} if method is not None else set()
    return any(n.attr in kept for n in script.values.closure(node) if _is_own(n, ast.Load))


def _is_own(node: ast.AST, context: type[ast.expr_context]) -> TypeGuard[ast.Attribute]:
    plain = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return plain and isinstance(node, ast.Attribute) and isinstance(node.ctx, context)


def _order_makers(script: Script, loader: ast.Call) -> Iterable[tuple[ast.AST, str]]:
    """What deals a loader's samples out and can be told the epoch, with the part of the loader that it is."""
    for part in ("sampler", "batch_sampler"):
        given = script.argument(loader, part)
        for made in script.values.origins(given) if isinstance(given, ast.expr) else ():
            owner = script.graph.built_class(made)
            if owner is not None and script.graph.method(owner, "set_epoch") is not None:
                yield made, part
    batched = script.argument(loader, "batch_sampler")
    made_of = script.values.origins(batched) if isinstance(batched, ast.expr) else ()
    inside = any(isinstance(m, ast.Call) and script.names.qualified(m.func) == _BATCHES for m in made_of)
    part = "batch_sampler.sampler" if inside else "sampler"
    yield from ((made, part) for made in script.training.distributed_samplers(loader))


def _tests_of(script: Script, call: ast.Call, owner: ast.expr) -> Iterable[ast.expr]:
    """Tests around a call that ask the same object: `if hasattr(loader.batch_sampler, "set_epoch"):`."""
    tree = script.names.tree(call)
    for above in ancestors(tree.parent, call, tree.function(call)):
        if isinstance(above, ast.If) and ast.unparse(owner) in ast.unparse(above.test):
            yield above.test


def _named(script: Script, call: ast.Call, wanted: Mapping[ast.AST | None, str]) -> str:
    """The name that one of these has where a call stands, with the part of it that is meant; "" where none has one."""
    for node, part in wanted.items():
        if node is None:
            continue
        tree = script.names.tree(node)
        statement = tree.statement(node)
        target = (
            statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is node else None
        )
        known = tree is script.names.tree(call) and tree.function(node) in (None, tree.function(call))
        if known and isinstance(target, ast.Name):
            return f"`{target.id}{part}`"
    return ""


def _written(owner: ast.expr, part: str) -> str:
    """How a part of a loader is written where another part of it, or the loader, was asked; "" where neither was."""
    asked = isinstance(owner, ast.Attribute) and owner.attr in ("batch_sampler", "dataset", "sampler")
    loader = owner.value if asked and isinstance(owner, ast.Attribute) else owner
    return f"`{ast.unparse(loader)}.{part}`" if asked or "load" in ast.unparse(owner) else ""
