"""What was done in a course, by whom: enrolments, terms, dates, invitations, certificates. The newest first."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store import people
from grader.store.events import audit_of
from grader.web.staff.course_request import CourseRequestDep

router = APIRouter()
_MOST = 300


@router.get("/courses/{course_id}/audit")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The last events of the course."""
    events = audit_of(request.service.store, f"course:{request.course.id}", limit=_MOST)
    named = {one.actor_id for one in events} | {one.data.get("person_id") for one in events}
    known = {found: people.account(request.service.store, found) for found in named if isinstance(found, int)}
    return request.page(
        "audit.html.j2",
        {
            "events": events,
            "names": {found: one.name for found, one in known.items() if one is not None},
            "titles": {one.id: one.terms.title for one in request.tasks()},
        },
    )
