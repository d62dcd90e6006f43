"""The one page that shows one-time passwords: nothing keeps them, so it is read, printed or lost."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import HTMLResponse

from grader.web.staff.accounts import PasswordHandout
from grader.web.staff.course_request import CourseRequest


def handouts(request: CourseRequest, made: Sequence[PasswordHandout]) -> HTMLResponse:
    """The page; it can be printed and cut into slips."""
    return request.page(
        "password_handouts.html.j2", {"handouts": made, "origin": request.service.origin(request.http)}
    )
