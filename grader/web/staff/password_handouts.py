"""One-time passwords to be handed out: as a page that is printed and cut, and as a file for a mail merge."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import HTMLResponse

from grader.web.staff.accounts import PasswordHandout
from grader.web.staff.course_request import CourseRequest
from grader.web.staff.csv_files import to_csv


def handouts(request: CourseRequest, made: Sequence[PasswordHandout]) -> HTMLResponse:
    """The page, one slip for each person."""
    return request.page(
        "password_handouts.html.j2", {"handouts": made, "site": request.service.site(request.http)}
    )


def handouts_csv(request: CourseRequest, made: Sequence[PasswordHandout]) -> bytes:
    """The file."""
    site = request.service.site(request.http)
    return to_csv(
        ("section", "name", "login", "password", "address"),
        ((one.section, one.name, one.login, one.password, site) for one in made),
    )
