"""Places that change what an optimizer remembers (momentum, moments, step counts) on some ranks only.

Gradients are equal then, and steps made of them are not: weights move apart from the next step on. Silent where
something may send weights or states to the others afterwards, and where not all ranks step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.checks.source.ranks.guard_fixes import out_of_test
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start
from grader.model.fix import Fix

_LOADING = "load_state_dict"
_EMPTYING = ("clear", "pop", "popitem", "update", "setdefault")
_IN_PLACE = ("zero_", "fill_", "mul_", "div_", "add_", "sub_", "copy_", "lerp_", "normal_")
_MAX_PARTS = 20


@dataclass(frozen=True, slots=True)
class LoneChange:
    """One such change: `says` follows a place, such as `train.py:7`."""

    node: ast.AST
    test: ast.AST
    says: str
    hint: str
    fix: Fix | None


def lone_optimizer_changes(script: Script) -> Iterable[LoneChange]:
    """All of them, in the order of the text."""
    if any(script.replicas.on_some_ranks(step) is not None for step in script.updates.steps):
        return
    guarded = [
        (node, guard)
        for node in sorted(set(_changes(script)), key=start)
        if (guard := script.replicas.on_some_ranks(node)) is not None
    ]
    for node, guard in guarded:
        if not guard.condition.sure or not script.replicas.trained_after(node):
            continue
        if script.replicas.sent_later(node) or _sends_weights(script, node):
            continue
        kind = guard.condition.which
        if any(other.condition.which is not kind for _, other in guarded):
            continue  # each rank has a branch of its own, which may do the same
        if kind is not RankSet.MAIN and isinstance(node, ast.Call) and name_of(node) == _LOADING:
            continue  # what rank 0 holds may have been sent to them
        line = script.quote(script.names.tree(node).statement(node))
        yield LoneChange(
            node,
            guard.test,
            f"changes what the optimizer remembers on some ranks only ({script.quote(guard.test)}): {line}. From equal "
            "gradients each rank then makes another step (by its own momentum, moments or step count), and the weights "
            "move apart.",
            f"Let all ranks run {line}, or none: take it out of the test of the rank at {script.at(guard.test)}.",
            out_of_test(script, node, "Does so on every rank.") if isinstance(node, ast.Call) else None,
        )


def _changes(script: Script) -> Iterable[ast.AST]:
    """Calls and statements that write to an optimizer's state, load it, or put another optimizer in its place."""
    updates = script.updates
    for call in script.called(_LOADING):
        if isinstance(call.func, ast.Attribute) and updates.is_optimizer(call.func.value):
            yield call
    for call in script.called(*_EMPTYING, *_IN_PLACE):
        if isinstance(call.func, ast.Attribute) and _of_state(script, call.func.value):
            yield call
    for tree in script.trees:
        for node in ast.walk(tree.root) if "state" in tree.attribute_loads else ():
            if any(isinstance(t, ast.Subscript) and _of_state(script, t.value) for t in _written(node)):
                yield node
        for store in tree.attributes.get("state", ()):
            if any(
                isinstance(t, ast.Attribute) and updates.is_optimizer(t.value) for t in _written(store.node)
            ):
                yield store.node
    yield from _built_again(script)


def _built_again(script: Script) -> Iterable[ast.AST]:
    """`optimizer = SGD(…)` under a test, where all ranks have built one of that name."""
    built = [(call, script.names.tree(call).statement(call)) for call in script.updates.optimizers]
    common = {
        ast.unparse(t)
        for call, made in built
        if script.replicas.on_some_ranks(call) is None
        for t in _written(made)
    }
    for call, made in built:
        if script.replicas.on_some_ranks(call) is not None and any(
            ast.unparse(t) in common for t in _written(made)
        ):
            yield made


def _written(node: ast.AST) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        return node.targets
    return (node.target,) if isinstance(node, ast.AugAssign | ast.AnnAssign) else ()


def _of_state(script: Script, node: ast.AST, depth: int = 3) -> bool:
    """Whether an expression is an optimizer's `state`, or a part of it, also as a loop's variable."""
    part = node
    for _ in range(_MAX_PARTS):
        if (
            isinstance(part, ast.Attribute)
            and part.attr == "state"
            and script.updates.is_optimizer(part.value)
        ):
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            part = part.func.value
        elif isinstance(part, ast.Attribute | ast.Subscript):
            part = part.value
        else:
            break
    if not isinstance(part, ast.Name) or not depth:
        return False
    made = script.values.origins(part)
    walked = [o.iter for o in made if isinstance(o, ast.For | ast.comprehension)]
    parts = [o for o in made if isinstance(o, ast.Attribute | ast.Subscript | ast.Call)]
    return any(_of_state(script, one, depth - 1) for one in (*walked, *parts) if one is not node)


def _sends_weights(script: Script, change: ast.AST) -> bool:
    """Whether some round of a loop around the change sends whole weights, which makes them equal again."""
    loops = script.updates.loops_around(change)
    calls = [c for name, c in script.calls_under("torch.distributed.") if name_of(c).startswith("broadcast")]
    inside = [c for loop in loops for c in calls if c in script.updates.entries(loop, calls)]
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters", "state_dict")
        for call in inside
        for given in call.args
        for n in script.values.closure(given)
    )
