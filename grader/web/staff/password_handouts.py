"""The one page that shows one-time passwords: nothing keeps them, so it is read, printed, saved or replaced."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from starlette.responses import HTMLResponse

from grader.web.staff.accounts import PasswordHandout
from grader.web.staff.course_request import CourseRequest
from grader.web.staff.csv_files import to_csv


def handouts(request: CourseRequest, made: Sequence[PasswordHandout]) -> HTMLResponse:
    """The page; it can be printed and cut into slips, and holds the same as a file for a mail merge."""
    site = request.service.site(request.http)
    table = to_csv(
        ("name", "login", "password", "address"),
        ((one.name, one.login, one.password, site) for one in made),
    )
    return request.page(
        "password_handouts.html.j2",
        {
            "handouts": made,
            "site": site,
            # In the page itself: a second request would need the passwords kept somewhere.
            "file": f"data:text/csv;base64,{b64encode(table).decode()}",
        },
    )
