"""The gradebook: people × tasks, sorted by links, every cell a way to the attempt that counts."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store.gradebook import gradebook
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.gradebook_table import gradebook_page

router = APIRouter()


@router.get("/courses/{course_id}/gradebook", include_in_schema=False)
def show(
    request: ReaderRequestDep, sort: str = "name", order: str = "up", q: str = "", page: int = 1
) -> HTMLResponse:
    """The gradebook of a course, a hundred learners at a time."""
    descending = order == "down"
    book = gradebook(request.service.store, request.course.id, request.shown)
    shown = gradebook_page(book, sort=sort, descending=descending, search=q[:200], page=page)

    def link(**changes: str | int) -> str:
        wanted = {"sort": sort, "order": order, "q": q[:200], "page": 1, **changes}
        kept = {name: value for name, value in wanted.items() if (name, value) not in _PLAIN}
        return f"{request.at}/gradebook" + (f"?{urlencode(kept)}" if kept else "")

    def sorting(by: str, first: str = "down") -> tuple[str, str]:
        """Address that sorts by a column, or turns it round, and what `aria-sort` says of it now."""
        if by != sort:
            return link(sort=by, order=first), "none"
        return link(
            sort=by, order="up" if descending else "down"
        ), "descending" if descending else "ascending"

    return request.page(
        "gradebook.html.j2",
        {"shown": shown, "sorting": sorting, "link": link, "q": q[:200], "sort": sort, "order": order},
    )


_PLAIN = (("sort", "name"), ("order", "up"), ("q", ""), ("page", 1))
