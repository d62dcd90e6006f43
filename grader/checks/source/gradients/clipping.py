"""Clips of gradients that are not what the step uses: still scaled, stepped with before, or one rank's own in a hook.

Without a `GradScaler` the text itself says what the scale is: what multiplies the loss, and divides its gradients. DDP
and FSDP exchange gradients once they are made and all hooks of a tensor have run: a hook sees those of its own rank.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import called_on, keyword_value
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient, same_value
from grader.checks.source.syntax.nodes import name_of, names_in, start, walk
from grader.checks.source.training_loops import OTHER_WRAPPERS

_MAX_DEPTH = 4
_CLIPS = {
    "clamp",
    "clamp_",
    "clip",
    "clip_",
    "clamp_max",
    "clamp_max_",
    "clip_grad_norm_",
    "clip_grad_value_",
}
_NORMS = {"norm", "vector_norm"}
_PARAMETERS = ("parameters", "named_parameters")


@dataclass(frozen=True, slots=True)
class ScaledClip:
    """One of them.

    Attributes:
        clip, backward: the calls. unscaled: the division that comes too late.
        scale: what the loss is multiplied by.
    """

    clip: ast.Call
    backward: ast.Call
    unscaled: ast.AST
    scale: ast.expr


def scaled_clips(script: Script) -> Iterable[ScaledClip]:
    """All clips between a backward pass from a scaled loss and the division that takes the scale out again."""
    clips = [c for c in script.updates.clips if not _measures_alone(c)]
    quotients = list(divisions(script)) if clips else []
    for backward in script.training.backwards if quotients else ():
        for scale in _scales(script, backward):
            late = [node for node, by in quotients if same_value(script.values, scale, by)]
            clip = next((c for c in clips if late and _between(script, backward, c, late)), None)
            if clip is not None:
                yield ScaledClip(clip, backward, min(late, key=start), scale)


def _scales(script: Script, backward: ast.Call) -> list[ast.expr]:
    """Factors of the loss that goes backward."""
    value = called_on(backward) or backward
    products = [o for o in script.values.origins(value) if isinstance(o, ast.BinOp)]
    return [side for o in products if isinstance(o.op, ast.Mult) for side in (o.left, o.right)]


def divisions(script: Script) -> Iterable[tuple[ast.AST, ast.expr]]:
    """Where gradients are divided, and by what."""
    is_gradient = script.updates.is_gradient
    for node in (n for tree in script.trees for n in walk(tree.root)):
        if isinstance(node, ast.AugAssign) and is_gradient(node.target):
            by = _divisor(node.op, node.value)
        elif isinstance(node, ast.BinOp) and is_gradient(node.left):
            by = _divisor(node.op, node.right)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            how = {"div": ast.Div(), "mul": ast.Mult()}.get(
                node.func.attr.strip("_").removeprefix("foreach_")
            )
            on, given = (node.args[0], node.args[1:]) if len(node.args) > 1 else (node.func.value, node.args)
            by = _divisor(how, given[0]) if how is not None and is_gradient(on) else None
        else:
            by = None
        if by is not None:
            yield node, by


def _divisor(how: ast.operator, number: ast.expr) -> ast.expr | None:
    """What a quotient divides by: `/ scale`, or `* (1 / scale)`."""
    if isinstance(how, ast.Mult) and is_quotient(number):
        return number.right
    return number if isinstance(how, ast.Div) else None


def _between(script: Script, backward: ast.Call, clip: ast.Call, late: list[ast.AST]) -> bool:
    """Whether a round that reaches all three clips after the pass, and divides after that alone."""
    return any(
        _in_order(script, loop, (backward, clip, *late))
        for loop in script.updates.rounds(backward, [clip], late)
    )


def _in_order(script: Script, around: ast.AST, nodes: tuple[ast.AST, ...]) -> bool:
    """The same within a loop, or within the function that it leaves all of them to."""
    for _ in range(_MAX_DEPTH):
        entries = [script.updates.entries(around, [node]) for node in nodes]
        passes, clipped, *divided = ([start(e) for e in found] for found in entries)
        if not all((passes, clipped, *divided)):
            return False
        if max(passes) < min(clipped) < min(map(min, divided)):
            return True
        called = entries[0][0]
        inner = script.graph.targets(called) if isinstance(called, ast.Call) and called not in nodes else ()
        if any(found != [called] for found in entries) or len(inner) != 1:
            # The pass stands by itself, and one function clips and divides.
            return (
                max(passes) < min(clipped) and clipped == divided[0] and _in_one_function(script, nodes[1:])
            )
        around = inner[0]
    return False


def _in_one_function(script: Script, nodes: tuple[ast.AST, ...]) -> bool:
    functions = {script.names.tree(n).function(n) for n in nodes}
    return len(functions) == 1 and start(nodes[0]) < min(map(start, nodes[1:]))


def step_above(script: Script, clip: ast.Call) -> ast.Call | None:
    """The step that a clip comes too late for; None where the clip has an effect, or none was meant."""
    updates = script.updates
    if _measures_alone(clip):
        return None
    tree = script.names.tree(clip)
    scope = tree.function(clip)
    rounds = updates.rounds(clip, updates.steps, updates.clears, script.training.backwards)
    if not rounds:
        return None

    def beside(nodes: tuple[ast.AST, ...]) -> list[ast.AST]:
        return [n for n in nodes if script.names.tree(n) is tree and tree.function(n) is scope]

    order = sorted((*beside(updates.steps), *beside(script.training.backwards), clip), key=start)
    before, later = order[: order.index(clip)], order[order.index(clip) + 1 :]
    step = before[-1] if before else None
    if not isinstance(step, ast.Call) or step not in updates.steps or not updates.together(step, clip):
        return None
    went_back = any(n in script.training.backwards for n in before)
    same = set(rounds) & set(updates.rounds(step, updates.steps))
    return step if went_back and not later and same else None


def _measures_alone(clip: ast.Call) -> bool:
    """Whether a clip has no limit: it asks for the norm alone."""
    return any(_is_infinite(a) for a in (*clip.args[1:2], *(k.value for k in clip.keywords)))


def _is_infinite(limit: ast.expr) -> bool:
    """`math.inf`, `float("inf")`."""
    if isinstance(limit, ast.Call):
        return any(isinstance(a, ast.Constant) and str(a.value).lower().startswith("inf") for a in limit.args)
    return name_of(limit) == "inf"


def clipping_hooks(script: Script) -> Iterable[ast.Call]:
    """Calls that put a clip into a hook of parameters whose gradients are averaged afterwards."""
    averaged = script.training.wraps or script.calls(*OTHER_WRAPPERS) or script.averaging.all
    for call in script.called("register_hook") if averaged else ():
        hook = call.args[0] if call.args else keyword_value(call, "hook")
        body = _body(script, hook) if hook is not None else None
        if body is not None and _of_parameters(script, call) and _clips(script, body):
            yield call


def after_backward(script: Script, hook: ast.Call) -> str:
    """What to do instead, in the script's own words; "" where the text does not tell them."""
    for backward in script.training.backwards:
        for call in script.updates.forwards(backward):
            if isinstance(call.func, ast.Name | ast.Attribute) and _is_model(script, call.func):
                model = ast.unparse(call.func)
                return (
                    f"Leave {script.quote(hook)} out and clip the mean, which the step uses: after "
                    f"{script.quote(backward)} ({script.at(backward)}) write "
                    f"`torch.nn.utils.clip_grad_norm_({model}.parameters(), max_norm=1.0)`, with your limit."
                )
    return ""


def _is_model(script: Script, called: ast.expr) -> bool:
    origins = script.values.origins(called, returns=False)
    return any(o in script.training.wraps or script.replicas.builds_model(o) for o in origins)


def _body(script: Script, hook: ast.expr) -> ast.AST | None:
    for origin in (hook, *script.values.origins(hook)):
        if isinstance(origin, ast.Lambda):
            return origin
        if isinstance(origin, ast.Call) and name_of(origin) == "partial" and origin.args:
            return script.graph.definition(origin.args[0])
    found = script.graph.definition(hook)
    return found if isinstance(found, ast.FunctionDef) else None


def _of_parameters(script: Script, call: ast.Call) -> bool:
    """Whether the hook is put on each of a model's parameters, in a loop over them."""
    owner = called_on(call)
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while isinstance(owner, ast.Name) and above is not None:
        loops: list[ast.For | ast.comprehension] = [above] if isinstance(above, ast.For) else []
        if isinstance(above, ast.ListComp | ast.GeneratorExp):
            loops = list(above.generators)
        for loop in loops:
            bound = owner.id in names_in(loop.target)
            if bound and any(
                isinstance(n, ast.Call) and name_of(n) in _PARAMETERS for n in ast.walk(loop.iter)
            ):
                return True
        above = tree.parent.get(above)
    return False


def _clips(script: Script, body: ast.AST) -> bool:
    """Whether a function limits what it is given, and asks no other rank first."""
    calls = [n for n in walk(body) if isinstance(n, ast.Call)]
    if any((script.names.qualified(c.func) or "").startswith("torch.distributed.") for c in calls):
        return False
    named = {name_of(c) for c in calls}
    return bool(named & _CLIPS) or bool(named & _NORMS and named & {"min", "minimum", "max", "maximum"})
