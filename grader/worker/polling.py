"""Attempts without messages: asks whether there is one, and judges it; asks less often while there is none.

For workers that no broker wakes. They sleep for irregular times, so that those that start together do not ask together.
"""

from __future__ import annotations

import random
import signal
import time

from grader.worker.processor import AttemptProcessor
from grader.worker.shared_state import SharedState, ShutdownStage
from grader.worker.tasks import MAX_ATTEMPTS

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 5.0
_LOOK_S = 0.1


def poll(processor: AttemptProcessor, shared: SharedState) -> None:
    """Process attempts until the worker is to end, or until it is time for another process."""
    # What ends this loop stands in the shared state; an attempt that runs is not torn off.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    processor.open()
    shared.note_busy()
    num_processed, pause_s = 0, _FIRST_PAUSE_S
    while shared.stage is ShutdownStage.RUN and num_processed < MAX_ATTEMPTS:
        if processor.process_next() is not None:
            num_processed, pause_s = num_processed + 1, _FIRST_PAUSE_S
            continue
        _rest(shared, pause_s * random.uniform(0.5, 1.0))
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _rest(shared: SharedState, pause_s: float) -> None:
    until = time.monotonic() + pause_s
    while shared.stage is ShutdownStage.RUN and time.monotonic() < until:
        time.sleep(_LOOK_S)
