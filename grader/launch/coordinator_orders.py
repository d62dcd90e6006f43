"""Orders to a supervisor whose run has ranks on other nodes, too: from the grader, to which all nodes report.

A supervisor sees its own ranks only. It reports what it sees and the grader decides what that means for the whole run:
`{"go": {"origin": t}}` starts the ranks at an instant of this machine's monotonic clock, `{"failed": true}` says that a
rank on another node failed, `{"end": {"ending": …, "reason": …}}` ends the run. Nothing a rank says comes in here.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from typing import Any


class CoordinatorOrders:
    """The reading end of a pipe that lines of JSON come through."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._received = b""
        self.failed_elsewhere = False
        """A rank on another node failed."""
        self.end: tuple[str, str] | None = None
        """Ending and reason, once the run is to end."""
        self._origin: float | None = None
        os.set_blocking(descriptor, False)

    def take(self) -> None:
        """Take in what came; never waits."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.descriptor, 1 << 16):
                self._received += chunk
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            self._understand(json.loads(line))

    def wait_for_start(self, limit_s: float) -> float:
        """Wait until the ranks of all nodes are to start; returns that instant on the monotonic clock.

        Raises:
            OSError: the word never came.
        """
        deadline = time.monotonic() + limit_s
        while self._origin is None:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self.end is not None:
                raise OSError("the ranks of the other nodes are not ready")
            if select.select([self.descriptor], [], [], min(left_s, 0.5))[0]:
                self.take()
        time.sleep(max(0.0, self._origin - time.monotonic()))
        return self._origin

    def _understand(self, order: dict[str, Any]) -> None:
        if "go" in order:
            self._origin = float(order["go"]["origin"])
        self.failed_elsewhere = self.failed_elsewhere or "failed" in order
        if "end" in order:
            self.end = str(order["end"]["ending"]), str(order["end"]["reason"])
