"""The weights that a module's training forward passes really use, and whether they are still those of the last pass.

Asks the module by name each time, so that weights that are put in its place for one call (`functional_call`) count as
what they are, and so do views of a flat buffer.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.hooks.transforms import plain
from grader.probe.models.fingerprints import choose, fingerprint


class UsedWeights:
    """A few parameters of a module that stand for all of them.

    Attributes:
        names: theirs within the module; others: those of all its other parameters that require gradients.
        replaced: whether a call found other tensors than the call before, not the same ones with other values.
    """

    __slots__ = ("_last", "_module", "_probe", "_spots", "_used", "names", "others", "replaced")

    def __init__(self, module: Any) -> None:
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        chosen = [named[i] for i in choose([p for _, p in named])]
        self.names = [name for name, _ in chosen]
        self.others = [name for name, _ in named if name not in self.names]
        self._module = weakref.ref(module)
        self._spots = [self._spot(name) for name in self.names]
        # One is enough to see that something changed: a step that trains moves them all. The smallest costs least.
        smallest = min(range(len(chosen)), key=lambda i: chosen[i][1].numel(), default=0)
        self._probe = slice(smallest, smallest + 1)
        self._last: list[float | None] | None = None
        self._used: weakref.ref[Any] | None = None
        self.replaced = False

    def current(self) -> list[Any]:
        """The tensors as a call of the module would find them now."""
        return [plain(getattr(owner(), leaf, None)) for owner, leaf in self._spots]

    def other(self, place: int) -> Any:
        """One of the others, as a call of the module would find it now; None where there is none any more."""
        try:
            owner, leaf = self._spot(self.others[place])
        except AttributeError:  # a part of the module that was taken out
            return None
        return plain(getattr(owner(), leaf, None))

    def _spot(self, name: str) -> tuple[Any, str]:
        path, _, leaf = name.rpartition(".")
        module: Any = self._module()
        return weakref.ref(module.get_submodule(path)), leaf

    def sums(self) -> list[float | None]:
        """Fingerprint of all of them."""
        return fingerprint(self.current())

    def changed(self) -> bool:
        """Whether they differ from those of the last call of this; False at the first."""
        now = self.current()[self._probe]
        last, self._last = self._last, fingerprint(now)
        self.replaced |= self.elsewhere(now)
        self._used = weakref.ref(now[0]) if now and now[0] is not None else None
        return last is not None and last != self._last

    def elsewhere(self, now: list[Any] | None = None) -> bool:
        """Whether the module holds other tensors than those of the last call of `changed`."""
        if self._used is None:
            return False
        now = self.current()[self._probe] if now is None else now
        return not now or self._used() is not now[0]
