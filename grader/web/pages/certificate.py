"""A certificate, at an address that anybody may open: that is what makes it worth something.

Says who, which course, when, and whether it still holds; nothing else of the person's.
"""

from __future__ import annotations

from functools import lru_cache

import segno
from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from grader.store import certificates
from grader.store.progress import progress
from grader.web.site import Here
from grader.web.visit import Guest, Open, not_found

router = APIRouter(dependencies=[Open])


@router.get("/certificates/{code}")
def page(request: Request, site: Here, visitor: Guest, code: str) -> Response:
    """The certificate, to be printed or to be verified."""
    found = certificates.verify(site.store, code[:64])
    if found is None:
        raise not_found()
    address = f"{site.origin(request)}/certificates/{found.public_id}"
    return site.render(
        request,
        "certificate.html.j2",
        visitor=visitor,
        certificate=found,
        # What the course asks for today may be more than it did then.
        tasks=[one.task for one in progress(site.store, found.course_id, found.person_id) if one.accepted],
        address=address,
        qr=_drawn(address),
        own=visitor is not None and visitor.account.id == found.person_id,
    )


@lru_cache(maxsize=256)
def _drawn(address: str) -> Markup:
    # Black on white whatever the page's colours are: that is what cameras read.
    drawn = segno.make(address, error="m")
    return Markup(
        drawn.svg_inline(border=2, dark="#000", light="#fff", omitsize=True, title="QR code of the address")
    )
