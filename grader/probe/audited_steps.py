"""Now and then all that one step is taken with: the weights before it, and the gradients that it steps on.

From these and from the samples that each rank drew, others can work out whose samples the gradients came of. Which
step it is, and which rank tells, is drawn by lot and known when that step is there: nothing in the script's sight
comes before it.
"""

from __future__ import annotations

import base64
from typing import Any

from grader.probe import events, process_groups, sampling
from grader.probe.fingerprints import is_sharded
from grader.probe.models import TrackedModel
from grader.probe.patches import guarded
from grader.probe.writer import writer

MOST_ELEMENTS = 1 << 19
"""Of all parameters together: a network whose weights are told in a few milliseconds."""
NUM_GRADIENTS = 1 << 14
"""Elements of the gradients that are told, evenly spread: as good as all of them to tell whose they are."""
_PART = 1 << 17
"""Elements of one event, which is no longer than a line of the trace may be."""


def note(step: int, trained: list[TrackedModel]) -> None:
    """A step over these models is about to be taken, with the gradients that lie there."""
    if sampling.is_random() and sampling.is_audited(step):
        _tell(step, trained)


@guarded("audited step", values=True)
def _tell(step: int, trained: list[TrackedModel]) -> None:
    import torch

    rank, num_ranks = process_groups.position()
    if len(trained) != 1 or rank != sampling.drawn(f"audited rank {step}", num_ranks):
        return
    named = _parameters(trained[0])
    base, with_gradients = torch._C.TensorBase, [p for _, p in named if p.grad is not None]
    if not with_gradients:
        return
    stride = -(-sum(map(base.numel, with_gradients)) // NUM_GRADIENTS)
    writer.write(events.AUDITED, n=step, stride=stride, names=[name for name, _ in named])
    with torch.no_grad():
        for number, (_, param) in enumerate(named):
            weights, gradients = base.reshape(base.detach(param), -1), None
            if param.grad is not None:
                gradients = _packed(base.reshape(base.detach(param.grad), -1)[::stride], torch.bfloat16)
            for first in range(0, base.numel(weights), _PART):
                part = _packed(weights[first : first + _PART], torch.float16)
                writer.write(events.AUDITED_PART, n=step, of=number, weights=part, gradients=gradients)
                gradients = None


def _parameters(known: TrackedModel) -> list[tuple[str, Any]]:
    """Those of the model, by name; nothing where a rank holds parts of them, or they are too many."""
    model = known.model()
    named = list(model.named_parameters()) if model is not None else []
    held = [p for _, p in named] + [p.grad for _, p in named if p.grad is not None]
    if any(is_sharded(one) or one.is_sparse for one in held):
        return []
    return named if 0 < sum(p.numel() for _, p in named) <= MOST_ELEMENTS else []


def _packed(tensor: Any, dtype: Any) -> str:
    import torch

    return base64.b64encode(tensor.to("cpu", dtype).contiguous().view(torch.uint8).numpy()).decode()
