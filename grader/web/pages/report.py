"""Files of an attempt: the report as the one file that it is, and what else its reader may have."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.web import stored_report
from grader.web.attempt_files import file_of, packed_source
from grader.web.doors.headers import REPORT_CSP
from grader.web.site import Here, Site
from grader.web.visit import AttemptSeen, SignedIn, Visitor, hidden_until, not_found

router = APIRouter()


@router.get("/attempts/{attempt_id}/report")
def report(site: Here, visitor: SignedIn, seen: AttemptSeen) -> Response:
    """The whole report, to be read alone or printed."""
    names = (stored_report.STAFF_REPORT, stored_report.REPORT)
    for name in names if visitor.teaches(seen.course_id) else names[1:]:
        found = _allowed(site, visitor, seen, name)
        if found is not None:
            return Response(found[0], media_type="text/html", headers={"Content-Security-Policy": REPORT_CSP})
    raise not_found()


@router.get("/attempts/{attempt_id}/source")
def source(site: Here, seen: AttemptSeen) -> Response:
    """What was handed in, to be kept: never shown as a page."""
    found = packed_source(site, seen)
    if found is None:
        raise not_found()
    return _attached(*found)


@router.get("/attempts/{attempt_id}/files/{name}")
def file(site: Here, visitor: SignedIn, seen: AttemptSeen, name: str) -> Response:
    """One file to be kept."""
    found = _allowed(site, visitor, seen, name)
    if found is None:
        raise not_found()
    return _attached(found[0], name, found[1])


def _allowed(site: Site, visitor: Visitor, seen: AttemptSeen, name: str) -> tuple[bytes, str] | None:
    if hidden_until(site, visitor, seen) is not None:
        return None
    return file_of(site, seen, name, staff=visitor.teaches(seen.course_id))


def _attached(content: bytes, name: str, media_type: str) -> Response:
    # Names are ours or were checked when they were uploaded; quoted all the same.
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name
    )
    return Response(
        content,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{plain}"'},
    )
