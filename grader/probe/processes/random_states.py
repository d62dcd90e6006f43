"""The state of the process's random generators when training steps begin: are all ranks about to draw alike?

Reads states only. It draws no number, so that the script's own draws stay what they would have been.
"""

from __future__ import annotations

import ctypes
import hashlib
import random
import sys
from typing import Any

from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.models import tracked_models
from grader.probe.trace import events
from grader.probe.trace.writer import writer

NUM_STEPS = 3
"""Steps whose beginning is told."""

_before: dict[str, str] = {}
_passes = 0
_num_events = 0


def _digest(state: bytes) -> str:
    return hashlib.blake2b(state, digest_size=8).hexdigest()


def _bytes(tensor: Any) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def _states() -> dict[str, str]:
    import torch

    found = {
        "torch": _digest(_bytes(torch.get_rng_state())),
        "python": _digest(repr(random.getstate()).encode()),
    }
    if torch.cuda.is_initialized():
        found["cuda"] = _digest(_bytes(torch.cuda.get_rng_state()))
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        name, keys, *rest = numpy_random.get_state()
        found["numpy"] = _digest(bytes(keys) + repr((name, rest)).encode())
    return found


@guarded("random state after a step", values=True)
def _after_step(_optimizer: Any, _args: Any, _kwargs: Any) -> None:
    global _before, _passes
    _before, _passes = _states(), counters.passes


@guarded("random state", values=True)
def _at_forward() -> None:
    global _num_events
    if _num_events >= NUM_STEPS:
        return
    _num_events += 1
    states = _states()
    drawn = [name for name, state in states.items() if name in _before and _before[name] != state]
    if counters.passes != _passes and "torch" in drawn:
        drawn.remove("torch")  # a loader draws its workers' seed at the start of each pass
    writer.write(events.RANDOM, n=counters.steps, states=states, drawn=drawn)
    if _num_events == NUM_STEPS:
        tracked_models.before_training.remove(_at_forward)


def install() -> None:
    """Look at the generators at the first steps, and never again."""
    from torch.compiler import is_compiling
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from grader.probe.hooks.patches import skip_compiling

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        # It stays: a thread of the script's may be going through the hooks at this moment.
        if _num_events < NUM_STEPS and not is_compiling():
            _after_step(optimizer, args, kwargs)

    skip_compiling(after)
    register_optimizer_step_post_hook(after)
    tracked_models.before_training.append(_at_forward)
