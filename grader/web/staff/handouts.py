"""The one page that shows one-time passwords: nothing keeps them, so it is read, printed or lost."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import HTMLResponse

from grader.web.staff.accounts import Handout
from grader.web.staff.taught import Taught


def handouts(here: Taught, made: Sequence[Handout]) -> HTMLResponse:
    """The page; it can be printed and cut into slips."""
    return here.page("handouts.html.j2", {"handouts": made, "origin": here.site.origin(here.request)})
