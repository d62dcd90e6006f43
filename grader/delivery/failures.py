"""What a channel raises where it could not deliver; each says what becomes of the delivery."""

from __future__ import annotations

from grader.errors import GraderError


class DeliveryFailedError(GraderError):
    """Not this time: tried again later, and given up after some days. The text stands in the log."""

    def __init__(self, answer: str, *, retry_in_s: float | None = None) -> None:
        super().__init__(answer)
        self.retry_in_s = retry_in_s


class DeliveryRefusedError(GraderError):
    """Never: trying again would bring the same answer. Given up at once."""


class DeliveryEarlyError(GraderError):
    """Its time has not come; it is looked at again in `for_s` seconds."""

    def __init__(self, reason: str, *, for_s: float) -> None:
        super().__init__(reason)
        self.for_s = for_s


class ChannelAwayError(GraderError):
    """The way out itself is away, for all: the delivery waits, and none is tried for a while."""
