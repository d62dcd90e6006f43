"""Bringing a list of people into a course: read, shown with everything that is wrong in it, then taken over."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.web.staff import accounts
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.password_handouts import handouts
from grader.web.staff.roster import MAX_BYTES, Roster, read_roster, read_text

router = APIRouter()


@router.get("/courses/{course_id}/people/import")
def show(request: CourseRequestDep) -> HTMLResponse:
    """Where a list is chosen or pasted."""
    return request.page(
        "import.html.j2", {"roster": None, "planned": (), "text": "", "num_new": 0, "error": ""}
    )


@router.post("/courses/{course_id}/people/import")
def preview(request: CourseRequestDep, form: FormDep) -> Response:
    """What the list says, line by line, and what taking it over would do; nothing is changed."""
    text = _text(form)
    roster = read_text(text) if isinstance(text, str) else text
    return _preview(request, roster, text if isinstance(text, str) else "")


@router.post("/courses/{course_id}/people/import/take-over")
def take_over(request: CourseRequestDep, form: FormDep) -> Response:
    """Make the accounts and enrol them; the list is read again as it was previewed."""
    text = form.values.get("text", [""])[0]
    roster = read_text(text)
    if not roster.people:
        return _preview(request, roster, text)
    planned = accounts.plan(request.service.store, request.course.id, roster.people)
    try:
        made = accounts.enrol_planned(
            request.service.store, request.course.id, planned, actor_id=request.actor
        )
    except UsageError as error:
        return _preview(request, roster, text, str(error))
    if not made:
        return request.redirect(
            "people", "Everybody on the list took part already; nothing has changed.", kind="note"
        )
    return handouts(request, made)


def _text(form: SubmittedForm) -> str | Roster:
    """The list as text: of the file if there is one, of the field otherwise."""
    chosen = form.files.get("file")
    if chosen is not None and chosen.filename:
        return read_roster(chosen.file.read(MAX_BYTES + 1)) if chosen.size else read_text("")
    return form.values.get("text", [""])[0]


def _preview(request: CourseRequest, roster: Roster, text: str, error: str = "") -> HTMLResponse:
    planned = accounts.plan(request.service.store, request.course.id, roster.people)
    return request.page(
        "import.html.j2",
        {
            "roster": roster,
            "planned": planned,
            "num_new": sum(not one.known for one in planned),
            "text": text or roster.as_text(),
            "error": error,
        },
        422 if error or not roster.people else 200,
    )
