"""Whether training goes on from where an optimizer's step left the weights, or from somewhere else.

At the steps whose looks nothing announces (`weight_looks`), weights that are drawn for each of them are noted at five
moments: at the first pass before the step, as the step begins and ends, at the first pass after it, and as the next
step begins. What is there for a pass alone, or for a step alone (noise, a point ahead, a worst case nearby), is gone by
the next of its kind. Nothing is told where nothing but the step moved them.
"""

from __future__ import annotations

from typing import Any

from grader.probe.hooks import sampling
from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models
from grader.probe.models.fingerprints import fingerprint, is_sharded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_NUM_DRAWN = 2
_ELEMENTS = 1024
"""Of one tensor that are noted: a window that is drawn for each step."""
_MUCH = 0.25
"""Of what the step moved, below which nothing is told: rounding, decay or clipping by hand."""
_BEFORE, _STEPPED, _LEFT, _PASSED = 1, 2, 3, 4
"""How many moments were noted before: as the step begins, as it ends, at the pass after it, as the next step begins."""


class Movements:
    """Those of the weights that one optimizer steps.

    Attributes:
        awaited: whether the next step is looked at. due: whether there may be something to tell of the last one.
    """

    __slots__ = ("_ahead", "_last", "awaited", "due")

    def __init__(self) -> None:
        self._ahead: _Movement | None = None
        self._last: _Movement | None = None
        self.awaited = self.due = False

    @guarded("movement", values=True)
    def look_ahead(self, number: int, optimizer: Any) -> None:
        """Look at the next step of this optimizer, which is its `number`-th."""
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self._ahead = _Movement(number, params)
        self._ahead.await_pass()
        self.awaited = True

    @guarded("movement", values=True)
    def begin(self, step: int) -> None:
        """That step begins, whose number in the run is `step`."""
        self._last, self._ahead, self.awaited = self._ahead, None, False
        self.due = self._last is not None and self._last.note(_BEFORE)
        if self._last is not None:
            self._last.n = step

    @guarded("movement", values=True)
    def end(self) -> None:
        """It has been taken."""
        if self._last is not None and self._last.note(_STEPPED):
            self._last.await_pass()

    @guarded("movement", values=True)
    def tell(self, *, alone: bool) -> None:
        """The step after it begins; alone: whether no other optimizer steps the same weights."""
        last, self._last, self.due = self._last, None, False
        if last is not None and alone and last.note(_PASSED):
            last.tell()


class _Movement:
    """Of a few weights, around one step.

    Attributes:
        n: number of that step. noted: the weights at the moments so far, each in one vector.
    """

    __slots__ = ("_parts", "n", "noted")

    def __init__(self, number: int, params: list[Any]) -> None:
        """`number`: by which weights are drawn, of all that are stepped."""
        drawn = (divmod(sampling.lot(f"moved:{number}:{i}"), len(params)) for i in range(_NUM_DRAWN))
        self._parts = [(params[place], lot) for lot, place in drawn]
        self.n = -1
        self.noted: list[Any] = []

    def await_pass(self) -> None:
        """Note the weights when the next pass of training begins."""
        if _at_pass not in tracked_models.before_pass:
            tracked_models.before_pass.append(_at_pass)
        _waiting.append(self)

    def note(self, moment: int) -> bool:
        """Note the weights where all moments before this one are noted; whether they are."""
        if len(self.noted) != moment:
            return False
        held = self._held()
        if held is not None:
            self.noted.append(held)
        return held is not None

    def at_pass(self) -> None:
        """A pass of training begins, the first one before or after the step."""
        self.note(_LEFT if self.noted else 0)

    def tell(self) -> None:
        """Tell what else than the step moved the weights, if much did."""
        import torch

        if len({one.shape for one in self.noted}) > 1:
            return
        start, before, left, found, gone_on = self.noted
        if torch.equal(gone_on, left) or (torch.equal(found, left) and torch.equal(start, before)):
            return
        step = left - before
        off = (found - start) - step
        length = step.norm()
        # A rate of the script's own moves along the step's line.
        aside = off - step * (off.dot(step) / length.square())
        moved, aside_by, gone = torch.stack([length, aside.norm(), (gone_on - left).norm()]).tolist()
        if moved > 0 and min(aside_by, gone) >= _MUCH * moved:
            writer.write(events.MOVED, n=self.n, step=moved, aside=aside_by, left=fingerprint([left]))

    def _held(self) -> Any:
        """All of them in one; None where they are not there, or not whole."""
        import torch

        base = torch._C.TensorBase
        found: list[Any] = []
        for param, lot in self._parts:
            if is_sharded(param) or param.is_sparse or not base.untyped_storage(param).size():
                return None
            flat = base.reshape(base.detach(param), -1)
            if (spare := base.numel(flat) - _ELEMENTS) > 0:
                flat = base.narrow(flat, 0, lot % (spare + 1), _ELEMENTS)
            found.append(flat)
        first = found[0]
        if any(one.device != first.device or one.is_complex() for one in found):
            return None
        together = torch.cat(found)
        return together if together.dtype == torch.float32 else together.float()


_waiting: list[_Movement] = []


@guarded("movement", values=True)
def _at_pass() -> None:
    if _at_pass in tracked_models.before_pass:
        tracked_models.before_pass.remove(_at_pass)
    waiting = _waiting[:]
    _waiting.clear()
    for one in waiting:
        one.at_pass()
