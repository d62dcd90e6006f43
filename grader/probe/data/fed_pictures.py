"""Now and then what a model learns from, pictures or text: others hold it against what it must not learn from.

Pictures and text are what a model is given in training, and text is also what a loss compares with, whichever way it
was given. At which steps is drawn by lot and known when they are there. Of a step whose gradients come of several
batches one is told, drawn as well. A batch that no gradient is taken of, as in a validation in training mode, is none
of training.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

from grader.probe.hooks import sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

MOST_PICTURES = 32
"""Of one step."""
MOST_ELEMENTS = 1 << 12
"""Of one picture."""
MOST_NUMBERS = MOST_ELEMENTS // 2
"""Of one row of text, in which each takes two bytes."""

next_step = 0
"""No earlier step is looked at, of those not asked for yet; who pays at every forward pass looks here first."""


class _Look:
    """At one step.

    Attributes:
        newest: the samples given last, None where they are neither; taken: gradients by then, over the whole run.
        kept: those that are told; num: how many batches they were drawn from.
    """

    __slots__ = ("kept", "newest", "num", "step", "taken")

    def __init__(self, step: int) -> None:
        self.step = step
        self.newest: Any = None
        self.kept: Any = None
        self.taken = self.num = 0

    def take(self, batch: Any) -> None:
        """The step goes on with this batch."""
        self._settle()
        self.newest = _samples(batch, self.step)

    def tell(self) -> None:
        """The step has been taken: where no gradient was seen to be, of what was given last."""
        self._settle()
        rows = self.newest if self.kept is None else self.kept
        if rows is not None and len(rows):
            _tell(self.step, rows)

    def _settle(self) -> None:
        """What was given last counts where gradients were taken since."""
        before, self.taken = self.taken, counters.backwards + counters.all_derivatives
        if self.newest is not None and self.taken > before:
            self.num += 1
            if sampling.lot(f"pictures:{self.step}:{self.num}") % self.num == 0:
                self.kept = self.newest
            self.newest = None


_look: _Look | None = None


@guarded("foretold text", values=True)
def tell_text(step: int, symbols: Any) -> None:
    """Tell what was to be foretold at a step: numbers of symbols (N) in the order of the text, as one row."""
    _tell(step, _numbers(symbols[None], step))


def _tell(step: int, rows: Any) -> None:
    values = base64.b64encode(rows.numpy()).decode()
    writer.write(events.PICTURES, n=step, num=len(rows), text=rows.element_size() > 1, values=values)


@guarded("fed pictures", values=True)
def note(batch: Any) -> None:
    """A model is given a batch in training, at no earlier step than `next_step`."""
    global _look, next_step
    step, look = counters.steps, _look
    if look is not None and look.step < step:
        _look = None
        look.tell()
    if _look is None:
        next_step = sampling.first_audited(step) if sampling.is_random() else sys.maxsize
        if step < next_step:
            return
        _look = _Look(step)
    _look.take(batch)


def _samples(batch: Any, step: int) -> Any:
    """Samples of a batch drawn by lot, as pictures or as rows of text; None where they are neither."""
    import torch

    given = torch._C.TensorBase.detach(getattr(batch, "_local_tensor", batch))
    whole = not (given.is_floating_point() or given.is_complex())
    if whole and given.dim() == 1:
        given = given[None]  # a packed text is one sample
    text = whole and given.dim() == 2
    size = given[:1].numel()
    if given.is_complex() or given.dim() < 2 or not size or (size > MOST_ELEMENTS and not text):
        return None
    num = len(given)
    drawn = {sampling.lot(f"picture:{step}:{n}") % num for n in range(MOST_PICTURES)}
    some = given[sorted(drawn) if num > MOST_PICTURES else slice(None)]
    return _numbers(some, step) if text else _pictures(some)


def _pictures(some: Any) -> Any:
    """Each from 0 for its smallest number to 255."""
    import torch

    rows = some.to("cpu", torch.float32).reshape(len(some), -1)
    rows = rows[rows.isfinite().all(1)]
    least, most = rows.amin(1, keepdim=True), rows.amax(1, keepdim=True)
    return ((rows - least) * (255 / (most - least).clamp(min=1e-12))).round().to(torch.uint8)


def _numbers(some: Any, step: int) -> Any:
    """Rows of text, of long ones a part drawn by lot; of large numbers the last two bytes."""
    import torch

    first = sampling.lot(f"text:{step}") % max(1, some.shape[1] - MOST_NUMBERS + 1)
    rows = some[:, first : first + MOST_NUMBERS].to("cpu", torch.int64).contiguous()
    return rows.to(torch.int16)
