"""Shuffling samplers of a training loop that nobody tells the epoch, or not all ranks, or not each time.

Whatever may be a way to tell them counts as one: it claims only what the text shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.data.epoch_numbers import drawn_again, numbered_otherwise, retell_epoch, tell_epoch
from grader.checks.source.data.late_epochs import told_late
from grader.checks.source.ranks.guard_fixes import out_of_test
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of
from grader.model.fix import Fix

TELL = "Call `sampler.set_epoch(epoch)` at the start of each epoch, before the loop over the loader."
_TOLD = "Tells the sampler at the start of each epoch which one begins."
_SAME_ORDER = "Every epoch then has the same order and each rank the same samples for ever."


@dataclass(frozen=True, slots=True)
class UntoldSampler:
    """One of them.

    Attributes:
        sampler: the call that makes it. where: what to mend. says: what keeps it from the epoch, and what follows.
    """

    sampler: ast.Call
    where: ast.AST
    says: str
    hint: str
    fix: Fix | None


def untold_samplers(script: Script) -> Iterable[UntoldSampler]:
    """All of them."""
    training = script.training
    if not script.joins_group or training.framework or _told_otherwise(script):
        return
    named = (n for n in script.mentioned("set_epoch") if isinstance(n, ast.Attribute))
    told = [n for n in named if script.unreached.above(n) is None]
    for loader in training.loaders():
        role = training.roles(loader)
        if not role.trains or not drawn_again(script, loader):
            continue
        for sampler in training.distributed_samplers(loader):
            shuffles = script.argument(sampler, "shuffle")
            if shuffles is not None and script.values.constant(shuffles) is not True:
                continue
            if numbered_otherwise(script, loader, sampler):
                continue
            calls = [n for n in told if _may_mean(script, n, sampler)]
            if calls and not any(_tells(script, n) for n in calls):
                yield _told_in_vain(script, sampler, calls)
            elif not calls:
                yield _never_told(script, loader, sampler, told)
            elif (late := told_late(script, sampler)) is not None:
                yield UntoldSampler(sampler, late.nodes[0], late.says, late.hint, late.fix)


def _told_in_vain(script: Script, sampler: ast.Call, calls: list[ast.Attribute]) -> UntoldSampler:
    first, place = calls[0], script.at(calls[0])
    call, some = script.names.tree(first).parent[first], _told_by_some(script, first)
    edits, hint = Edits(script), TELL
    says = f"{place} does not run once per epoch with the epoch's number. {_SAME_ORDER}"
    if not isinstance(call, ast.Call):
        edits.give_up()
        says = f"{place} names {script.quote(first)} without calling it. {_SAME_ORDER}"
    elif some is not None:
        return UntoldSampler(
            sampler,
            first,
            f"{place} tells it the epoch on some ranks only ({script.quote(some)}). Ranks then shuffle in different "
            "ways: their shares overlap, and some samples are in none.",
            "Call `set_epoch(epoch)` on every rank.",
            out_of_test(script, call, "Tells the sampler on every rank which epoch begins."),
        )
    elif call.args and script.values.constant(call.args[0]) is not UNKNOWN:
        says = (
            f"{place} tells it the same number in each of them, {script.quote(call.args[0])}. {_SAME_ORDER}"
        )
        hint = "Give `set_epoch` the number of the epoch that begins, the variable of the loop over epochs."
    retell_epoch(script, edits, calls)
    return UntoldSampler(sampler, first, says, hint, edits.fix(_TOLD))


def _never_told(
    script: Script, loader: ast.Call, sampler: ast.Call, others: list[ast.Attribute]
) -> UntoldSampler:
    edits = Edits(script)
    tell_epoch(script, edits, loader, sampler)
    where: ast.AST = sampler
    vain, hint = "nothing calls `set_epoch` on it", TELL
    if others:
        where = others[0]
        asked = "the data set" if _is_data(script, others[0].value) else "another sampler than this one"
        vain = f"{script.at(where)} tells {asked}, {script.quote(where)}"
        hint = "Call `set_epoch(epoch)` on the sampler that the training loader draws from."
    return UntoldSampler(sampler, where, f"{vain}. {_SAME_ORDER}", hint, edits.fix(_TOLD))


def _may_mean(script: Script, node: ast.Attribute, sampler: ast.Call) -> bool:
    """Whether `x.set_epoch` may be this sampler's: its own, or that of something nobody can follow."""
    owners = script.values.origins(node.value)
    loaders = script.training.loaders()
    known: set[ast.AST] = {s for loader in loaders for s in script.training.distributed_samplers(loader)}
    return sampler in owners or not (all(o in known for o in owners) or _is_data(script, node.value))


def _is_data(script: Script, owner: ast.expr) -> bool:
    """Whether an expression is a loader's data set, which has no part in the order of a sampler."""
    loaders = script.training.loaders()
    given = [data for loader in loaders if (data := script.argument(loader, "dataset")) is not None]
    made = {origin for one in given for origin in script.values.origins(one)}
    return all(origin in made for origin in script.values.origins(owner))


def _told_otherwise(script: Script) -> bool:
    """Whether some text names `set_epoch`, as in `getattr(sampler, "set_epoch")(epoch)`; `hasattr` only asks."""
    named = (text for tree in script.trees for text in tree.texts if text.value == "set_epoch")
    return any(name_of(script.names.tree(text).parent.get(text, text)) != "hasattr" for text in named)


def _tells(script: Script, node: ast.Attribute) -> bool:
    """Whether a call of `set_epoch` runs once per epoch, on every rank, with a number that changes."""
    tree = script.names.tree(node)
    call = tree.parent[node]
    if isinstance(call, ast.Expr) or _told_by_some(script, node) is not None:
        return False
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


def _told_by_some(script: Script, node: ast.Attribute) -> ast.AST | None:
    """The test that lets only some ranks call `set_epoch`, where others train as well."""
    guard = script.replicas.on_some_ranks(node)
    if guard is None or not guard.condition.sure:
        return None
    lone = any(script.replicas.on_some_ranks(b) is not None for b in script.training.backwards)
    return None if lone else guard.test
