"""Which parameters have a gradient when they are stepped on, and whether anybody clears gradients between two steps.

Looks at the few parameters that are fingerprinted anyway, and only after fingerprinted steps. Clears nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grader.probe.models.fingerprints import are_filled, fingerprint_later, read
from grader.probe.models.tracked_models import TrackedModel

_MAX_NAMES = 4
_MAX_LOOKS = 64
watches: list[Watch] = []
"""Those that look at the next backward pass."""


class Watch:
    """What backward passes find of the gradients that an optimizer has just stepped on.

    Attributes:
        params: those that had a gradient, with their names. empty: backward passes that began with all of these
            gradients cleared. kept: names of those that no backward pass so far found cleared.
        lost: backward passes that gave gradients which the next one found cleared, while the weights stayed the same.
    """

    __slots__ = ("_before", "_weights", "empty", "kept", "looks", "lost", "params")

    def __init__(self, params: list[tuple[str, Any]]) -> None:
        self.params = params
        self.kept: list[str] = []
        self.empty = self.looks = self.lost = 0
        self._before: list[tuple[int, int]] | None = None
        self._weights: list[Any] | None = None

    def look(self) -> None:
        """Note what one backward pass finds that is about to begin."""
        filled = are_filled(p.grad for _, p in self.params)
        there = [name for (name, _), one in zip(self.params, filled, strict=True) if one]
        self.empty += not there
        if not there and self._weights is not None:
            # Where weights have moved, the gradients served for that, as in sharpness-aware minimisation.
            self.lost += read(self._weights) == read(fingerprint_later(p for _, p in self.params))
        self._weights = None
        self._before = _versions(self.params)
        self.kept = [name for name in self.kept if name in there] if self.looks else there
        self.looks += 1
        if self.looks >= _MAX_LOOKS:
            self.end()  # an optimizer that may never step again

    def look_after(self) -> None:
        """Remember the weights of which one backward pass has given the gradients, where it gave any."""
        before, self._before = self._before, None
        if before is not None and before != _versions(self.params):
            self._weights = fingerprint_later(p for _, p in self.params)

    def end(self) -> None:
        """The optimizer steps again, or has not for long."""
        self.params = []
        if self in watches:
            watches.remove(self)


def watch(params: Iterable[tuple[str, Any]]) -> Watch | None:
    """Begin to watch those named parameters that have a dense gradient; None where there is none."""
    held = [(name, p) for name, p in params if p.grad is not None and not p.grad.is_sparse]
    if not held:
        return None
    watches.append(Watch(held))
    return watches[-1]


def look_again() -> None:
    """A backward pass begins."""
    for one in tuple(watches):
        one.look()


def look_after() -> None:
    """A backward pass is over."""
    for one in tuple(watches):
        one.look_after()


def _versions(params: list[tuple[str, Any]]) -> list[tuple[int, int]]:
    """What tells gradients from what they were before, without asking a device: which tensors, changed how often."""
    return [(0, 0) if p.grad is None else (id(p.grad), p.grad._version) for _, p in params]


def missing(optimizer: Any, models: list[TrackedModel]) -> dict[str, Any]:
    """How many of an optimizer's parameters that require a gradient have none, and the first names of these."""
    wanted = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    without = {id(p) for p in wanted if p.grad is None}
    names: list[str] = []
    if without:
        held = [model for model in (one.model() for one in models) if model is not None]
        names = [name for model in held for name, p in model.named_parameters() if id(p) in without]
    return {"num_params": len(wanted), "num_missing": len(without), "missing": names[:_MAX_NAMES]}
