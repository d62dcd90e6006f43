"""What was done in a course, by whom: enrolments, terms, dates, invitations, certificates. The newest first."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store import people
from grader.store.events import audit_kinds, audit_of
from grader.web.staff.course_request import CourseRequestDep
from grader.web.staff.links import link

router = APIRouter()
_PAGE = 100
_EVERYTHING = "everything"
_BY_THE_CLASS = ("enrolled", "left")
"""Of these a class makes hundreds, and all else would be lost among them."""


@router.get("/courses/{course_id}/audit")
def show(request: CourseRequestDep, kind: str = "", before: str = "") -> HTMLResponse:
    """The last events of the course, a hundred at a time: of one kind, all, or (at first) all but enrolments."""
    store, subject = request.service.store, f"course:{request.course.id}"
    kinds = audit_kinds(store, subject)
    wanted = kind if kind in kinds or kind == _EVERYTHING else ""
    start = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = audit_of(
        store,
        subject,
        kind=wanted if wanted in kinds else None,
        without=() if wanted else _BY_THE_CLASS,
        before=start,
        limit=_PAGE + 1,
    )
    events = found[:_PAGE]
    named = {one.actor_id for one in events} | {one.data.get("person_id") for one in events}
    known = {found: people.account(request.service.store, found) for found in named if isinstance(found, int)}
    place = f"{request.at}/audit"
    return request.page(
        "audit.html.j2",
        {
            "events": events,
            "kinds": kinds,
            "kind": wanted,
            "everything": _EVERYTHING,
            "num_left_out": 0 if wanted else sum(kinds.get(one, 0) for one in _BY_THE_CLASS),
            "newest": link(place, {"kind": wanted}) if start is not None else "",
            "older": link(place, {"kind": wanted, "before": events[-1].id}) if len(found) > _PAGE else "",
            "names": {found: one.name for found, one in known.items() if one is not None},
            "titles": {one.id: one.terms.title for one in request.tasks()},
        },
    )
