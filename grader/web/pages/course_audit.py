"""What was done in a course, by whom: enrolments, terms, dates, invitations, certificates. The newest first."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from grader.store import people
from grader.store.events import audit_of
from grader.web.staff.taught import TaughtHere

router = APIRouter()
MOST = 300


@router.get("/courses/{course_id}/audit")
def show(here: TaughtHere) -> HTMLResponse:
    """The last events of the course."""
    events = audit_of(here.site.store, f"course:{here.course.id}", limit=MOST)
    named = {one.actor_id for one in events} | {one.data.get("person_id") for one in events}
    known = {found: people.account(here.site.store, found) for found in named if isinstance(found, int)}
    return here.page(
        "audit.html.j2",
        {
            "events": events,
            "names": {found: one.name for found, one in known.items() if one is not None},
            "titles": {one.id: one.terms.title for one in here.tasks()},
        },
    )
