"""What is no text is refused before any route sees it: NUL, and halves of characters, which no database would keep.

Holds for every path, query and form, whatever encoding it was sent in; documents in JSON refuse the same by themselves
(`grader.web.documents.document.Received`). Files are bytes: what they may hold is the intake's business.
"""

from __future__ import annotations

from fastapi import Request
from starlette.exceptions import HTTPException

from grader.store.tables.base import storable
from grader.translation import gettext
from grader.web.security import csrf
from grader.web.security.visitor import not_found


async def plain_text(request: Request) -> None:
    """Refuse a request with something in its address or in a field that is no text.

    Raises:
        HTTPException: 404, there can be no such path; 400, a query or a field holds it.
    """
    if not _is_text(request.url.path) or not all(_is_text(str(one)) for one in request.path_params.values()):
        raise not_found()
    asked = request.query_params.multi_items()
    sent = [] if request.method in csrf.SAFE or not csrf.is_form(request) else await _fields(request)
    for name, value in (*asked, *sent):
        if not _is_text(name) or not _is_text(value):
            raise HTTPException(
                400, gettext("Something that was typed holds a character that no text has. Type it anew.")
            )


async def _fields(request: Request) -> list[tuple[str, str]]:
    form = await csrf.form_of(request)
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _is_text(text: str) -> bool:
    return storable(text) == text
