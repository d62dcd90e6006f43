"""Gradients of micro-batches that are cleared before any step has used them, and what a script may have had them for.

An attack on the inputs, a penalty on gradients, gradients that are put aside: all of them clear between backward passes
rightly, and each of them shows in the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, ancestors, name_of, start, walk

_DERIVATIVES = ("torch.autograd.grad", "torch.func.grad", "torch.func.grad_and_value", "torch.func.vjp")
_HOOKS = ("register_hook", "register_post_accumulate_grad_hook", "register_full_backward_hook")
_WALKS = ("parameters", "named_parameters")


def cleared_each_round(script: Script, found: Accumulation) -> ast.AST | None:
    """What clears in every round of an accumulation, although only some rounds, or what comes after them, step."""
    updates = script.updates
    backwards = updates.entries(found.loop, script.training.backwards)
    if len(backwards) != 1:
        return None  # which of them the clearing is for can't be told
    if found.guard is None and updates.entries(found.loop, updates.steps):
        return None
    if any(not _with_the_step(script, found, r) for r in updates.entries(found.loop, _reads(script))):
        return None
    for clear in updates.entries(found.loop, updates.clears):
        if not _conditional(script, found.loop, clear) and not _with_the_step(script, found, clear):
            return clear
    return None


def clear_once(script: Script, found: Accumulation, clear: ast.AST) -> str:
    """What to write where every round clears."""
    if found.guard is not None:
        return "Clear once per step: move `zero_grad()` beside `step()`, under the same condition."
    whole = script.names.tree(clear).statement(clear)
    above = _around(script, found.loop, clear)[-1:]
    moved = above[0] if above and isinstance(above[0], ast.For) else whole
    return (
        f"Clear once per step: move {script.quote(moved)} ({script.at(moved)}) above the loop at "
        f"{script.at(found.loop)}, whose rounds are to add up."
    )


def other_use(script: Script) -> bool:
    """Whether gradients may be asked for other things than steps: then to clear them early may well be right."""
    return bool(
        script.names.foreign
        or script.calls(*_DERIVATIVES)
        or script.called(*_HOOKS)
        or _reads(script)
        or any(_of_inputs(script, node, tensor) for node, tensor in _asked_for(script))
    )


def _reads(script: Script) -> list[ast.AST]:
    """Where a gradient is read for what it holds: neither cleared nor only looked for, and norms that are kept."""
    clears = script.updates.clears
    found: list[ast.AST] = []
    for tree in script.trees:
        for node in tree.attribute_loads.get("grad", ()):
            holder = tree.parent.get(node)
            if isinstance(holder, ast.Compare) and any(isinstance(o, ast.Is | ast.IsNot) for o in holder.ops):
                continue
            if any(tree is script.names.tree(c) and tree.inside(node, c) for c in clears):
                continue
            found.append(node)
    kept = (c for c in script.updates.clips if not isinstance(script.names.tree(c).parent.get(c), ast.Expr))
    return [*found, *kept]


def _asked_for(script: Script) -> Iterable[tuple[ast.AST, ast.expr | None]]:
    """Where gradients are asked for by hand, with the tensor that is to have one, None where it is made there."""
    for tree in script.trees:
        for call in tree.called("requires_grad_"):
            off = [*call.args, *(k.value for k in call.keywords)]
            if isinstance(call.func, ast.Attribute) and not any(_is_false(v) for v in off):
                yield call, call.func.value
        for definition in tree.attributes.get("requires_grad", ()):
            targets = getattr(definition.node, "targets", ())
            owner = next((t.value for t in targets if isinstance(t, ast.Attribute)), None)
            if definition.value is not None and not _is_false(definition.value):
                yield definition.node, owner
        for call in tree.calls:
            for keyword in call.keywords:
                if keyword.arg == "requires_grad" and not _is_false(keyword.value):
                    yield call, None


def _of_inputs(script: Script, node: ast.AST, tensor: ast.expr | None) -> bool:
    """Whether something else than a parameter is to have a gradient."""
    if tensor is None:
        return not isinstance(node, ast.Call) or name_of(node) != "Parameter"
    walked = [o for o in script.values.origins(tensor) if isinstance(o, ast.For | ast.comprehension)]
    return not walked or not all(name_of(o.iter) in _WALKS for o in walked)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _around(script: Script, outer: ast.AST, node: ast.AST) -> list[ast.AST]:
    """Loops and tests around a node within a round, innermost first."""
    around = ancestors(script.names.tree(node).parent, node, outer) if node is not outer else ()
    return [above for above in around if isinstance(above, (*LOOPS, ast.If, ast.IfExp, ast.Try))]


def _conditional(script: Script, outer: ast.AST, clear: ast.AST) -> bool:
    """Whether it is not what every round does: under a test of its own, or in a loop that is no walk over tensors."""
    around = _around(script, outer, clear)
    walks = [
        a
        for a in around
        if isinstance(a, ast.For) and not script.updates.entries(a, script.training.backwards)
    ]
    asks = [a for a in around if isinstance(a, ast.If) and walks and _asks_for_gradient(a.test)]
    return len(around) > len(walks) + len(asks)


def _asks_for_gradient(test: ast.expr) -> bool:
    """`if p.grad is not None:`, `if p.requires_grad:`."""
    return any(isinstance(n, ast.Attribute) and "grad" in n.attr for n in walk(test))


def _with_the_step(script: Script, found: Accumulation, node: ast.AST) -> bool:
    """Under the test of the step, or behind `if (i + 1) % n: continue`: what only the rounds that step do."""
    guard, tree = found.guard, script.names.tree(found.loop)
    if guard is None:
        return False
    if tree.inside(node, guard):
        return True
    return not tree.inside(found.step, guard) and start(node) > start(guard)
