"""Signing this browser out. Signing out everywhere is on the account's page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.web import flash
from grader.web.site import Here
from grader.web.visit import SignedIn

router = APIRouter()


@router.post("/sign-out")
def sign_out(request: Request, site: Here, _visitor: SignedIn) -> Response:
    """End this browser's session."""
    response = flash.send_on("/sign-in", site.secret, "You are signed out.")
    site.sessions.end(response, secure=site.secure(request))
    return response
