"""Communication hooks that add up the gradients of all ranks and never divide, where DDP would have taken their mean.

A hook counts only where all that it calls is known: torch, methods of tensors and futures, functions of the script.
Whatever may divide, in the hook or anywhere else, keeps it from being told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, walk
from grader.model.fix import Fix

_SUM = "torch.distributed.all_reduce"
_BUCKET = {"buffer", "gradients", "set_buffer"}
_KEEPING = {
    *_BUCKET, "append", "bfloat16", "clone", "contiguous", "copy_", "cpu", "cuda", "detach", "double", "flatten",
    "float", "get_future", "half", "index", "is_last", "narrow", "numel", "parameters", "reshape", "result",
    "set_result", "size", "squeeze", "then", "to", "type", "type_as", "unsqueeze", "value", "view", "view_as", "wait",
}  # fmt: skip
"""Methods of buckets, futures and tensors that leave numbers as large as they are."""
_KEEPING_FUNCTIONS = {
    "torch.cat", "torch.clone", "torch.empty_like", "torch.flatten", "torch.futures.Future", "torch.no_grad",
    "torch.zeros_like", "torch.distributed.get_rank", "torch.distributed.get_world_size", "print", "len", "isinstance",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SummingHook:
    """One of them: `registered` puts it in the place of DDP's mean, `reduction` adds up."""

    registered: ast.Call
    hook: ast.expr
    reduction: ast.Call
    hint: str
    fix: Fix | None


def summing_hooks(script: Script) -> Iterable[SummingHook]:
    """All of them; none where gradients, losses or learning rates are scaled elsewhere."""
    registered = script.called("register_comm_hook") if script.training.wraps else []
    if not registered or script.averaging.scaled:
        return
    if script.called("register_hook", "register_post_accumulate_grad_hook"):
        return
    for call in registered:
        hook, body = hook_of(script, call)
        reduction = _only_adds(script, body) if body is not None else None
        if hook is not None and reduction is not None:
            yield SummingHook(call, hook, reduction, *_divided(script, reduction))


def hook_of(script: Script, call: ast.Call) -> tuple[ast.expr | None, ast.AST | None]:
    """The hook that a `register_comm_hook` is given, and the function or lambda of the script that it is."""
    hook = script.argument(call, "hook") or (call.args[1] if len(call.args) > 1 else None)
    bodies = script.values.origins(hook) if hook is not None else ()
    alone = bodies[0] if len(bodies) == 1 else None
    return hook, alone if isinstance(alone, (ast.Lambda, *FUNCTIONS)) else None


def _only_adds(script: Script, body: ast.AST) -> ast.Call | None:
    """The reduction of a hook that is one sum of its bucket's buffer; None where anything else may be done to it."""
    found: list[ast.Call] = []
    work, seen = [body], {body}
    while work:
        for node in walk(work.pop()):
            if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(node.op, ast.Add | ast.Sub):
                return None
            if not isinstance(node, ast.Call):
                continue
            name = script.names.qualified(node.func)
            if name == _SUM:
                found.append(node)
            elif targets := script.graph.targets(node):
                work += [t for t in targets if t not in seen]
                seen.update(targets)
            elif name not in _KEEPING_FUNCTIONS and not (
                name is None and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING
            ):
                return None
    return found[0] if len(found) == 1 and _adds_the_bucket(script, found[0]) else None


def _adds_the_bucket(script: Script, call: ast.Call) -> bool:
    op, tensor = script.argument(call, "op"), script.argument(call, "tensor")
    sums = op is None or all(getattr(o, "attr", "") == "SUM" for o in script.values.origins(op))
    made = script.values.closure(tensor) if tensor is not None else ()
    return sums and any(isinstance(n, ast.Attribute) and n.attr in _BUCKET for n in made)


def _divided(script: Script, call: ast.Call) -> tuple[str, Fix | None]:
    """The same sum, divided by the number of ranks of its group before it is taken."""
    edits, tensor, group = Edits(script), script.argument(call, "tensor"), script.argument(call, "group")
    if tensor is None:
        return "Divide by the number of ranks before the sum.", None
    among = edits.text(group) if isinstance(group, ast.Name | ast.Attribute) else ""
    divide = f".div_({edits.name('torch.distributed.get_world_size', call)}({among}))"
    edits.append(tensor, divide)
    told = (
        f"Divide before the sum, as DDP does: `{edits.text(tensor)}{divide}` in {script.at(call)}. Or leave the hook "
        "out, or take one of `torch.distributed.algorithms.ddp_comm_hooks`, which divide."
    )
    return told, edits.fix("Makes a mean of the hook's sum over ranks.")
