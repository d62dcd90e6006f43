"""Which attempt a worker's request is about: the one in the address, where the lease that it names was this token's.

What is somebody else's, over, or never was, answers the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query
from starlette.exceptions import HTTPException

from grader.store.queue.worker_tokens import state_under_lease
from grader.store.tables.attempt import AttemptState
from grader.web.security.access import Id, Visitor, Worker
from grader.web.service import ServiceDep, WebService


@dataclass(frozen=True, slots=True)
class AttemptLease:
    """An attempt in a worker's hands, or one that it has just ended."""

    attempt_id: int
    lease_token: int
    state: AttemptState


def named_lease(
    service: ServiceDep, visitor: Worker, attempt_id: Id, lease: Annotated[int, Query(ge=1, le=2**31)]
) -> AttemptLease:
    """The lease in the address, which was this token's."""
    state = state_under_lease(service.store, visitor.token, attempt_id, lease)
    if state is None:
        raise stale()
    return AttemptLease(attempt_id, lease, state)


NamedLease = Annotated[AttemptLease, Depends(named_lease)]


def live_lease(named: NamedLease) -> AttemptLease:
    """The same, while it is in force."""
    if named.state is not AttemptState.RUNNING:
        raise stale()
    return named


LiveLease = Annotated[AttemptLease, Depends(live_lease)]


def check_again(service: WebService, visitor: Visitor, lease: AttemptLease) -> None:
    """Whether it is still in force, where something took its time meanwhile.

    Raises:
        HTTPException: it is not.
    """
    live_lease(named_lease(service, visitor, lease.attempt_id, lease.lease_token))


def stale() -> HTTPException:
    """What answers whoever holds no lease in force."""
    return HTTPException(409, "This attempt is not yours, or not any more.")
