"""What a script makes of the results of its reductions: who reads them, whether sums are divided, where they are lost.

Answers with the calls at fault and what was seen there; messages are the rule's. Gradients are left out: averaging them
is another rule's business.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.ranks.muted_output import muted
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import QUOTIENTS, SCALING, is_quotient, is_scaled
from grader.checks.source.syntax.nodes import LOOPS, READS, VARIABLES, Loop, ancestors, name_of, walk
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.data_flow import (
    definitions,
    is_fresh,
    reads_after,
    sent_on,
    source_text,
    use_of,
)
from grader.checks.source.values.temporary_tensors import ALIASES, MAKERS

_ROOTED = ("reduce",)
_IN_PLACE = ("all_reduce", "reduce", "broadcast")
_DIVIDING = {*SCALING, "mean", "item_mean"}
_UNPACKED = {*ALIASES, "detach", "clone", "item"}
_NUMBER = re.compile(r"total|count|num|batches|samples|size|(^|_)(n|steps|correct)(_|$)", re.IGNORECASE)
_LOSS_NAME = ("criterion", "loss_fn", "loss_func", "loss_function", "crit", "compute_loss")


def reductions(script: Script) -> Iterable[tuple[ast.Call, str, ast.expr]]:
    """Collectives of torch.distributed that reduce in place, with their short name and their tensor."""
    for call, name in script.collectives.direct.items():
        qualified = script.names.qualified(call.func) or ""
        if name in _IN_PLACE and qualified.startswith("torch.distributed."):
            tensor = script.given(call, "tensor")
            if tensor is not None and not _of_gradients(script, tensor):
                yield call, name, tensor


def read_elsewhere(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> ast.AST | None:
    """A use of a `reduce` result on ranks that don't have it: said or decided upon by every rank, or by another one."""
    root = script.values.constant(script.argument(call, "dst"))
    if name not in _ROOTED or not isinstance(root, int) or not source_text(tensor):
        return None

    def held_by_all(node: ast.expr) -> bool:
        """Not what the rank that has the result makes of it for itself, `total.item() if rank == 0 else None`."""
        return not any(
            g.condition.partial and not g.condition.keeps_off(root) for g in script.guards.around(node)
        )

    reads = reads_after(script, tensor, call, hands_on=held_by_all)
    if any(sent_on(script, node) for node in reads):
        return None
    for node in reads:
        use = use_of(script, node)
        if use is None or any(script.ranks.shows_rank(n) for n in walk(use)):
            continue
        if isinstance(use, ast.Call) and muted(script, use):
            continue
        guards = script.guards.around(use)
        everywhere = not any(g.condition.partial for g in guards) and script.guards.on_every_rank(use)
        if everywhere or any(g.condition.keeps_off(root) for g in guards):
            return use
    return None


def grows(script: Script, call: ast.Call, tensor: ast.expr) -> Loop | None:
    """The loop in which a running sum is reduced in place in every round, with nothing that starts it anew."""
    name = source_text(tensor)
    if not name or not _sums(script, call):
        return None  # means and maxima may be taken again and again
    tree = script.names.tree(call)
    for above in ancestors(tree.parent, call, tree.scope(call)):
        if isinstance(above, LOOPS):
            found = definitions(tree, call, name)
            inside = [d for d in found if tree.inside(d.node, above)]
            sums = [d for d in inside if _adds(d.node) or not (d.kind == "augment" or is_fresh(name, d))]
            running = bool(sums) or _element_sums(tree, call, name, above)
            anew = any(d.kind != "augment" and is_fresh(name, d) for d in inside) or _cleared(
                tree, name, above
            )
            if running and not anew and not any(_scales(d.node) for d in inside):
                return above
    return None


def _adds(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)


def _scales(node: ast.AST) -> bool:
    """`total /= world_size`: a mean that moves along, in whose rounds nothing piles up."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mult)


def _element_sums(tree: Tree, call: ast.Call, name: str, loop: Loop) -> bool:
    """`totals[0] += …` inside a loop."""
    found = tree.definitions.get(tree.scope(call), {})
    return any(
        _adds(d.node) and tree.inside(d.node, loop)
        for key, made in found.items()
        if key.startswith(f"{name}[")
        for d in made
    )


def _cleared(tree: Tree, name: str, loop: Loop) -> bool:
    return any(
        isinstance(c.func, ast.Attribute)
        and source_text(c.func.value) == name
        and c.func.attr in ("zero_", "fill_", "copy_", "reset", "clear", "div_", "mul_")
        for c in tree.calls_within(loop)
    )


def undivided(script: Script, call: ast.Call, tensor: ast.expr) -> tuple[ast.expr, ast.AST] | None:
    """A mean that is summed over the ranks and then said or recorded without any division: the mean and its use."""
    if not _sums(script, call) or not source_text(tensor):
        return None
    mean = _mean_in(script, tensor, 0)
    if mean is None or _divides_by_world(script, script.values.closure(tensor)):
        return None
    reads = reads_after(script, tensor, call)
    if any(_divided(script, n) for n in reads) or _divided_by_loops(script, call):
        return None
    uses = [u for n in reads if (u := use_of(script, n)) is not None and not isinstance(u, ast.Return)]
    return (mean, uses[0]) if uses else None


def divided_again(script: Script, call: ast.Call, tensor: ast.expr) -> ast.AST | None:
    """A division by the number of ranks below a reduction that has averaged already."""
    operation = script.argument(call, "op")
    if operation is None or name_of(operation) != "AVG" or not source_text(tensor):
        return None
    for node in reads_after(script, tensor, call):
        divisor = _divisor(script, node)
        if divisor is not None and _is_world(script, divisor):
            return script.names.tree(node).statement(node)
    return None


def _sums(script: Script, call: ast.Call) -> bool:
    operation = script.argument(call, "op")
    return operation is None or name_of(operation) == "SUM"


def _mean_in(script: Script, node: ast.expr, depth: int) -> ast.expr | None:
    """The mean that a tensor was made of, as it is; None for sums of means, and where not all origins are one."""
    found: list[ast.expr | None] = []
    for origin in script.values.origins(node):
        inner = _unpacked(script, origin)
        if inner is not None and depth < 6:
            found.append(_mean_in(script, inner, depth + 1))
        else:
            found.append(origin if isinstance(origin, ast.expr) and is_mean(script, origin) else None)
    return found[0] if found and all(f is not None for f in found) else None


def _unpacked(script: Script, origin: ast.AST) -> ast.expr | None:
    """`x` of `x.detach()`, `x.clone()`, `torch.tensor(x)` and `torch.tensor([x])`."""
    if not isinstance(origin, ast.Call):
        return None
    if script.names.qualified(origin.func) in MAKERS and origin.args:
        given = origin.args[0]
        return given.elts[0] if isinstance(given, ast.List | ast.Tuple) and len(given.elts) == 1 else given
    same = isinstance(origin.func, ast.Attribute) and origin.func.attr in _UNPACKED
    return origin.func.value if same and isinstance(origin.func, ast.Attribute) else None


def is_mean(script: Script, node: ast.AST) -> bool:
    """A mean over this rank's samples: a loss with its default reduction, `.mean()`, a ratio of two counts."""
    if isinstance(node, ast.Call):
        name = script.names.qualified(node.func) or ""
        reduction = keyword_value(node, "reduction")
        if reduction is not None:
            return False
        if name.startswith("torch.nn.functional.") and (name.endswith("loss") or "entropy" in name):
            return True
        if name == "" and name_of(node) in _LOSS_NAME and isinstance(node.func, ast.Name | ast.Attribute):
            made = [o for o in script.values.origins(node.func) if isinstance(o, ast.Call)]
            return all(not any(k.arg == "reduction" for k in m.keywords) for m in made)
        return name_of(node) == "mean" and isinstance(node.func, ast.Attribute) and not node.args
    if not is_quotient(node):
        return False
    return any(isinstance(n, READS) for n in walk(node.left)) and _is_number_of(script, node.right)


def _is_number_of(script: Script, node: ast.expr) -> bool:
    """A number of samples or batches; not of ranks, and not seconds (throughputs of all ranks are rightly summed)."""
    if script.ranks.world(node):
        return False
    parts = script.values.closure(node)
    if any((script.names.qualified(n) or "").startswith("time.") for n in parts if isinstance(n, VARIABLES)):
        return False
    if any(isinstance(n, ast.Call) and script.names.qualified(n.func) == "len" for n in walk(node)):
        return True
    names = [n for n in walk(node) if isinstance(n, READS)]
    return any(_counted(script, n) or _NUMBER.search(name_of(n)) for n in names)


def _counted(script: Script, node: ast.expr) -> bool:
    return any(isinstance(o, ast.AugAssign) for o in script.values.origins(node))


def _is_world(script: Script, node: ast.expr) -> bool:
    """The number of ranks itself, not something worked out from it (`tokens // (batch * world_size)`)."""
    origins = script.values.origins(node)
    return bool(script.ranks.world(node)) and not any(isinstance(o, ast.BinOp) for o in origins)


def _divides_by_world(script: Script, nodes: Iterable[ast.AST]) -> bool:
    for node in nodes:
        if is_scaled(node):
            parts = [node.left, node.right]
        else:
            parts = node.args if isinstance(node, ast.Call) and name_of(node) in _DIVIDING else []
        if any(script.ranks.world(p) for p in parts):
            return True
    return False


def _divided_by_loops(script: Script, call: ast.Call) -> bool:
    """`for name in metrics: …` below: values that sit in a container are beyond what names tell."""
    tree = script.names.tree(call)
    drawing = [draw.loop for draw in script.training.draws]
    around = ancestors(tree.parent, call, tree.scope(call))
    loops = (above for above in around if isinstance(above, ast.For) and above not in drawing)
    return any(not script.training.runs_backward(loop) for loop in loops)


def _divided(script: Script, node: ast.expr) -> bool:
    if _divisor(script, node) is not None:
        return True
    tree = script.names.tree(node)
    above = tree.parent.get(node)
    while isinstance(above, ast.expr | ast.keyword):
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div | ast.Mult | ast.FloorDiv):
            return True
        if isinstance(above, ast.Call) and (name_of(above) in _DIVIDING or script.graph.targets(above)):
            return True  # what a helper does with it, nobody follows
        above = tree.parent.get(above)
    return False


def _divisor(script: Script, node: ast.expr) -> ast.expr | None:
    """What a value is divided by at this place: `x / n`, `x /= n`, `x.div_(n)`."""
    tree = script.names.tree(node)
    child: ast.AST = node
    above = tree.parent.get(node)
    while isinstance(above, ast.Attribute | ast.Subscript | ast.Call | ast.BinOp):
        if isinstance(above, ast.BinOp):
            return above.right if isinstance(above.op, ast.Div) and child is above.left else None
        if isinstance(above, ast.Call) and above.func is child and name_of(above) in QUOTIENTS:
            return above.args[0] if above.args else None
        child, above = above, tree.parent.get(above)
    if isinstance(above, ast.AugAssign) and child is above.target and isinstance(above.op, ast.Div):
        return above.value
    return None


def _of_gradients(script: Script, tensor: ast.expr) -> bool:
    return any(map(reads_gradient, script.values.closure(tensor)))
