"""Which thread of this process trains: hooks that tell of computing follow one, and stop where several train at once.

What they keep between a forward pass and its step would be mixed up, and what they read of one thread's tensors another
may be writing below Python.
"""

from __future__ import annotations

import threading

from grader.probe.hooks import patches
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_thread: int | None = None
_left: set[int] = set()
"""Threads that trained before: one that comes back trains beside another."""
_told = threading.Lock()
"""Taken by whoever tells, and never given back."""


@patches.guarded("threads", values=True)
def meet() -> None:
    """This thread takes gradients."""
    global _thread
    here = threading.get_ident()
    if here == _thread:
        return
    alive = {one.ident: one for one in threading.enumerate()}
    if isinstance(alive.get(here), threading._DummyThread | None):
        return  # one of torch's own, which goes backward for whoever waits
    # The main thread has mostly started this one, and waits for it.
    if here not in _left and (_thread not in alive or alive[_thread] is threading.main_thread()):
        _left.add(here)
        _thread = here
        return
    patches.stop_values()
    if _told.acquire(blocking=False):  # several may come here at once
        writer.write(events.UNSUPPORTED, reason=events.SEVERAL_THREADS)
