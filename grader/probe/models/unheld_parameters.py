"""Parameters that get gradients, that no optimizer holds, and that are at the end what they were at the beginning.

Looked for at few steps, among parameters that no optimizer was given: most models have none. Only what nobody moved
either is told, whatever might have: an update by hand, an optimizer that came later, a flat buffer.
"""

from __future__ import annotations

from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models
from grader.probe.models.fingerprints import count_filled, fingerprint
from grader.probe.models.tracked_models import TrackedModel
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_NAMES = 512

_found: list[TrackedModel] = []


@guarded("unheld parameters")
def look(stepped: list[TrackedModel]) -> None:
    """Remember such parameters of the models that an optimizer steps, and of wrapped ones, as they are now."""
    for known in dict.fromkeys(
        (*stepped, *(one for one in tracked_models.tracked() if one.wrap is not None))
    ):
        model = known.model()
        if model is None:
            continue
        for name, param in model.named_parameters():
            if name in known.unheld or param.grad is None or tracked_models.held(param):
                continue
            if len(known.unheld) < _MAX_NAMES and count_filled((param.grad,)):
                known.unheld[name] = (param, fingerprint((param,)))
        if known.unheld and known not in _found:
            _found.append(known)  # kept to the end: the module itself may be gone by then


@guarded("unheld parameters")
def write() -> None:
    """Tell of those that nobody ever moved, once for each model."""
    for known in _found:
        names = [
            name
            for name, (param, before) in known.unheld.items()
            if not tracked_models.held(param) and param.requires_grad and fingerprint((param,)) == before
        ]
        if names:
            writer.write(events.UNHELD, wrap=known.wrap, names=names)
