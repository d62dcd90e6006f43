"""A scorer that waits in a container of its own: one question at a time over the container's connection."""

from __future__ import annotations

import time
from typing import Any

from grader.errors import InfraError
from grader.run.container_connection import ContainerConnection
from grader.run.runtime_scorer import ScorerFolders


class ContainerScorer:
    """A scorer that holds what one run left; see `ScorerEnd`."""

    folders = ScorerFolders("/visible", "/hidden", "/tmp/outputs")

    def __init__(self, connection: ContainerConnection) -> None:
        self._connection = connection

    def ask(self, request: dict[str, Any], wall_s: float) -> dict[str, Any]:
        """Its answer; see the protocol."""
        self._connection.send(request)
        answer = self._connection.event(time.monotonic() + wall_s)
        if answer is None:
            raise InfraError(
                f"The scorer gave no answer within {wall_s:.0f} s.{self._connection.last_words()}"
            )
        return answer
