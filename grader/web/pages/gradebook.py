"""The gradebook: people × tasks, sorted by links, every cell a way to the attempt that counts."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store.gradebook import gradebook
from grader.store.pseudonyms import anonymous_tasks
from grader.web.staff.course_request import ReaderRequestDep
from grader.web.staff.gradebook_table import gradebook_page

router = APIRouter()


@router.get("/courses/{course_id}/gradebook", include_in_schema=False)
def show(
    request: ReaderRequestDep,
    sort: str = "name",
    order: str = "up",
    q: str = "",
    page: int = 1,
    anonymous: bool = False,
) -> HTMLResponse:
    """The gradebook of a course, a hundred learners at a time; anonymous tasks have one of their own."""
    descending = order == "down"
    hidden = anonymous_tasks(request.service.store, request.course.id)
    # Where nothing is graded by name there is but the one.
    num_named = len(request.tasks()) - len(hidden) if hidden else 0
    anonymous = bool(hidden) and (anonymous or not num_named)
    kept = request.service.until_next_event
    book = kept.of(gradebook, request.course.id, request.shown, anonymous=anonymous)
    shown = gradebook_page(book, sort=sort, descending=descending, search=q[:200], page=page)

    def link(**changes: str | int) -> str:
        wanted = {
            "sort": sort,
            "order": order,
            "q": q[:200],
            "page": 1,
            "anonymous": int(anonymous),
            **changes,
        }
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
        {
            "shown": shown,
            "sorting": sorting,
            "link": link,
            "q": q[:200],
            "sort": sort,
            "order": order,
            "anonymous": anonymous,
            "num_anonymous": len(hidden),
            "num_named": num_named,
        },
    )


_PLAIN = (("sort", "name"), ("order", "up"), ("q", ""), ("page", 1), ("anonymous", 0))
