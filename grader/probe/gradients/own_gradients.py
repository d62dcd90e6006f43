"""The gradients that a rank's own backward passes give, before anything averages them: at steps that are looked at.

Tensor hooks of the few parameters that are fingerprinted anyway, on for one step and off again. What is stepped on is
told by the STEP event itself; the two together say what came between.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from grader.probe.hooks.patches import guarded
from grader.probe.models.fingerprints import fingerprint_later, is_sharded, read

_MAX_GIVEN = 64
"""Gradients of one tensor within one step, beyond which a step is not looked at: some hundreds of micro-batches."""


class OwnGradients:
    """What backward passes give to some parameters, from its making to `end`.

    Attributes:
        given: by parameter, fingerprints of the gradients in their order, which a device may still be computing: no
            backward pass waits for it.
    """

    __slots__ = ("_handles", "given")

    def __init__(self, params: Iterable[Any]) -> None:
        self._handles: list[Any] = []
        self.given: list[list[Any]] = []
        for param in params:
            if not param.requires_grad or is_sharded(param):
                self.end()
                break
            number = len(self.given)
            self.given.append([])
            handle = param.register_hook(functools.partial(self._note, number))
            self._handles.append(handle)
            _put_first(param._backward_hooks, handle.id)

    @guarded("own gradients", values=True)
    def _note(self, number: int, gradient: Any) -> None:
        given = self.given[number]
        if len(given) <= _MAX_GIVEN:
            given.extend(fingerprint_later((gradient,)))

    def end(self) -> None:
        """Look no more."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def told(self) -> dict[str, Any]:
        """Fields of the STEP event: the sum of what came for each parameter, and the last of it.

        Empty where nothing can be told.
        """
        self.end()
        counts = {len(given) for given in self.given}
        if len(counts) != 1 or not 0 < max(counts) <= _MAX_GIVEN:
            return {}
        values = iter(read([value for given in self.given for value in given]))
        told = [[next(values) for _ in given] for given in self.given]
        return {
            "own": [sum(value or 0.0 for value in given) for given in told],
            "own_last": [given[-1] for given in told],
        }


@guarded("own gradients")
def look_at(params: Iterable[Any]) -> OwnGradients:
    """Look at what the next backward passes give to these parameters."""
    return OwnGradients(params)


def _put_first(hooks: dict[int, Any], key: int) -> None:
    """Before hooks of the script's own, which may be what averages; torch calls them in the order of their entry."""
    own = hooks.pop(key)
    others = dict(hooks)
    hooks.clear()
    hooks[key] = own
    hooks.update(others)
