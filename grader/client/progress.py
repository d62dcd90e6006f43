"""Following an attempt to its end: what happened since the last look, looked at as often as it pays."""

from __future__ import annotations

import time
from collections.abc import Iterator

from grader.client.answers import AttemptAnswer, EventAnswer
from grader.client.service import Service

_RUNNING_S, _QUEUED_S, _LONGEST_S = 1.0, 2.0, 10.0
_NEAR = 3


def follow(service: Service, attempt_id: int) -> Iterator[AttemptAnswer | EventAnswer]:
    """Every event and, after each look, how the attempt stands; ends with how it ended.

    Raises:
        UsageError: there is no such attempt; InfraError: the service is away for longer than its client's patience.
    """
    seen = 0
    while True:
        # The state first: what happens between both looks is told by the next one, and nothing after the end is lost.
        attempt = service.attempt(attempt_id)
        for event in service.events(attempt_id, seen):
            seen = max(seen, event.seq)
            yield event
        yield attempt
        if attempt.ended:
            return
        time.sleep(_pause_s(attempt))


def _pause_s(attempt: AttemptAnswer) -> float:
    if attempt.state != "queued":
        return _RUNNING_S
    if attempt.position is None or attempt.position <= _NEAR:
        return _QUEUED_S
    # A long queue moves slowly, and sixty people look at it.
    return min(_LONGEST_S, _QUEUED_S + attempt.position / 4)
