"""A certificate, at an address that anybody may open: that is what makes it worth something.

Says who, which course, when, and whether it still holds; nothing else of the person's. Why it was revoked, they alone
read.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.store.grading import certificates
from grader.store.grading.progress import progress
from grader.web.security.access import MaybeVisitor, Public, not_found
from grader.web.service import ServiceDep
from grader.web.staff.qr_codes import qr_svg

router = APIRouter(dependencies=[Public])


@router.get("/certificates/{code}")
def page(request: Request, service: ServiceDep, visitor: MaybeVisitor, code: str) -> Response:
    """The certificate, to be printed or to be verified."""
    found = certificates.verify(service.store, code[:64])
    if found is None:
        raise not_found()
    address = f"{service.site(request)}/certificates/{found.public_id}"
    own = visitor is not None and visitor.account.id == found.person_id
    return service.render(
        request,
        "certificate.html.j2",
        visitor=visitor,
        certificate=found,
        # What the course asks for today may be more than it did then.
        tasks=[
            (one.task.terms.title, one.standing.result)
            for one in progress(service.store, found.course_id, found.person_id)
            if one.accepted and one.standing is not None
        ],
        address=address,
        qr=qr_svg(address),
        own=own,
        revocation_reason=certificates.revocation_reasons(service.store, found.course_id).get(
            found.person_id, ""
        )
        if own and found.revoked_at is not None
        else "",
    )
