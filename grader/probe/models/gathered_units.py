"""Which units of a sharded model are whole on this rank at once: as a training pass begins, and its backward pass.

A unit lets go of what it gathered as soon as its own pass is done, or keeps it; between the passes this shows. Reads
which tensors the modules hold by then, no values. Never keeps a module alive.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models
from grader.probe.models.fingerprints import is_sharded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_UNITS = 64
_MAX_LOOKS = 8


class _Unit:
    """A module that was given to `fully_shard`.

    Attributes:
        module, wrap: which, and the id of its WRAP event.
        params: its own, sharded as they are then: (module, name), without those of units inside it.
        own, elements: numbers of these that this rank holds at rest, and of the whole.
        holds, held: there are units inside it; it is inside another one.
    """

    __slots__ = ("elements", "held", "holds", "module", "own", "params", "wrap")

    def __init__(self, module: Any, wrap: int) -> None:
        self.module, self.wrap = weakref.ref(module), wrap
        self.holds = self.held = False
        self.params: list[tuple[weakref.ref[Any], str]] = []
        self.own = self.elements = 0

    def whole(self) -> bool:
        """Whether this rank holds all of it, and not its part."""
        found = 0
        for part, name in self.params:
            param = getattr(part(), name, None)
            if param is not None:
                # Not `to_local`, which is part of the graph.
                found += (param._local_tensor if is_sharded(param) else param).numel()
        return self.own < self.elements <= found


_units: list[_Unit] = []
_num_looks = 0
_most = -1


def note(module: Any, wrap: int | None) -> None:
    """A module was sharded: look at it in the first passes of training."""
    if wrap is None or len(_units) >= _MAX_UNITS:
        return
    unit, parts = _Unit(module, wrap), list(module.modules())
    inside = {id(part) for part in parts}
    others: set[int] = set()
    for known in _units:
        inner = known.module()
        if inner is not None and inner is not module and id(inner) in inside:
            known.held = unit.holds = True
            others.update(id(part) for part in inner.modules())
    for part in parts:
        for name, param in part._parameters.items() if id(part) not in others else ():
            if param is not None and is_sharded(param):
                unit.params.append((weakref.ref(part), name))
                unit.own += param._local_tensor.numel()
                unit.elements += param.numel()
    _units.append(unit)
    if _look not in tracked_models.before_pass and _num_looks < _MAX_LOOKS:
        tracked_models.before_pass.append(_look)


@guarded("gathered")
def _look() -> None:
    """Tell how much is whole, where it is more than ever before."""
    global _num_looks, _most
    _num_looks += 1
    if _num_looks >= _MAX_LOOKS:
        tracked_models.before_pass.remove(_look)
    # The outermost one holds what is needed first and last, and keeps it.
    there = [unit for unit in _units if unit.module() is not None]
    inner = [unit for unit in there if unit.elements and (unit.held or not unit.holds)]
    whole = [unit for unit in inner if unit.whole()]
    elements = sum(unit.elements for unit in whole)
    if elements > _most:
        _most = elements
        writer.write(
            events.GATHERED,
            backward=not tracked_models.going_forward(),
            units=len(inner),
            wraps=[unit.wrap for unit in whole],
            elements=elements,
            of=sum(unit.elements for unit in inner),
            rooted=any(unit.holds and not unit.held for unit in there),
        )
