"""An attempt: live while it waits and runs, its report afterwards, under one address."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import InfraError
from grader.store import reviews
from grader.store.attempts import AttemptFacts, Filter, attempt, attempts, files_of
from grader.store.courses import course, tasks_of
from grader.store.endings import Cancelling, cancel
from grader.store.events import events_of
from grader.store.queue import places, queue_state
from grader.store.submissions import source_of
from grader.store.tables.attempt import AttemptState, Lane
from grader.web import flash, stored_report
from grader.web.attempt_files import shown_files
from grader.web.found import look_at
from grader.web.live.picture import picture
from grader.web.site import Here, Site
from grader.web.stored_report import StoredReport
from grader.web.visit import AttemptSeen, SignedIn, Visitor, hidden_until

router = APIRouter()

_EVENTS = 5000
_REGRADES = 100
_REPORT_CSP = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""A report's bars and plots carry their sizes and colours inline; scripts stay our own files."""
_CANCELLED = {
    Cancelling.CANCELLED: ("The attempt is cancelled. It waited, so it does not count.", "done"),
    Cancelling.REQUESTED: ("The run is being ended.", "note"),
    Cancelling.TOO_LATE: ("It had come to its end already.", "note"),
    Cancelling.UNKNOWN: ("There is nothing to cancel.", "problem"),
}


@router.get("/attempts/{attempt_id}")
def page(request: Request, site: Here, visitor: SignedIn, seen: AttemptSeen) -> Response:
    """What there is to see of the attempt just now."""
    teaches = visitor.teaches(seen.course_id)
    task = next((one for one in tasks_of(site.store, seen.course_id) if one.id == seen.course_task_id), None)
    until = hidden_until(site, visitor, seen)
    told: dict[str, Any] = {
        "attempt": seen,
        "course": course(site.store, seen.course_id),
        "title": task.terms.title if task else seen.task,
        # Of a task that was withdrawn there is no page any more.
        "task_url": f"/courses/{seen.course_id}/tasks/{seen.course_task_id}"
        if task is not None and not task.withdrawn
        else "",
        "here": f"/attempts/{seen.id}",
        "teaches": teaches,
        "own": seen.person_id == visitor.account.id,
        "hidden_until": until,
        "later": _later(site, seen),
    }
    if seen.state in (AttemptState.QUEUED, AttemptState.RUNNING):
        return _live(request, site, visitor, seen, told)
    return _over(request, site, visitor, seen, told)


@router.post("/attempts/{attempt_id}/cancel")
def end(site: Here, visitor: SignedIn, seen: AttemptSeen) -> Response:
    """End it: at once where it waits, within seconds where it runs."""
    text, kind = _CANCELLED[cancel(site.store, seen.id, actor_id=visitor.account.id)]
    return flash.send_on(f"/attempts/{seen.id}", site.secret, text, kind=kind)


def _live(
    request: Request, site: Site, visitor: Visitor, seen: AttemptFacts, told: dict[str, Any]
) -> Response:
    source = source_of(site.store, seen.id)
    waits = seen.state is AttemptState.QUEUED
    queue = queue_state(site.store) if waits else None
    return site.render(
        request,
        "attempt_live.html.j2",
        visitor=visitor,
        picture=picture(events_of(site.store, seen.id, limit=_EVENTS)),
        place=places(site.store).get(seen.id) if waits else None,
        paused=queue.pauses if queue else (),
        nobody_works=queue is not None and not queue.workers,
        found=None if source is None else look_at(source),
        problem="",
        **told,
    )


def _over(
    request: Request, site: Site, visitor: Visitor, seen: AttemptFacts, told: dict[str, Any]
) -> Response:
    hidden, teaches = told["hidden_until"] is not None, visitor.teaches(seen.course_id)
    judged = seen.state is AttemptState.JUDGED
    report = None if hidden or not judged else _report(site, seen, staff=teaches)
    overrides = () if hidden else reviews.overrides_of(site.store, seen.id)
    return site.render(
        request,
        "attempt.html.j2",
        visitor=visitor,
        headers={"Content-Security-Policy": _REPORT_CSP} if report else None,
        report=report,
        in_force=next((one for one in overrides if one.withdrawn_at is None), None),
        overrides=overrides,
        comments=() if hidden else reviews.comments_of(site.store, seen.id),
        # The position of a file is what lines of the report's listing are named after.
        file_numbers=_file_numbers(site, seen),
        files=() if hidden else shown_files(site, seen, staff=teaches),
        source=source_of(site.store, seen.id),
        **told,
    )


def _report(site: Site, seen: AttemptFacts, *, staff: bool) -> StoredReport | None:
    there = {one.name: one.digest for one in files_of(site.store, seen.id)}
    names = (stored_report.STAFF_REPORT, stored_report.REPORT) if staff else (stored_report.REPORT,)
    digest = next((there[name] for name in names if name in there), None)
    if digest is None:
        return None
    origin = attempt(site.store, seen.cached_from) if seen.cached_from is not None else None
    try:
        data = site.files.get(digest)
    except InfraError:
        # The page says that the report cannot be read; verdict and points are in the database.
        return None
    return stored_report.read(data, old=origin.submission if origin else "", new=seen.submission)


def _later(site: Site, seen: AttemptFacts) -> AttemptFacts | None:
    """The judgement that holds instead of this one: the last regrade that was put in force, if it is another."""
    wanted = Filter(course_task_id=seen.course_task_id, person_id=seen.person_id, lane=Lane.REGRADE)
    root = seen.regrade_of or seen.id
    for one in attempts(site.store, wanted, limit=_REGRADES):
        if one.regrade_of == root and one.counts and one.state is AttemptState.JUDGED:
            return one if one.id > seen.id else None
    return None


def _file_numbers(site: Site, seen: AttemptFacts) -> dict[str, int]:
    source = source_of(site.store, seen.id)
    return {} if source is None else {file.path: number for number, file in enumerate(source.files)}
