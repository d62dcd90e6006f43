"""Tensors of layers that were replaced, which an optimizer still holds and no model has any more."""

from __future__ import annotations

from grader.model.trace import NAMELESS, RankTrace


def discarded(rank: RankTrace) -> tuple[str, ...]:
    """Tensors that an optimizer holds, that no module of the run has, and that never got a gradient."""
    looked = [(name, g) for s in rank.steps for name, g in zip(s.grad_names, s.grads or (), strict=False)]
    given = {name for name, gradient in looked if gradient is not None}
    return tuple(dict.fromkeys(n for n, _ in looked if n.startswith(NAMELESS) and n not in given))
