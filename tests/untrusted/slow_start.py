"""What a reader imports first, where a test needs to see it before it is ready."""

from __future__ import annotations

import time


def import_slowly() -> None:
    """Takes long enough to be looked at meanwhile."""
    time.sleep(1)
