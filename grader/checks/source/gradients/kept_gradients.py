"""Gradients that are kept as they are, and not as copies, while their tensor is emptied or filled again.

Asked only where what was kept has been seen to hold nothing; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start

ZEROS = (
    "A gradient that is kept without a copy is the very tensor that is cleared next; a whole-number division `m // n` "
    "is 0, too; and what is stored before the backward pass or before the sum holds nothing yet."
)
"""What leaves zeros alone, where the text shows no one of them."""
_KEEPING = ("append", "extend", "setdefault", "update")
_EMPTYING = ("zero_", "fill_", "_foreach_zero_", "zeroed_")


def emptied(script: Script) -> Cause | None:
    """Where a gradient is kept whose tensor is emptied later, or else a weight that is a whole number's quotient."""
    kept = sorted(_kept(script), key=start)
    clears = list(_empties(script))
    if kept and clears:
        clear = min(clears, key=lambda c: (start(c) < start(kept[0]), start(c)))
        text = ast.unparse(kept[0])
        return Cause(
            (kept[0], clear),
            f"Keep a copy, `{text}.clone()`, in place of `{text}` at {script.at(kept[0])}: what is kept there is the "
            f"gradient itself, and {script.quote(clear)} ({script.at(clear)}) empties it.",
        )
    for tree in script.trees:
        for node in ast.walk(tree.root):
            whole = isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
            above = tree.parent.get(node)
            scaling = isinstance(above, ast.BinOp | ast.AugAssign) and isinstance(above.op, ast.Mult)
            if whole and scaling and isinstance(node, ast.BinOp):
                text = f"{ast.unparse(node.left)} / {ast.unparse(node.right)}"
                return Cause(
                    (node,), f"Write `({text})` for {script.quote(node)}, which is 0 for all but the whole."
                )
    return None


def _kept(script: Script) -> Iterator[ast.expr]:
    """Gradients, with no copy made, that an element of something or a list takes."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Subscript) for t in node.targets):
                # `vector[a:b] = p.grad` copies numbers into what is there.
                slices = [s for t in node.targets for s in ast.walk(t) if isinstance(s, ast.Slice)]
                given = [] if slices else [node.value]
            elif isinstance(node, ast.DictComp):
                given = [node.value]
            elif isinstance(node, ast.ListComp) and not isinstance(tree.parent.get(node), ast.Call):
                given = [node.elt]
            elif isinstance(node, ast.Call) and name_of(node) in _KEEPING:
                given = node.args[-1:]
            else:
                continue
            yield from (g for g in given if _is_itself(script, g))


def _is_itself(script: Script, node: ast.expr) -> bool:
    """`p.grad`, and views of it; `torch.cat` and the like make a tensor of their own."""
    joins = isinstance(node, ast.Call) and any(
        w in name_of(node) for w in ("cat", "stack", "clone", "to_vector")
    )
    return not joins and not isinstance(node, ast.Name) and script.updates.is_gradient(node)


def _empties(script: Script) -> Iterator[ast.Call]:
    """Calls that set gradients to 0 where they are: `p.grad.zero_()`, `zero_grad(set_to_none=False)`."""
    for clear in script.updates.clears:
        if isinstance(clear, ast.Call) and name_of(clear) in _EMPTYING:
            yield clear
    for call in script.called("zero_grad"):
        if any(k.arg == "set_to_none" and script.values.constant(k.value) is False for k in call.keywords):
            yield call
