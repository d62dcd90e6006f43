"""Signing this browser out. Signing out everywhere is on the account's page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.web import flash
from grader.web.security.access import SignedIn
from grader.web.service import ServiceDep

router = APIRouter()


@router.post("/sign-out")
def sign_out(request: Request, service: ServiceDep, _visitor: SignedIn) -> Response:
    """End this browser's session."""
    response = flash.redirect("/sign-in", service.secret, "You are signed out.")
    service.sessions.end(response, secure=service.secure(request))
    return response
