"""What samples a model is given in training, by their content: all that no loader explains, and now and then others."""

from __future__ import annotations

from typing import Any

from grader.probe import events, fed_pictures, sampling
from grader.probe.counters import counters
from grader.probe.fingerprints import anchors, sample_hashes
from grader.probe.patches import guarded
from grader.probe.writer import writer

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
