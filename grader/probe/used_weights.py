"""The weights that a module's training forward passes really use, and whether they are still those of the last pass.

Asks the module by name each time, so that weights that are put in its place for one call (`functional_call`) count as
what they are, and so do views of a flat buffer.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.fingerprints import choose, fingerprint


class UsedWeights:
    """A few parameters of a module that stand for all of them.

    Attributes:
        names: theirs within the module.
    """

    __slots__ = ("_last", "_probe", "_spots", "names")

    def __init__(self, module: Any) -> None:
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        chosen = [named[i] for i in choose([p for _, p in named])]
        self.names = [name for name, _ in chosen]
        self._spots = []
        for name in self.names:
            path, _, leaf = name.rpartition(".")
            self._spots.append((weakref.ref(module.get_submodule(path)), leaf))
        # One is enough to see that something changed: a step that trains moves them all. The smallest costs least.
        smallest = min(range(len(chosen)), key=lambda i: chosen[i][1].numel(), default=0)
        self._probe = slice(smallest, smallest + 1)
        self._last: list[float | None] | None = None

    def current(self) -> list[Any]:
        """The tensors as a call of the module would find them now."""
        return [getattr(owner(), leaf, None) for owner, leaf in self._spots]

    def sums(self) -> list[float | None]:
        """Fingerprint of all of them."""
        return fingerprint(self.current())

    def changed(self) -> bool:
        """Whether they differ from those of the last call of this; False at the first."""
        last, self._last = self._last, fingerprint(self.current()[self._probe])
        return last is not None and last != self._last
