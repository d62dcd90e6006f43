"""What happens to an attempt, as it happens: server-sent events, resumed where the browser says that it stopped."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from grader.store.queue import Place
from grader.web.live.hub import Alive, Ended, FullError, Hub
from grader.web.live.told import message, told, told_place
from grader.web.site import Here
from grader.web.visit import AttemptSeen, SignedIn

router = APIRouter()

_RETRY_MS = 2000
_MOST_EVENTS = 2**62


@router.get("/attempts/{attempt_id}/live")
async def live(
    request: Request,
    site: Here,
    visitor: SignedIn,
    seen: AttemptSeen,
    after: Annotated[int, Query(ge=0, le=_MOST_EVENTS)] = 0,
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """Events after the last one that the browser has, until the attempt is over."""
    hub = hub_of(request, site)
    try:
        hub.admit(visitor.account.id)
    except FullError:
        raise HTTPException(
            503, "Too many pages are watching just now. Load this one again by hand.", {"Retry-After": "10"}
        ) from None
    if last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) < 18:
        # A browser that comes back knows better than the address that it once opened.
        after = int(last_event_id)
    return StreamingResponse(
        _stream(hub, seen.id, after, visitor.account.id),
        media_type="text/event-stream",
        # A proxy that waits for more would make it look as if nothing happened.
        headers={"X-Accel-Buffering": "no"},
    )


def hub_of(request: Request, site: Here) -> Hub:
    """The process's one hub."""
    state = request.app.state
    if getattr(state, "live", None) is None:
        state.live = Hub(site.store)
    hub: Hub = state.live
    return hub


async def _stream(hub: Hub, attempt_id: int, after: int, person_id: int) -> AsyncGenerator[bytes]:
    yield f"retry: {_RETRY_MS}\n\n".encode()
    async for one in hub.follow(attempt_id, after, person_id):
        if isinstance(one, Ended):
            yield message("end", {"state": one.state.value})
        elif isinstance(one, Alive):
            yield b": still there\n\n"
        elif isinstance(one, Place):
            yield message("place", told_place(one))
        else:
            shown = told(one)
            # What is not for watchers is passed over; its number comes with whatever follows.
            if shown is not None:
                yield message(*shown, one.seq)
