"""The programming interface, to be read: what the OpenAPI document says, without anybody else's scripts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.web.reference.operations import operations
from grader.web.security.access import V1, MaybeVisitor, Public
from grader.web.service import ServiceDep

router = APIRouter(dependencies=[Public])


@router.get("/api")
def page(request: Request, service: ServiceDep, visitor: MaybeVisitor) -> Response:
    """All operations; it tells nothing of any course, so that whoever writes a program may read it."""
    return service.render(
        request,
        "api_reference.html.j2",
        visitor=visitor,
        groups=operations(request.app),
        site=service.site(request),
        document=f"{V1}/openapi.json",
    )
