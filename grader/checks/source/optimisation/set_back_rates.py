"""Rates that are set by hand beside a schedule that goes by its own base: its next step sets them back.

Asked only where a run has shown such a fall; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.causes import CauseInText
from grader.checks.source.optimisation.rate_causes import set_by_hand
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start

_BY_BASE = ("LambdaLR", "OneCycleLR", "CyclicLR", "CosineAnnealingWarmRestarts")
"""Schedules that make each rate of the base that they noted when they were made; others go on from what there is."""
_MAX_DEPTH = 3


def set_back_rate(script: Script) -> CauseInText | None:
    """A rate set by hand below such a schedule, once and not in each step."""
    schedules = [c for name, c in script.calls_under("torch.optim.lr_scheduler.") if name_of(c) in _BY_BASE]
    for schedule in schedules:
        for setter, _ in set_by_hand(script):
            later = _later(script, setter, schedule, 0)
            if later is not None:
                place = script.names.tree(later).statement(later) if later is not setter else setter
                made = script.names.tree(schedule).statement(schedule)
                says = (
                    f"{script.at(schedule)} notes the rate that it finds as its base, and makes every later one of "
                    f"that: its first step undoes what {script.at(setter)} sets"
                )
                if place is not setter:
                    says += f" when {script.at(place)} calls for it"
                return CauseInText(
                    tuple(dict.fromkeys((place, setter, schedule))),
                    f"{says}.",
                    f"Set the rate before the schedule is made: move {_moved(script, place)} ({script.at(place)}) "
                    f"above {script.quote(made)} ({script.at(made)}).",
                )
    return None


def overwritten_rate(script: Script) -> CauseInText | None:
    """A rate set by hand in each step, which the schedule's own step in the same round undoes."""
    for name, schedule in script.calls_under("torch.optim.lr_scheduler."):
        if name_of(schedule) not in _BY_BASE or name.count(".") != 3:
            continue
        steps = [
            c
            for c in script.called("step")
            if isinstance(c.func, ast.Attribute) and schedule in script.values.origins(c.func.value)
        ]
        for step in steps:
            for loop in script.updates.loops_around(step)[:1]:
                entries = script.updates.entries(loop, [setter for setter, _ in set_by_hand(script)])
                before = [
                    e for e in entries if start(e) < start(step) and _not_between(script, loop, e, step)
                ]
                if before:
                    return CauseInText(
                        (before[0], step, schedule),
                        f"{script.at(before[0])} sets the rate in each step, {script.quote(before[0])}, and "
                        f"{script.at(step)} sets it again before any step is taken with it: "
                        f"{script.quote(schedule.func)} makes each rate of the base that it noted, and knows nothing "
                        "of the one that it finds.",
                        f"Put the climb into the schedule, as a factor of the function that `{name_of(schedule)}` is "
                        "given, or by a `LinearLR` before it in a `SequentialLR`, and leave "
                        f"{script.quote(before[0])} out.",
                    )
    return None


def _not_between(script: Script, loop: ast.AST, first: ast.AST, last: ast.AST) -> bool:
    """Whether no optimizer steps between two places of a loop's round."""
    return not any(
        start(first) < start(e) < start(last) for e in script.updates.entries(loop, script.updates.steps)
    )


def _moved(script: Script, place: ast.AST) -> str:
    """What is to be moved: the statement, or the loop over the groups that it stands in."""
    loops = script.updates.loops_around(place)
    return f"the loop {script.quote(loops[-1])}" if loops else script.quote(place)


def _later(script: Script, node: ast.AST, schedule: ast.Call, depth: int) -> ast.AST | None:
    """What sets the rate in the schedule's own function, below it, by itself or by a call; None where nothing does."""
    tree = script.names.tree(node)
    if any(script.updates.entries(loop, script.updates.steps) for loop in script.updates.loops_around(node)):
        return None
    function = tree.function(node)
    if tree is script.names.tree(schedule) and function is tree.function(schedule):
        return node if start(node) > start(schedule) else None
    sites = script.graph.sites(function) if function is not None and depth < _MAX_DEPTH else []
    return next((f for s in sites if (f := _later(script, s.call, schedule, depth + 1)) is not None), None)
