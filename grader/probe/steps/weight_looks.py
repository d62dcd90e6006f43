"""Looks at weights after some steps: as the next pass of training, or the next step, finds them.

Beside steps whose gradients are told, which a script can find announced by a hook, others are drawn that nothing
announces. Beside the few parameters that stand for all at every look, which anybody can work out, others are drawn for
each look, so that over a run every one comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from grader.probe.hooks import sampling
from grader.probe.models import tracked_models
from grader.probe.models.fingerprints import SMALL, fingerprint, local_part
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_NUM_DRAWN = 2

Drawn: TypeAlias = list[tuple[str, Any, int]]
"""Name, tensor, and a lot that decides which part of it is looked at."""


class WeightLooks:
    """Those at what one optimizer steps.

    Attributes:
        due: the step after which weights are still to be told, or None.
    """

    __slots__ = ("_chosen", "_drawn", "_named", "_names", "_unannounced", "due")

    def __init__(self, chosen: Sequence[Any], names: list[str], named: dict[int, str], every: int) -> None:
        """Of the parameters that stand for all, with their names; `named`: by id, names of all that have one."""
        self._chosen, self._names, self._named = chosen, names, named
        self._unannounced = sampling.SampledSteps(every, unannounced=True)
        self._drawn: Drawn = []
        self.due: int | None = None

    def unannounced(self, steps: int) -> bool:
        """Whether weights are looked at after the step before which the optimizer has taken so many."""
        looks = self._unannounced
        return steps >= looks.next and looks.at(steps)

    def after(self, step: int, optimizer: Any) -> None:
        """Look after the step that was just counted: when training goes on with a pass, or with its next step."""
        self.due = step
        params = [p for group in optimizer.param_groups for p in group["params"]]
        fixed = {id(p) for p in self._chosen}
        others = [(i, p) for i, p in enumerate(params) if id(p) not in fixed]
        names = [self._named.get(id(p), f"parameter {i}") for i, p in others]
        self._drawn = draw(step, names, lambda place: self._trained(others[place][1]))
        if self not in _due:
            _due.append(self)
        if _write_due not in tracked_models.before_pass:
            tracked_models.before_pass.append(_write_due)

    def _trained(self, param: Any) -> Any:
        # What no module has is the optimizer's alone: without a gradient, a tensor of a layer that was replaced.
        there = param.requires_grad and (id(param) in self._named or param.grad is not None)
        return param if there else None

    def write(self) -> None:
        """Tell what is due, if anything."""
        if self.due is None:
            return
        due, self.due, drawn = self.due, None, self._drawn
        self._drawn = []
        _due.remove(self)
        write_params(due, self._names, fingerprint(self._chosen), drawn)


_due: list[WeightLooks] = []


def _write_due() -> None:
    if _write_due in tracked_models.before_pass:
        tracked_models.before_pass.remove(_write_due)  # most steps have nothing to write
    while _due:
        _due[0].write()


def draw(step: int, names: Sequence[str], tensor_of: Callable[[int], Any]) -> Drawn:
    """Those of the named tensors that are looked at after this step; the same on all ranks with the same names.

    Args:
        step: the number by which ranks are compared. names: of all that may be drawn.
        tensor_of: by place, the tensor; None for one that isn't looked at.
    """
    found: dict[int, tuple[str, Any, int]] = {}
    for number in range(_NUM_DRAWN if names else 0):
        rest, place = divmod(sampling.lot(f"lot:{step}:{number}"), len(names))
        tensor = tensor_of(place)
        if tensor is not None:
            found[place] = (names[place], tensor, rest)
    return list(found.values())


def write_params(step: int, names: Sequence[str], sums: list[float | None], drawn: Drawn) -> None:
    """Write a PARAMS event: of large tensors that were drawn, a part with the index that it has."""
    parts = [(name, *_part(local_part(tensor), lot)) for name, tensor, lot in drawn]
    writer.write(
        events.PARAMS,
        n=step,
        names=names,
        sums=sums,
        drawn=[name + where for name, where, _ in parts],
        drawn_sums=fingerprint(part for _, _, part in parts),
    )


def _part(tensor: Any, lot: int) -> tuple[str, Any]:
    """A part that is summed in a few microseconds, and its index; all of a small tensor."""
    import torch

    base = torch._C.TensorBase
    where: list[str] = []
    for dim, size in enumerate(base.size(tensor)):
        elements = base.numel(tensor)
        if elements <= SMALL:
            break
        kept = max(1, SMALL * size // elements)
        lot, first = divmod(lot, size - kept + 1)
        tensor = base.narrow(tensor, dim, first, kept)
        where.append(f"{first}:{first + kept}")
    return f"[{', '.join(where)}]" if where else "", tensor
