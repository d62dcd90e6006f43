"""Pages that stand in a frame of a learning platform: where launches begin and fail, and where content is chosen.

Only these may. They show nothing of anybody's work, and change nothing but by what the platform has signed.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from starlette.responses import HTMLResponse

from grader.web.lti.arrival import LaunchRefusal
from grader.web.security.headers import framed_csp
from grader.web.service import WebService

_FRAMES = ("iframe", "frame")


def is_framed(request: Request) -> bool:
    """Whether the browser says that this is to be shown in a frame."""
    return request.headers.get("sec-fetch-dest", "") in _FRAMES


def framed_page(
    service: WebService, request: Request, template: str, *, form_action: str = "", **context: Any
) -> HTMLResponse:
    """A page for a frame, or for a window; `form_action`: an address elsewhere that its form goes to."""
    status_code = context.pop("status_code", 200)
    allowed = f"'self' {_origin(form_action)}" if form_action else "'self'"
    headers = {
        # A platform is not always framed by the host that it is known by.
        "content-security-policy": framed_csp("*", form_action=allowed),
        "cross-origin-opener-policy": "unsafe-none",
    }
    return service.render(
        request,
        f"lti/{template}",
        status_code=status_code,
        headers=headers,
        form_action=form_action,
        **context,
    )


def refused_page(
    service: WebService, request: Request, refusal: LaunchRefusal, status: int = 403
) -> HTMLResponse:
    """Why a launch comes no further."""
    return framed_page(service, request, "refused.html.j2", status_code=status, refusal=refusal)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    # What would end the directive in a header is part of no host.
    host = parts.netloc if parts.netloc.isascii() and not set(parts.netloc) & set(" ;,'\"") else ""
    return f"{parts.scheme}://{host}" if host else "'self'"
