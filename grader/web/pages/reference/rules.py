"""The page of one rule: what it finds, why it matters, what to write instead. The same text as `grader rule CODE`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.checks.lint import load_page
from grader.report.findings.cards import title_of
from grader.report.html.markdown_html import page_html
from grader.translation import gettext
from grader.web.security.access import MaybeVisitor, Public, not_found
from grader.web.service import ServiceDep

router = APIRouter(dependencies=[Public])

_STAFF = "TRUST"
_CAME_FROM = re.compile(r"/courses/\d+/tasks/\d+|/attempts/\d+")


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
        back=_back(request, service.origin(request)),
    )


def _back(request: Request, origin: str) -> tuple[str, str] | None:
    """The task or the attempt that links here, in words and as a path; None for whoever came another way."""
    parts = urlsplit(request.headers.get("referer", ""))
    path = parts.path.removesuffix("/submit")
    if f"{parts.scheme}://{parts.netloc}" != origin or not _CAME_FROM.fullmatch(path):
        return None
    text = gettext("Back to the attempt") if path.startswith("/attempts") else gettext("Back to the task")
    return text, path
