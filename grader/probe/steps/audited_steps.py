"""Now and then all that one step is taken with: the weights before it, and the gradients that it steps on.

From these and from the samples that each rank drew, others can work out whose samples the gradients came of. Which
step it is, and which rank tells, is drawn by lot and known when that step is there: nothing in the script's sight
comes before it.
"""

from __future__ import annotations

import base64
from typing import Any

from grader.probe.communication import process_groups
from grader.probe.hooks import sampling
from grader.probe.hooks.patches import guarded
from grader.probe.models.fingerprints import are_filled, is_sharded
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.trace import events
from grader.probe.trace.writer import writer

MOST_ELEMENTS = 1 << 19
"""Of all parameters together: a network whose weights are told in a few milliseconds."""
NUM_GRADIENTS = 1 << 14
"""Elements of the gradients that are told, evenly spread: as good as all of them to tell whose they are."""
_PART = 1 << 17
"""Elements of one event, which is no longer than a line of the trace may be."""


class _Audit:
    """A step that is being taken; weights and gradients as they go into the trace, by parameter."""

    def __init__(self, step: int, named: list[tuple[str, Any]]) -> None:
        import torch

        self.step = step
        self.names = [name for name, _ in named]
        self._params = [p for _, p in named]
        numel = torch._C.TensorBase.numel
        self.stride = -(-sum(numel(p) for p in self._params if p.grad is not None) // NUM_GRADIENTS)
        self.weights = [_weights(p) for p in self._params]
        self._sequence = process_groups.sequence()
        self.gradients = self._packed()

    def _packed(self) -> list[str | None]:
        return [None if p.grad is None else _gradients(p.grad, self.stride) for p in self._params]

    def look_again(self) -> None:
        """Where ranks have met since, it is stepped on what came of that; which may be cleared by now."""
        before, self._sequence = self._sequence, process_groups.sequence()
        if self._sequence == before:
            return
        grads = [p.grad for p, had in zip(self._params, self.gradients, strict=True) if had is not None]
        self.gradients = self._packed() if grads and all(are_filled(grads)) else []

    def tell(self) -> None:
        """Write it, if it is known what was stepped on."""
        if not self.gradients:
            return
        writer.write(events.AUDITED, n=self.step, stride=self.stride, names=self.names)
        for of, (weights, gradients) in enumerate(zip(self.weights, self.gradients, strict=True)):
            for part in weights:
                writer.write(events.AUDITED_PART, n=self.step, of=of, weights=part, gradients=gradients)
                gradients = None  # noqa: PLW2901


_audit: _Audit | None = None


def begin(step: int, trained: list[TrackedModel]) -> None:
    """A step over these models is about to be taken, with the gradients that lie there."""
    global _audit
    _audit = None
    if sampling.is_random() and sampling.is_audited(step):
        _begin(step, trained)


@guarded("audited step", values=True)
def _begin(step: int, trained: list[TrackedModel]) -> None:
    global _audit
    rank, num_ranks = process_groups.position()
    if len(trained) != 1 or rank != sampling.lot(f"audited rank:{step}") % num_ranks:
        return
    named = _parameters(trained[0])
    if any(p.grad is not None for _, p in named):
        _audit = _Audit(step, named)


@guarded("audited step", values=True)
def look_again() -> None:
    """Within the step, what it really steps on is there by now."""
    if _audit is not None:
        _audit.look_again()


@guarded("audited step", values=True)
def end() -> None:
    """The step has been taken."""
    global _audit
    if _audit is not None:
        audit, _audit = _audit, None
        audit.look_again()
        audit.tell()


def _parameters(known: TrackedModel) -> list[tuple[str, Any]]:
    """Those of the model, by name; nothing where a rank holds parts of them, or they are too many."""
    model = known.model()
    named = list(model.named_parameters()) if model is not None else []
    held = [p for _, p in named] + [p.grad for _, p in named if p.grad is not None]
    if any(is_sharded(one) or one.is_sparse for one in held):
        return []
    return named if 0 < sum(p.numel() for _, p in named) <= MOST_ELEMENTS else []


def _weights(param: Any) -> list[str]:
    import torch

    flat = torch._C.TensorBase.detach(param).reshape(-1)
    return [_encoded(flat[first : first + _PART], torch.float16) for first in range(0, len(flat), _PART)]


def _gradients(grad: Any, stride: int) -> str:
    import torch

    return _encoded(torch._C.TensorBase.detach(grad).reshape(-1)[::stride], torch.bfloat16)


def _encoded(tensor: Any, dtype: Any) -> str:
    import torch

    return base64.b64encode(tensor.to("cpu", dtype).contiguous().view(torch.uint8).numpy()).decode()
