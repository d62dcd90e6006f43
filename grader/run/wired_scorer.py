"""Our end of a scorer that waits in a box of its own: one question at a time over the box's wire."""

from __future__ import annotations

import time
from typing import Any

from grader.errors import InfraError
from grader.run.scorer_end import ScorerFolders
from grader.run.wire import Wire


class WiredScorer:
    """A scorer that holds what one run left; see `ScorerEnd`."""

    folders = ScorerFolders("/visible", "/hidden", "/tmp/outputs")

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def ask(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Its answer; see the protocol."""
        self._wire.send(request)
        answer = self._wire.event(time.monotonic() + wall_s)
        if answer is None:
            raise InfraError(f"The scorer gave no answer within {wall_s:.0f} s.{self._wire.last_words()}")
        return answer
