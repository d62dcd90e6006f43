"""What losses of micro-batches are divided by before they add up: nothing, their number, or another one.

Told only where the loss comes straight from a loss of torch that takes the mean, and where nothing else scales what the
step uses: gradients changed by hand, a hook, another exchange, a learning rate that was reckoned with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.arithmetic import (
    QUOTIENTS,
    SCALING,
    is_quotient,
    is_scaled,
    same_value,
    scales,
)
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, walk
from grader.model.fix import Fix

_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class WrongDivisor:
    """A loss divided by another number than that of the micro-batches of a step: `says` follows a place."""

    node: ast.AST
    says: str
    hint: str
    fix: Fix | None


def wrong_divisors(script: Script) -> Iterable[WrongDivisor]:
    """All of them where DDP averages the gradients; none where anything else might make up for it."""
    if len(script.training.backwards) != 1 or not script.training.wraps or _scales_otherwise(script):
        return
    [backward] = script.training.backwards
    if backward.args or backward.keywords or not isinstance(backward.func, ast.Attribute):
        return
    divisions = _divisions(script, backward.func.value, 0)
    if divisions is None:
        return
    factors = [(node, f) for node, divisor in divisions for f in _factors(divisor)]
    for accumulation in script.accumulations.all:
        every = accumulation.every
        if every is None:
            continue
        if len(factors) == 1:
            found = _another(script, accumulation, *factors[0])
        elif len(factors) == 2:
            found = _ranks_too(script, every, divisions, [f for _, f in factors])
        else:
            continue
        if found is not None:
            yield found


def _another(
    script: Script, accumulation: Accumulation, node: ast.AST, divisor: ast.expr
) -> WrongDivisor | None:
    """A loss that is divided by one number, which is not that of the micro-batches."""
    number = script.values.constant(accumulation.every)
    if not isinstance(number, int) or number < 2:
        return None
    by, ranks = script.values.constant(divisor), script.ranks.world(divisor)
    if not ranks and (not isinstance(by, int | float) or by in (0, number)):
        return None
    edits = Edits(script)
    edits.replace(divisor, str(number))
    written = script.quote(divisor)
    kind = f"{written}, the number of ranks, over which DDP averages by itself," if ranks else written
    times = ast.unparse(divisor) if ranks else f"{by:g}"
    return WrongDivisor(
        node,
        f"divides the loss of each micro-batch by {kind} although {script.at(accumulation.step)} steps after "
        f"{number}: what adds up is no mean, and the step is {number} / {times} times that of one large batch.",
        f"Divide by {number}, the number of micro-batches of a step, instead of {written}.",
        edits.fix("Divides by the number of micro-batches."),
    )


def _ranks_too(
    script: Script, every: ast.expr, divisions: list[tuple[ast.AST, ast.expr]], factors: list[ast.expr]
) -> WrongDivisor | None:
    """A loss that is divided by the number of micro-batches, and by that of the ranks as well."""
    ranks = [f for f in factors if script.ranks.world(f)]
    others = [f for f in factors if f not in ranks]
    if len(ranks) != 1 or not same_value(script.values, others[0], every):
        return None
    [world], [other] = ranks, others
    node, divisor = next((n, d) for n, d in divisions if world in ast.walk(d))
    edits = Edits(script)
    if divisor is not world:
        edits.replace(divisor, edits.text(other))
    else:
        edits.give_up()  # a division of its own, in whatever line it stands
    return WrongDivisor(
        node,
        f"divides the loss of each micro-batch by {script.quote(world)}, the number of ranks, over which DDP averages "
        f"by itself, and by {script.quote(other)} besides: each step is as many times smaller than that of one large "
        "batch as there are ranks.",
        f"Divide by {script.quote(other)}, the number of micro-batches of a step, alone.",
        edits.fix("Divides by the number of micro-batches alone."),
    )


def _factors(divisor: ast.expr) -> list[ast.expr]:
    if isinstance(divisor, ast.BinOp) and isinstance(divisor.op, ast.Mult):
        return [*_factors(divisor.left), *_factors(divisor.right)]
    return [divisor]


def _scales_otherwise(script: Script) -> bool:
    """Whether anything else may make up for a sum: hand-made averages, hooks, gradients or rates that are changed."""
    if script.averaging.all or changes_gradients(script) or script.mentioned("register_comm_hook"):
        return True
    if script.called("register_hook", "register_post_accumulate_grad_hook"):
        return True
    rates = [script.argument(o, name) for o in script.updates.optimizers for name in ("lr", "max_lr")]
    made = [
        n for r in rates if isinstance(r, ast.expr) and r is not UNKNOWN for n in script.values.closure(r)
    ]
    return any(isinstance(n, ast.BinOp | ast.AugAssign) for n in made)


def _divisions(script: Script, node: ast.AST, depth: int) -> list[tuple[ast.AST, ast.expr]] | None:
    """The divisions on a loss's way to `backward`; None where it is no mean of torch's, or something else is done."""
    if depth > _MAX_DEPTH:
        return None
    if is_quotient(node):
        before = _divisions(script, node.left, depth + 1)
        return None if before is None else [*before, (node, node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        if node.func.attr == "scale":
            return _divisions(script, node.args[0], depth + 1)
        if node.func.attr in QUOTIENTS and not script.names.qualified(node.func):
            before = _divisions(script, node.func.value, depth + 1)
            return None if before is None else [*before, (node, node.args[0])]
    if isinstance(node, ast.Call):
        return [] if takes_the_mean(script, node) else None
    # `loss = loss / n`: of an earlier round's quotient nothing is left where this round has made a loss.
    made = [o for o in script.values.origins(node) if getattr(o, "left", None) is not node]
    changes = [o for o in made if isinstance(o, ast.AugAssign)]
    begun = [o for o in made if not isinstance(o, ast.AugAssign)]
    if len(begun) != 1 or begun[0] is node or not all(isinstance(c.op, ast.Div) for c in changes):
        return None
    before = _divisions(script, begun[0], depth + 1)
    return None if before is None else [*before, *((c, c.value) for c in changes)]


def takes_the_mean(script: Script, call: ast.Call) -> bool:
    """Whether a call is a loss of torch, or of one of its modules, that takes the mean over a batch."""
    built = [m for m in script.values.origins(call.func) if isinstance(m, ast.Call)]
    names = [script.names.qualified(call.func) or "", *(script.names.qualified(m.func) or "" for m in built)]
    of_torch = names[0].startswith("torch.nn.functional.") or any(
        n.startswith("torch.nn.") for n in names[1:]
    )
    told = [script.argument(c, "reduction") for c in (call, *built)]
    return of_torch and all(t is None or script.values.constant(t) == "mean" for t in told)


def never_divides(script: Script, found: Accumulation) -> bool:
    """Whether nothing anywhere divides by the number of micro-batches."""
    every = found.every
    if every is None or not isinstance(every, ast.Name | ast.Attribute | ast.Constant):
        return False
    if isinstance(every, ast.Constant) and every.value in (0, 1):
        return False
    words = _words(script, every)
    for tree in script.trees:
        if "sum" in tree.constants:
            return False  # a summed loss is divided by something else, or on purpose by nothing
        for node in walk(tree.root):
            parts: list[ast.expr] = []
            if is_scaled(node):
                parts = [node.left, node.right]
            elif scales(node):
                parts = [node.value]
            elif isinstance(node, ast.Call) and (name_of(node) in SCALING or name_of(node) == "backward"):
                parts = arguments_of(node)
            if any(words & _words(script, p) for p in parts):
                return False
    # A scaling factor that the text hides in a call or an object may be the division.
    backwards = [b for b in script.training.backwards if b.args or b.keywords]
    return not backwards and _plain_loss(script)


def _words(script: Script, node: ast.AST) -> set[str]:
    found = {name_of(n) for n in walk(node) if isinstance(n, ast.Name | ast.Attribute)}
    found |= {
        str(n.value) for n in walk(node) if isinstance(n, ast.Constant) and not isinstance(n.value, str)
    }
    if isinstance(node, ast.Name | ast.Attribute):
        for origin in script.values.origins(node):
            if isinstance(origin, ast.expr) and origin is not node:
                found |= {name_of(n) for n in walk(origin) if isinstance(n, ast.Name | ast.Attribute)}
    return found - {"self", "args", "cfg", "config", "opt", "len", "0", "1", "1.0", ""}


def _plain_loss(script: Script) -> bool:
    """The loss comes straight from a loss of torch: no arithmetic of the script's own on the way."""
    for backward in script.training.backwards:
        if isinstance(backward.func, ast.Attribute):
            for origin in script.values.origins(backward.func.value):
                if not isinstance(origin, ast.Call):
                    return False
                name = script.names.qualified(origin.func) or ""
                made = script.values.origins(origin.func)
                built = any(
                    (script.names.qualified(getattr(m, "func", m)) or "").startswith("torch.nn.")
                    for m in made
                )
                scaled = isinstance(origin.func, ast.Attribute) and origin.func.attr == "scale"
                if not (name.startswith("torch.nn.functional.") or built or scaled):
                    return False
    return bool(script.training.backwards)


def changes_gradients(script: Script) -> bool:
    """Whether the script does arithmetic on gradients of its own: that may be the division."""
    return any(
        reads_gradient(inner)
        for tree in script.trees
        for node in walk(tree.root)
        if isinstance(node, ast.BinOp | ast.AugAssign)
        or (isinstance(node, ast.Call) and name_of(node) in SCALING)
        for inner in ast.walk(node)
    )
