"""Style sheet, scripts and icon, under addresses that change with their bytes. Serves nothing else from the disk."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response

from grader.web import templating
from grader.web.security.access import Public

router = APIRouter(include_in_schema=False, dependencies=[Public])


@router.get("/static/{digest}/{name}")
def static(digest: str, name: str) -> Response:
    """One asset; browsers keep it for good, because another one has another address."""
    if name not in templating.assets() or templating.static_path(name) != f"/static/{digest}/{name}":
        raise HTTPException(404)
    content, media_type = templating.assets()[name]
    return Response(
        content, media_type=media_type, headers={"Cache-Control": "public, max-age=31536000, immutable"}
    )
