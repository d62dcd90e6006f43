"""What happens to an attempt, as it happens: server-sent events, resumed where the browser says that it stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from grader.store.queue.queue import QueuePlace
from grader.translation import gettext
from grader.web.live.event_hub import AttemptEnded, EventHub, KeepAlive, TooManyWatchersError
from grader.web.live.public_events import public_event, public_place, stream_message
from grader.web.security.access import SignedIn, VisibleAttempt
from grader.web.service import ServiceDep

router = APIRouter()

_RETRY_MS = 2000
_MOST_EVENTS = 2**62


@router.get("/attempts/{attempt_id}/live")
async def live(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    facts: VisibleAttempt,
    after: Annotated[int, Query(ge=0, le=_MOST_EVENTS)] = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """Events after the last one that the browser has, until the attempt is over."""
    hub = event_hub(request, service)
    try:
        hub.admit(visitor.account.id)
    except TooManyWatchersError:
        text = gettext("Too many pages are watching just now. Load this one again by hand.")
        raise HTTPException(503, text, {"Retry-After": "10"}) from None
    if last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 18:
        # A browser that comes back knows better than the address that it once opened.
        after = int(last_event_id)
    return StreamingResponse(
        _stream(hub, facts.id, after, visitor.account.id),
        media_type="text/event-stream",
        # A proxy that waits for more would make it look as if nothing happened.
        headers={"X-Accel-Buffering": "no"},
    )


def event_hub(request: Request, service: ServiceDep) -> EventHub:
    """The process's one hub."""
    state = request.app.state
    if getattr(state, "live", None) is None:
        state.live = EventHub(service.store)
    hub: EventHub = state.live
    return hub


async def _stream(hub: EventHub, attempt_id: int, after: int, person_id: int) -> AsyncGenerator[bytes]:
    yield f"retry: {_RETRY_MS}\n\n".encode()
    async for one in hub.follow(attempt_id, after, person_id):
        if isinstance(one, AttemptEnded):
            yield stream_message("end", {"state": one.state.value})
        elif isinstance(one, KeepAlive):
            yield b": still there\n\n"
        elif isinstance(one, QueuePlace):
            yield stream_message("place", public_place(one))
        else:
            public = public_event(one)
            # What is not for watchers is passed over; its number comes with whatever follows.
            if public is not None:
                yield stream_message(*public, one.seq)
