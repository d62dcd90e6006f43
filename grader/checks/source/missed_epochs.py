"""Calls of `set_epoch` that don't tell a sampler which epoch begins: another object, another number, or too late."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.script import Script


@dataclass(frozen=True, slots=True)
class MissedEpoch:
    """One such call with the tests that let it through; what it does, as a sentence for a message, what to write."""

    call: ast.Call
    tests: tuple[ast.expr, ...]
    says: str
    hint: str


def missed_epochs(script: Script, loader: ast.Call | None) -> Iterable[MissedEpoch]:
    """For a loader whose sampler a run saw at one and the same epoch: what its `set_epoch` calls do instead."""
    samplers = script.training.distributed_samplers(loader) if loader is not None else ()
    for call in script.called("set_epoch"):
        if not isinstance(call.func, ast.Attribute) or not call.args:
            continue
        owner = script.quote(call.func.value)
        if any(s in script.values.origins(call.func.value) for s in samplers):
            yield MissedEpoch(
                call,
                (),
                f"{script.at(call)} tells the `DistributedSampler` the same number each time, "
                f"{script.quote(call.args[0])}. ",
                f"Give it the variable of the loop over epochs: {owner[:-1]}.set_epoch(epoch)`, once per epoch.",
            )
        else:
            tests = tuple(_tests_of(script, call, call.func.value))
            through = f"; so does the test at {script.at(tests[0])}" if tests else ""
            yield MissedEpoch(
                call,
                tests,
                f"{script.at(call)} asks {owner}{through}, and that is not the loader's `DistributedSampler`, which "
                "was told nothing. ",
                f"Write {_sampler_of(call.func.value)} instead of {owner}, there{' and in that test' * bool(tests)}: "
                "it is the `DistributedSampler`, and is told the number of each epoch before that begins.",
            )


def _tests_of(script: Script, call: ast.Call, owner: ast.expr) -> Iterable[ast.expr]:
    """Tests around a call that ask the same object: `if hasattr(loader.batch_sampler, "set_epoch"):`."""
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while above is not None and above is not tree.function(call):
        if isinstance(above, ast.If) and ast.unparse(owner) in ast.unparse(above.test):
            yield above.test
        above = tree.parent.get(above)


def _sampler_of(owner: ast.expr) -> str:
    """How a loader's sampler is written where another part of the loader, or the loader, was asked."""
    part = isinstance(owner, ast.Attribute) and owner.attr in ("batch_sampler", "dataset")
    loader = owner.value if part and isinstance(owner, ast.Attribute) else owner
    return f"`{ast.unparse(loader)}.sampler`" if part or "load" in ast.unparse(owner) else "`loader.sampler`"


def may_mean(script: Script, node: ast.Attribute, sampler: ast.Call) -> bool:
    """Whether `x.set_epoch` may be this sampler's: its own, or that of something nobody can follow."""
    owners = script.values.origins(node.value)
    known = {s for loader in script.training.loaders() for s in script.training.distributed_samplers(loader)}
    return sampler in owners or not all(o in known for o in owners)


def tells(script: Script, node: ast.Attribute) -> bool:
    """Whether a call of `set_epoch` runs once per epoch with a number that changes."""
    tree = script.names.tree(node)
    call = tree.parent[node]
    if not isinstance(call, ast.Call) or not call.args:
        return True
    function = tree.function(node)
    called = function is None or bool(script.graph.sites(function))
    changes = not isinstance(script.values.constant(call.args[0]), int)
    if function is not None and not called and function not in script.graph.class_of:
        # Whoever calls what nobody calls here, the training loop runs where the call stands beside it.
        beside = any(script.names.tree(d.loop).function(d.loop) is function for d in script.training.draws)
        return (
            changes and script.training.repeated(node) if beside else bool(script.graph.references(function))
        )
    # A method that only a library may call is taken to be called once per epoch.
    return changes and (not called or script.training.repeated(node))
