"""The one zone that all times of a page are in.

Pages of a course that only staff sees, some of which take dates, are in the zone of the course. All others are sent in
UTC, and the browser shows them in its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import tzinfo

_current: ContextVar[tzinfo | None] = ContextVar("zone", default=None)


def page_zone() -> tzinfo | None:
    """That of the page that is made now; None: times are sent in UTC, and the browser chooses."""
    return _current.get()


@contextmanager
def in_zone(zone: tzinfo | None) -> Iterator[None]:
    """Meanwhile pages are in that zone."""
    before = _current.set(zone)
    try:
        yield
    finally:
        _current.reset(before)
