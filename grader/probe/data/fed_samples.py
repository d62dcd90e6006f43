"""What samples a model is given in training, by their content: all that no loader explains, and now and then others."""

from __future__ import annotations

from typing import Any

from grader.probe.data import fed_pictures
from grader.probe.hooks import sampling
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded
from grader.probe.models.fingerprints import anchors, sample_hashes
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_DEVICE_FEED_STEPS = 50
"""Beyond which batches on a device are looked at by lot alone: each look waits for it."""
_FIRST_SPOTS = 4

_spots = sampling.SampledSteps(16)


def note(batch: Any, size: int) -> None:
    """A model is given a batch of so many samples in training; None: nobody knows what they are."""
    now = counters
    if batch is not None and now.steps >= fed_pictures.next_step:
        fed_pictures.note(batch)
    explained = now.explained or now.credit > 0
    if explained:
        now.credit = now.credit - size if now.credit > size else 0
        steps = now.steps
        looked = steps < _FIRST_SPOTS or (steps >= _spots.next and _spots.at(steps))
        if not looked or not sampling.is_random():
            return
    if batch is not None and size and (batch.is_cpu or explained or now.steps < _MAX_DEVICE_FEED_STEPS):
        _look(batch, size, explained)


@guarded("fed samples", values=True)
def _look(batch: Any, size: int, explained: bool) -> None:
    hashes = sample_hashes(batch)
    writer.write(
        events.FEED, step=counters.steps, hashes=hashes, size=size, spot=explained, anchors=anchors(batch)
    )
