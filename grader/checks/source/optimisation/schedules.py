"""Schedules of the learning rate in the text: which step moves which, how long they are, whose rate they move."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.causes import CauseInText, by_world, lengths_at, stands_at
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import same_value
from grader.checks.source.syntax.nodes import UNKNOWN, name_of, start
from grader.checks.source.training_loops import SAMPLER
from grader.model.call_site import Site

SCHEDULES = "torch.optim.lr_scheduler."
OWN = "Count the loader's batches, `total_steps=epochs * len(loader)`: the loader knows its sampler's share."
ONE_OPTIMIZER = (
    "Build the optimizer once, above the loop, or make the schedule anew with it. To forget its momentum alone, write "
    "`optimizer.state.clear()`."
)


@dataclass(frozen=True, slots=True)
class ReplacedOptimizer:
    """An optimizer that is built in the place of the one which a schedule was made for.

    Attributes:
        optimizer: the call that builds it. schedule: the call that made the schedule, for the one before.
    """

    optimizer: ast.Call
    schedule: ast.Call


def replaced_optimizers(script: Script) -> list[ReplacedOptimizer]:
    """Optimizers that are stepped while a schedule made before goes on with another one, in the same variable."""
    schedules = [c for _, c in script.calls_under(SCHEDULES)]
    driven = {c: set(_optimizers(script, _given(script, c))) for c in schedules}
    steps = [c.func.value for c in script.called("step") if isinstance(c.func, ast.Attribute)]
    stepped = {o for value in steps for o in script.values.origins(value)}
    moved = {made for value in steps for made in stepped_by(script, value)}
    found = []
    for schedule, old in driven.items():
        if schedule not in moved or not old:
            continue
        for new in _built_later(script, schedule):
            undriven = not any(new in optimizers for optimizers in driven.values())
            if undriven and new in stepped:
                found.append(ReplacedOptimizer(new, schedule))
    # Of schedules that follow one another, the first stands for all.
    return [
        one
        for one in found
        if one.schedule is next(f.schedule for f in found if f.optimizer is one.optimizer)
    ]


def _given(script: Script, schedule: ast.Call) -> ast.expr | None:
    """The optimizer that a schedule is made for: the first argument of all of them."""
    return script.argument(schedule, "optimizer") or next(iter(schedule.args), None)


def _optimizers(script: Script, node: ast.expr | None) -> Iterable[ast.Call]:
    if node is not None and node is not UNKNOWN:
        for origin in script.values.origins(node):
            name = script.names.qualified(origin.func) or "" if isinstance(origin, ast.Call) else ""
            if (
                isinstance(origin, ast.Call)
                and name.startswith("torch.optim.")
                and not name.startswith(SCHEDULES)
            ):
                yield origin


def _built_later(script: Script, schedule: ast.Call) -> Iterable[ast.Call]:
    """Optimizers that the variable gets below the schedule, in the same function, where the schedule is used after."""
    given = _given(script, schedule)
    if not isinstance(given, ast.Name):
        return
    tree = script.names.tree(schedule)
    statement, function = tree.statement(schedule), tree.function(schedule)
    held = [t.id for t in getattr(statement, "targets", ()) if isinstance(t, ast.Name)]
    for call in tree.calls:
        assigned = tree.statement(call)
        targets = [t.id for t in getattr(assigned, "targets", ()) if isinstance(t, ast.Name)]
        if given.id not in targets or getattr(assigned, "value", None) is not call:
            continue
        if tree.function(call) is not function or start(call) < start(schedule):
            continue
        used = any(
            start(load) > start(call) and tree.function(load) is function
            for name in held
            for load in tree.loads.get(name, ())
        )
        if used and call in set(_optimizers(script, call)):
            yield call


def built_anew(script: Script, site: Site | None) -> list[ast.AST]:
    """What gives the variable of a schedule's optimizer another value than the one that the schedule was made for."""
    for _, schedule in script.calls_under(SCHEDULES):
        given = _given(script, schedule) if stands_at(script, schedule, site) else None
        if not isinstance(given, ast.Name | ast.Attribute):
            continue
        tree = script.names.tree(schedule)
        function = tree.function(schedule)
        if isinstance(given, ast.Name):
            stored = tree.definitions.get(tree.scope(schedule), {}).get(given.id, [])
        else:
            stored = [d for t in script.trees for d in t.attributes.get(given.attr, ())]
        made = [d.node for d in stored if d.value is not None]
        before = [n for n in made if tree.function(n) is function and start(n) < start(schedule)]
        # Of those above it in its function, the schedule has the last; all others are another's.
        return [n for n in made if not before or n is not max(before, key=start)] if len(made) > 1 else []
    return []


def of_whole_set(script: Script, length: ast.expr) -> bool:
    """Whether a number is made of a divided data set's size and the size of a rank's batch, and of no world size."""
    parts = script.values.closure(length)
    sets = [p.args[0] for p in parts if isinstance(p, ast.Call) and name_of(p) == "len" and p.args]
    divides = [p for p in parts if isinstance(p, ast.BinOp) and isinstance(p.op, ast.Div | ast.FloorDiv)]
    for loader in script.training.loaders():
        size, dataset = script.argument(loader, "batch_size"), script.argument(loader, "dataset")
        if (
            not script.training.distributed_samplers(loader)
            or size is None
            or size is UNKNOWN
            or dataset is None
        ):
            continue
        own = script.values.closure(size)
        if _by_world(script, parts - own):
            continue
        if _by_world(script, own) and not any(isinstance(p, ast.BinOp) for p in by_world(script, size)):
            continue
        meant = any(_may_be(script, s, dataset) for s in sets)
        if meant and any(_may_be(script, d.right, size) for d in divides):
            return True
    return False


def of_own_batches(script: Script, site: Site | None) -> bool:
    """Whether the schedule made at a place counts a rank's own batches, `epochs * len(loader)`, and not those of all.

    A sampler that divides the set, and a loader of it, know the rank's share.
    """
    for length in lengths_at(script, site):
        parts = script.values.closure(length)
        counted = [p.args[0] for p in parts if isinstance(p, ast.Call) and name_of(p) == "len" and p.args]
        shares = [c for c in counted if any(_of_share(script, o) for o in script.values.origins(c))]
        inner: set[ast.AST] = {n for share in shares for n in script.values.closure(share)}
        products = (p for p in parts if isinstance(p, ast.BinOp) and p not in inner)
        if shares and not any(script.ranks.world(side) for p in products for side in (p.left, p.right)):
            return True
    return False


def _of_share(script: Script, made: ast.AST) -> bool:
    """Whether a call makes a loader that gives each rank its share, or a sampler that does."""
    if not isinstance(made, ast.Call):
        return False
    loader = made in script.training.loaders() and script.sharding.of(made) is Shared.YES
    return loader or made in script.calls(SAMPLER)


def steps_of_whole_set(script: Script) -> Iterable[ast.BinOp]:
    """Divisions that count the steps of one process over a whole data set, where ranks have shares of it."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv)
            if divides and isinstance(node, ast.BinOp) and of_whole_set(script, node):
                yield node


def _by_world(script: Script, parts: Iterable[ast.AST]) -> bool:
    """Whether the number of ranks is among these itself, and not just in something that was made of it."""
    made = (p for p in parts if isinstance(p, ast.expr) and script.ranks.world(p))
    return any(not any(isinstance(o, ast.BinOp) for o in script.values.origins(p)) for p in made)


def stepped_by(script: Script, stepped: ast.expr) -> set[ast.AST]:
    """The schedules that a call of `step` may advance, those of a sequence too."""
    found = set(script.values.origins(stepped))
    for one in [o for o in found if isinstance(o, ast.Call) and name_of(o) == "SequentialLR"]:
        found |= set(script.values.closure(one))
    return found


def steps_of(script: Script, schedule: ast.Call) -> Iterable[ast.Call]:
    """The calls of `step` that advance a schedule, by itself or as a part of others."""
    for call in script.called("step"):
        owner = called_on(call)
        if owner is not None and schedule in stepped_by(script, owner):
            yield call


def _may_be(script: Script, one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are one value in some case: what makes loaders is given several sets."""
    shared = set(script.values.origins(one)) & set(script.values.origins(other))
    return bool(shared) or same_value(script.values, one, other)


def hurried(script: Script) -> Iterable[CauseInText]:
    """Steps of schedules that are made several times for each step of the optimizer: `for _ in range(n)` around one."""
    schedules: set[ast.AST] = {c for _, c in script.calls_under(SCHEDULES)}
    for call in script.called("step"):
        owner = called_on(call)
        loops = script.updates.loops_around(call)
        if owner is None or not loops or not schedules & stepped_by(script, owner):
            continue
        inner = loops[0]
        counted = inner.iter if isinstance(inner, ast.For) else None
        if not isinstance(counted, ast.Call) or script.names.qualified(counted.func) != "range":
            continue
        if script.updates.entries(inner, script.updates.steps) or not script.updates.rounds(
            call, script.updates.steps
        ):
            continue
        ranks = any(script.ranks.world(n) for n in counted.args)
        often = "as often as there are ranks" if ranks else "several times"
        yield CauseInText(
            (call, inner),
            f"{script.at(inner)} steps the schedule {often} for each step of the optimizer.",
            f"Write {script.quote(call)} once, without the loop at {script.at(inner)}: each rank has a schedule of its "
            "own, whose length counts that rank's own steps.",
        )
