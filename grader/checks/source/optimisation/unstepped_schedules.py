"""Schedules of torch that are built, and that nothing in the text can step: the rate keeps the value of its first step.

Told only where every call of `step` is known to be something else's, and the schedule goes nowhere that is not read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.calls.uncalled_methods import uncalled
from grader.checks.source.causes import CauseInText
from grader.checks.source.optimisation.rate_causes import set_by_hand
from grader.checks.source.optimisation.schedules import SCHEDULES, steps_of
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, name_of

_LOOKS = {"print", "len", "type", "isinstance", "hasattr", "str", "repr", "id"}
"""What only looks at a schedule, and steps none."""


def unstepped(script: Script) -> Iterable[CauseInText]:
    """Each such schedule, the last of those that follow one another; `says` tells what it lacks."""
    training = script.training
    if training.framework or not script.updates.steps or any(set_by_hand(script)):
        return
    schedules = [c for _, c in script.calls_under(SCHEDULES)]
    for schedule in schedules:
        whole = not any(schedule is not c and schedule in script.values.closure(c) for c in schedules)
        if whole and not any(True for _ in steps_of(script, schedule)) and _stays(script, schedule):
            yield _cause(script, schedule)


def _stays(script: Script, schedule: ast.Call) -> bool:
    """Whether all that could step a schedule is read here, and does not."""
    function = script.names.tree(schedule).function(schedule)
    if function is not None and not script.graph.sites(function) and not _is_method_in_use(script, function):
        return False
    if uncalled(script, "step") or any(not _steps_another(script, one) for one in _named_steps(script)):
        return False
    for tree in script.trees:
        for call in tree.calls:
            given = (*call.args, *(k.value for k in call.keywords))
            own = script.graph.definition(call.func) is not None or script.graph.built_class(call) is not None
            if own or name_of(call) in _LOOKS:
                continue
            if any(_may_hold(one) and schedule in script.values.closure(one) for one in given):
                return False
    return True


def _is_method_in_use(script: Script, function: ast.AST) -> bool:
    """A constructor, of a class that the script builds."""
    owner = script.names.tree(function).enclosing_class(function)
    built = isinstance(function, FUNCTIONS) and function.name == "__init__" and owner is not None
    return built and any(script.graph.built_class(c) is owner for tree in script.trees for c in tree.calls)


def _named_steps(script: Script) -> Iterable[ast.expr]:
    """What the text reads `step` of, called or not."""
    return (n.value for tree in script.trees for n in tree.attribute_loads.get("step", ()))


def _steps_another(script: Script, owner: ast.expr) -> bool:
    """Whether all that a `step` may be read of is known, and no schedule."""
    origins = script.values.origins(owner)
    return bool(origins) and all(
        isinstance(o, ast.Call)
        and (script.names.qualified(o.func) or "").startswith(("torch.", "apex.", "bitsandbytes."))
        and not (script.names.qualified(o.func) or "").startswith(SCHEDULES)
        for o in origins
    )


def _may_hold(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant | ast.JoinedStr | ast.Lambda)


def _cause(script: Script, schedule: ast.Call) -> CauseInText:
    step = script.updates.steps[0]
    optimizer = script.quote(step)
    kind = name_of(schedule)
    name = _named(script, schedule, step)
    lengths = [n for n in script.values.closure(schedule) if isinstance(n, ast.Call) and name_of(n) == "len"]
    per_batch = any(
        set(script.training.loaders()) & set(script.values.origins(n.args[0])) for n in lengths if n.args
    )
    where = f"behind {optimizer} ({script.at(step)})"
    if not per_batch:
        where += ", or at the end of each epoch where its numbers count epochs"
    hint = (
        f"Write `{name}.step()` {where}: that moves the rate on."
        if name
        else (f"Call `step()` of it {where}: keep it in a variable, and hand that on to there.")
    )
    return CauseInText(
        (schedule,),
        f"{script.at(schedule)} builds the schedule, a `{kind}`, and nothing calls its `step()`: the learning rate "
        "stays at what it is in the first step.",
        hint,
    )


def _named(script: Script, schedule: ast.Call, step: ast.Call) -> str:
    """What the schedule is called where the optimizer steps; "" where nothing there holds it."""
    tree = script.names.tree(schedule)
    statement = tree.statement(schedule)
    target = (
        statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    )
    if isinstance(target, ast.Attribute) and getattr(statement, "value", None) is schedule:
        owner = called_on(step)
        beside = isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == ast.unparse(target.value)
        same = tree.enclosing_class(schedule) is script.names.tree(step).enclosing_class(step)
        return ast.unparse(target) if beside and same else ""
    return held_name(script, schedule, step)
