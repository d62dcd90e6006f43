"""The page of one rule: what it finds, why it matters, what to write instead. The same text as `grader rule CODE`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.checks.lint import load_page
from grader.report.cards import title_of
from grader.report.markdown_html import page_html
from grader.web.security.access import MaybeVisitor, Public, not_found
from grader.web.service import ServiceDep

router = APIRouter(dependencies=[Public])

_STAFF = "TRUST"


@router.get("/rules/{code}")
def page(request: Request, service: ServiceDep, visitor: MaybeVisitor, code: str) -> Response:
    """One rule's documentation; those that only staff see are not there for others."""
    code = code.upper()[:16]
    text = load_page(code)
    if text is None or (code.startswith(_STAFF) and not (visitor is not None and visitor.is_staff)):
        raise not_found()
    first, _, rest = text.strip().partition("\n")
    return service.render(
        request,
        "rule.html.j2",
        visitor=visitor,
        code=code,
        title=title_of(code, first),
        text=page_html(rest.strip(), top=2),
    )
