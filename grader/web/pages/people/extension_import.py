"""Bringing a list of extensions: read, shown with what it gives whom and what is wrong in it, then given at once."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.courses.enrolments import external_ids, participants
from grader.store.courses.extensions import extend_within
from grader.translation import counted, gettext
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.extension_list import (
    COLUMNS,
    MAX_BYTES,
    ExtensionList,
    ListContext,
    decoded,
    read_extensions,
)
from grader.web.staff.form import FormDep

router = APIRouter()


@router.get("/courses/{course_id}/extensions/list")
def show(request: CourseRequestDep) -> HTMLResponse:
    """Where a list is chosen or pasted."""
    return _page(request, None, "")


@router.post("/courses/{course_id}/extensions/list")
def look(request: CourseRequestDep, form: FormDep) -> Response:
    """What the list gives, line by line (`action=look`), or giving it to all of them in one go."""
    text = form.values.get("text", [""])[0]
    chosen = form.files.get("file")
    if chosen is not None and chosen.filename:
        read = decoded(chosen.file.read(MAX_BYTES + 1))
        if read is None:
            problem = gettext(
                "The file is no text, or too large. Save the sheet as CSV and choose that file."
            )
            return _page(request, ExtensionList((), ((0, problem),)), "")
        text = read
    found = read_extensions(text, _context(request))
    if form.text("action") != "give" or not found.rows:
        return _page(request, found, text)
    with request.service.store.write() as connection:
        for row in found.rows:
            extend_within(connection, row.task.id, row.given, [row.person_id], actor_id=request.actor)
    told = counted("Gave %(num)s extension.", "Gave %(num)s extensions.", len(found.rows))
    if found.troubles:
        left = counted("%(num)s line was left out.", "%(num)s lines were left out.", len(found.troubles))
        told = f"{told} {left}"
    return request.redirect("extensions", told)


def _context(request: CourseRequest) -> ListContext:
    store, course_id = request.service.store, request.course.id
    taking_part = participants(store, course_id)
    people = {one.person_id: (one.person_id, one.name) for one in taking_part}
    known = {name.casefold(): people[one] for name, one in external_ids(store, course_id).items()}
    known |= {one.login.casefold(): people[one.person_id] for one in taking_part}
    return ListContext(known, request.tasks(), request.course.zone)


def _page(request: CourseRequest, found: ExtensionList | None, text: str) -> HTMLResponse:
    return request.page(
        "extension_import.html.j2",
        {"found": found, "text": text, "columns": COLUMNS},
        422 if found is not None and not found.rows else 200,
    )
