"""The page of one rule: what it finds, why it matters, what to write instead. The same text as `grader rule CODE`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from grader.checks.lint import load_page
from grader.report.cards import title_of
from grader.report.prose import page as prose
from grader.web.site import Here
from grader.web.visit import Guest, Open, not_found

router = APIRouter(dependencies=[Open])

_STAFF = "TRUST"


@router.get("/rules/{code}")
def page(request: Request, site: Here, visitor: Guest, code: str) -> Response:
    """One rule's documentation; those that only staff are told of are not there for others."""
    code = code.upper()[:16]
    text = load_page(code)
    if text is None or (code.startswith(_STAFF) and not (visitor is not None and visitor.is_staff)):
        raise not_found()
    first, _, rest = text.strip().partition("\n")
    return site.render(
        request,
        "rule.html.j2",
        visitor=visitor,
        code=code,
        title=title_of(code, first),
        text=_raised(prose(rest)),
    )


def _raised(text: Markup) -> Markup:
    """Headings as this page needs them: in reports these stand deep below a finding's."""
    return Markup(str(text).replace("<h4>", "<h2>").replace("</h4>", "</h2>"))
