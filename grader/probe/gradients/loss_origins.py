"""What a loss is made of, as autograd wrote it down: its function, how that reduces, and what it was multiplied by.

Follows a scalar's graph from its end up to the first node that is no multiplication by a constant; and, at some steps,
on to the cross entropies with labels that it holds, whatever was added to them. Reads what the graph has saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from grader.probe.data import fed_pictures
from grader.probe.hooks import sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.steps import device_steps
from grader.probe.steps.step_events import EVERY, FIRST_SAMPLED
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_NODES = 16
_MAX_SEARCHED = 256
"""Nodes from a loss on, in which cross entropies are looked for: sums of some losses, and of a penalty for each
parameter."""
_MAX_TERMS = 8
_REDUCTIONS = ("none", "mean", "sum")
_PASSED = ("View", "Reshape", "Squeeze", "ToCopy", "Clone", "Alias", "Unsqueeze", "Expand")
_MEANS = {"Mean": "mean", "Sum": "sum"}
_looks = sampling.SampledSteps(EVERY)
_FEWEST_SYMBOLS = 32
"""Classes from which on labels are symbols of a text."""
_SHORTEST_TEXT = 64
_pending: tuple[int, Any, list[Any]] | None = None
"""Step, values that a device is still computing, and texts: told with the next ones, when they have long been there."""


@guarded("loss origin", values=True)
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
        if isinstance(value, int | float):  # torch's own divisions, by the size of a batch
            return float(value)
        if value is not None:
            return float(value.item()) if value.numel() == 1 and not value.requires_grad else None
    return None


@guarded("cross entropies", values=True)
def tell_cross_entropies(tensor: Any) -> None:
    """Tell the cross entropies in a loss, at the steps that are looked at, and the text that they foretell."""
    import torch

    global _pending
    step = counters.steps
    if step >= FIRST_SAMPLED and (step < _looks.next or not _looks.at(step)):
        return
    node = getattr(tensor, "grad_fn", None)
    if node is None or tensor.numel() != 1:
        return
    if _pending is not None:
        before, _pending = _pending, None
        _tell(*before)
    losses = [*islice(_label_losses(node), _MAX_TERMS)]
    if not losses:
        return
    with torch.no_grad():
        means = torch.stack([_mean(loss) for loss in losses])
    texts = [loss._saved_target for loss in losses if _foretells(loss)] if sampling.is_random() else []
    if device_steps.on_device(means):
        _pending = (step, means, texts)
    else:
        _tell(step, means, texts)


def _tell(step: int, means: Any, texts: list[Any]) -> None:
    writer.write(events.CROSS_ENTROPIES, n=step, means=means.tolist())
    for symbols in texts:
        fed_pictures.tell_text(step, symbols)


def _foretells(loss: Any) -> bool:
    """Whether what a loss compares with is a text."""
    symbols, length = loss._saved_self.shape[-1], loss._saved_target.numel()
    return bool(symbols >= _FEWEST_SYMBOLS and length >= _SHORTEST_TEXT)


def _mean(node: Any) -> Any:
    """The mean over the batch of what one node made: as if nothing weighted samples or classes, and nothing summed."""
    import torch
    from torch.nn import functional as F

    ignored = node._saved_ignore_index
    ignored -= (ignored >> 63) << 64  # torch gives it without its sign
    saved = torch._C.TensorBase.detach(node._saved_self)
    return F.nll_loss(saved, node._saved_target, ignore_index=ignored).float()


def _label_losses(loss: Any) -> Iterator[Any]:
    """Nodes of a loss's graph that compare with labels, from its end on, none behind another."""
    waiting, met = [loss], {loss}
    for number, node in enumerate(waiting):
        if number >= _MAX_SEARCHED:
            return
        if node.name() == "NllLossBackward0":
            # Who packs what is saved (a checkpoint, an offload) would have to compute it again or fetch it.
            if getattr(node._raw_saved_self, "unpack_hook", None) is None:
                yield node
        else:
            behind = {one: None for one, _ in node.next_functions if one is not None and one not in met}
            waiting += behind
            met.update(behind)
