"""What was done in a course, by whom: filtered, a page at a time, and as a file. The newest first."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.store.audit_trail import audit_events, audit_kinds, audit_page, people_in
from grader.store.courses.enrolments import names_in
from grader.store.people.people import names_of
from grader.web.staff.audit_query import AuditQueryDep
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.csv_files import to_csv
from grader.web.staff.links import link
from grader.web.staff.stored_words import stored_word

router = APIRouter()
_MOST = 100_000


@router.get("/courses/{course_id}/audit")
def show(request: CourseRequestDep, wanted: AuditQueryDep, before: str = "") -> HTMLResponse:
    """The last events that match, a hundred lines at a time."""
    store, subject = request.service.store, _subject(request)
    start = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    found = audit_page(store, subject, wanted.filter(request.course.zone), before=start)
    people = names_in(store, request.course.id)
    gone = people_in(one.event for one in found.lines) - people.keys()
    place, fields = f"{request.at}/audit", wanted.fields()
    return request.page(
        "audit.html.j2",
        {
            "lines": found.lines,
            "kinds": audit_kinds(store, subject),
            "words": stored_word,
            "moment": _moment,
            "wanted": wanted,
            "people": people,
            "newest": link(place, fields) if start is not None else "",
            "older": link(place, {**fields, "before": found.before}) if found.before is not None else "",
            "csv": link(f"{place}.csv", fields),
            "json": link(f"{place}.json", fields),
            "names": people | names_of(store, gone) if gone else people,
            "titles": {one.id: one.terms.title for one in request.tasks()},
        },
    )


@router.get("/courses/{course_id}/audit.csv")
def as_csv(request: CourseRequestDep, wanted: AuditQueryDep) -> Response:
    """All events that match, for a spreadsheet."""
    header = ["at", "kind", "actor_id", "actor", "person_id", "person", "details"]
    rows = (
        [
            one["at"],
            one["kind"],
            one["actor_id"],
            one["actor"],
            one["data"].get("person_id"),
            one["person"],
            json.dumps({name: value for name, value in one["data"].items() if name != "person_id"}),
        ]
        for one in _documents(request, wanted)
    )
    return _download(request, "audit.csv", "text/csv; charset=utf-8", to_csv(header, rows))


@router.get("/courses/{course_id}/audit.json")
def as_json(request: CourseRequestDep, wanted: AuditQueryDep) -> Response:
    """All events that match, for programs."""
    text = json.dumps({"schema": 1, "events": _documents(request, wanted)}, indent=2) + "\n"
    return _download(request, "audit.json", "application/json", text.encode())


def _documents(request: CourseRequest, wanted: AuditQueryDep) -> list[dict[str, Any]]:
    store = request.service.store
    found = list(audit_events(store, _subject(request), wanted.filter(request.course.zone), limit=_MOST))
    names = names_of(store, people_in(found))
    return [
        {
            "at": one.at.isoformat(timespec="seconds"),
            "kind": one.kind,
            "actor_id": one.actor_id,
            "actor": None if one.actor_id is None else names.get(one.actor_id),
            "person": names.get(one.data.get("person_id", 0)),
            "data": one.data,
        }
        for one in found
    ]


def _moment(stored: str) -> datetime:
    """A moment among an event's details."""
    found = datetime.fromisoformat(stored)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _subject(request: CourseRequest) -> str:
    return f"course:{request.course.id}"


def _download(request: CourseRequest, name: str, media_type: str, data: bytes) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="course-{request.course.id}-{name}"'}
    return Response(data, media_type=media_type, headers=headers)
