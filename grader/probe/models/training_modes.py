"""Steps that were trained in evaluation mode: since when, and what of the network acts otherwise there.

A forward pass in evaluation mode with gradients on may be an attack's, a saliency map's or that of a validation that
keeps its graph. It was one of training where its model's optimizer steps next, with no pass in training mode before.
Later passes from the same line are taken for training at once.

Layers that were frozen on purpose are no fault: a network is in evaluation mode where nothing that holds parameters or
minds its mode is in training mode any more.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import outermost, replace
from grader.probe.models import evaluation_passes
from grader.probe.models.fingerprints import count_filled
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_TOLD = 64
_MAX_LINES = 16

_num_told = 0
_left: dict[CodeLocation | None, weakref.ref[Any]] = {}
"""Lines that called `eval`, the newest last, and of which module."""


class Modes:
    """In which modes one model went forward since its last step.

    Attributes:
        in_training: a pass was in training mode.
        lines: of passes in evaluation mode with gradients on; samples: of those not known to train.
        trained: lines that such passes of training came from.
        awake: in one of all these passes something in the network was in training mode.
        told: the last step was trained in evaluation mode, which has been told.
        witnesses: modules that hold parameters or mind their mode, one in training mode first; looked up once.
    """

    __slots__ = ("awake", "in_training", "lines", "samples", "told", "trained", "witnesses")

    def __init__(self) -> None:
        self.in_training = self.awake = self.told = False
        self.lines: set[CodeLocation | None] = set()
        self.samples = 0
        self.trained: set[CodeLocation | None] = set()
        self.witnesses: list[weakref.ref[Any]] = []

    def train(self, model: Any, size: int) -> bool:
        """Note a forward pass with gradients on; whether it is known to train."""
        if model.training:
            if not self.in_training:
                self.in_training = True
                self.awake = self.awake or self._find_awake(model)
            return True
        if not self.lines:
            self.awake = self.awake or self._find_awake(model)
        line = code_locations.here()
        self.lines.add(line)
        if line in self.trained:
            return True
        self.samples += size
        return False

    def step(self, model: Any, wrap: int | None) -> bool:
        """A step follows; whether it was trained in evaluation mode."""
        lines, samples, in_training, awake = self.lines, self.samples, self.in_training, self.awake
        self.in_training = self.awake = False
        if lines:
            self.lines, self.samples = set(), 0
        if not in_training:
            if not lines or model.training:  # nobody saw what trained it
                return False
            self.trained |= lines
            counters.fed += samples
            evaluation_passes.end(trained=True)
        if not awake and not self.told:
            line = next(iter(lines), None)
            _tell(wrap, line if line is not None else code_locations.here(), self.witnesses)
        self.told = not awake
        return self.told

    def _find_awake(self, model: Any) -> bool:
        """Whether anything in the network is in training mode."""
        if self._awake():
            return True
        if self.told:
            return False
        # Modules may have been exchanged since they were looked up, or never were.
        found = [
            m for m in model.modules() if _minds(m) or any(p is not None for p in m._parameters.values())
        ]
        self.witnesses = [weakref.ref(m) for m in found]
        return self._awake() or not found

    def _awake(self) -> bool:
        # Every step pays for this; mostly the first one is in training mode.
        for number, witness in enumerate(self.witnesses):
            module = witness()
            if module is not None and module.training:
                if number:
                    self.witnesses.insert(0, self.witnesses.pop(number))
                return True
        return False


def _minds(module: Any) -> bool:
    """Whether a module acts otherwise in evaluation mode, as it was built."""
    return _normalises(module) or _drops(module)


def _normalises(module: Any) -> bool:
    from torch.nn.modules.batchnorm import _BatchNorm

    return isinstance(module, _BatchNorm) and module.running_mean is not None


def _drops(module: Any) -> bool:
    from torch import nn

    if isinstance(module, nn.modules.dropout._DropoutNd):
        return bool(module.p)
    return isinstance(module, (nn.MultiheadAttention, nn.RNNBase)) and bool(module.dropout)


def _tell(wrap: int | None, site: CodeLocation | None, witnesses: list[Any]) -> None:
    global _num_told
    _num_told += 1
    if _num_told > _MAX_TOLD:
        return
    found = [module for witness in witnesses if (module := witness()) is not None]
    norms = [module for module in found if _normalises(module)]
    tracked = [getattr(module, "num_batches_tracked", None) for module in norms]
    means = [module.running_mean for module in norms]
    writer.write(
        events.TRAINED_IN_EVALUATION,
        n=counters.steps,
        wrap=wrap,
        site=site,
        left=_line_that_left(found),
        num_batchnorm=len(norms),
        num_dropout=sum(map(_drops, found)),
        untracked=bool(norms) and not count_filled([*tracked, *means]),
    )


def _line_that_left(modules: list[Any]) -> CodeLocation | None:
    for line, owner in reversed(_left.items()):
        one = owner()
        if one is not None and any(inner is modules[0] for inner in one.modules()):
            return line
    return None


def _note_left(_result: Any, _started_s: float, module: Any, *_args: Any, **_kwargs: Any) -> None:
    line = code_locations.here()
    if _left.pop(line, None) is None and len(_left) >= _MAX_LINES:
        del _left[next(iter(_left))]
    _left[line] = weakref.ref(module)


def install() -> None:
    """Note who switches modules into evaluation mode."""
    from torch import nn

    replace([nn.Module], "eval", outermost("eval", _note_left))
