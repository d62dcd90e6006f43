"""The way out of mails, as mail programs take it: one request without a page, a cookie or a question (RFC 8058)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from grader.delivery.mail.links import read_off_token
from grader.store.people.mailboxes import choose, mailbox
from grader.web.documents.schemas import ERRORS
from grader.web.security.access import V1, Public, not_found
from grader.web.service import ServiceDep

router = APIRouter(prefix=V1, tags=["mail"], responses=ERRORS, dependencies=[Public])


@router.get("/mail/off/{token}", status_code=303, response_class=RedirectResponse)
def show(token: str) -> RedirectResponse:
    """On to the page that asks, for programs that open the address."""
    return RedirectResponse(f"/mail/off/{token}", 303)


@router.post("/mail/off/{token}", status_code=204, response_class=Response)
def end(service: ServiceDep, token: str) -> Response:
    """No more mails of the kind and for the person that the token names."""
    found = read_off_token(service.secret, token)
    if found is None or mailbox(service.store, found[0]) is None:
        raise not_found()
    choose(service.store, found[0], {found[1]: False})
    return Response(status_code=204)
