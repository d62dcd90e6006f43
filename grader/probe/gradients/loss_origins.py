"""What a loss is made of, as autograd wrote it down: its function, how that reduces, and what it was multiplied by.

Follows a scalar's graph from its end up to the first node that is no multiplication by a constant. Reads what the graph
has saved; computes nothing.
"""

from __future__ import annotations

from typing import Any

_MAX_NODES = 16
_REDUCTIONS = ("none", "mean", "sum")
_PASSED = ("View", "Reshape", "Squeeze", "ToCopy", "Clone", "Alias", "Unsqueeze", "Expand")
_MEANS = {"Mean": "mean", "Sum": "sum"}


def origin(tensor: Any) -> dict[str, Any]:
    """Fields of a BACKWARD event from `function` on; none for what is no scalar of a graph."""
    node = getattr(tensor, "grad_fn", None)
    if node is None or tensor.numel() != 1:
        return {}
    factor, summed = 1.0, 1
    for _ in range(_MAX_NODES):
        name = node.name().partition("Backward")[0]
        if name in ("Mul", "Div"):
            constant = _constant(node)
            if constant is None or constant == 0:
                break
            factor = factor * constant if name == "Mul" else factor / constant
        elif name == "Neg":
            factor = -factor
        elif name == "_AllReduce":  # of `torch.distributed.nn`, whose backward pass is the same sum again
            num_ranks = _summed_ranks(node)
            if num_ranks is None:
                break
            summed *= num_ranks
        elif name not in _PASSED:
            break
        inner = [one for one, _ in node.next_functions if one is not None]
        if len(inner) != 1:
            break
        node = inner[0]
    name = node.name().partition("Backward")[0]
    number = getattr(node, "_saved_reduction", None)
    told = _REDUCTIONS[number] if isinstance(number, int) and 0 <= number < len(_REDUCTIONS) else ""
    over = {"summed": summed} if summed > 1 else {}
    return {"function": name, "reduction": told or _MEANS.get(name, ""), "factor": factor, **over}


def _summed_ranks(node: Any) -> int | None:
    """How many ranks' losses a collective has added up, 1 for their mean; None for anything else."""
    from torch.distributed import ReduceOp, get_world_size

    op = getattr(node, "op", None)
    if op == ReduceOp.AVG:
        return 1
    return int(get_world_size(getattr(node, "group", None))) if op == ReduceOp.SUM else None


def _constant(node: Any) -> float | None:
    """What a multiplication or division multiplies by, where that is one number and needs no gradient."""
    for name in ("_saved_other", "_saved_self"):
        value = getattr(node, name, None)
        if value is not None:
            return float(value.item()) if value.numel() == 1 and not value.requires_grad else None
    return None
