"""Files of an attempt: the report as the one file that it is, and what else its reader may have."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.web import stored_report
from grader.web.attempt_files import file_of, packed_source
from grader.web.security.access import SignedIn, VisibleAttempt, Visitor, not_found
from grader.web.security.attempt_feedback import hidden_until
from grader.web.security.headers import REPORT_CSP
from grader.web.service import ServiceDep, WebService

router = APIRouter()


@router.get("/attempts/{attempt_id}/report")
def report(service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt) -> Response:
    """The whole report, to be read alone or printed."""
    names = (stored_report.STAFF_REPORT, stored_report.REPORT)
    for name in names if visitor.reads(facts.course_id) else names[1:]:
        found = _permitted_file(service, visitor, facts, name)
        if found is not None:
            return Response(found[0], media_type="text/html", headers={"Content-Security-Policy": REPORT_CSP})
    raise not_found()


@router.get("/attempts/{attempt_id}/source")
def source(service: ServiceDep, facts: VisibleAttempt) -> Response:
    """What was handed in, to be kept: never shown as a page."""
    found = packed_source(service, facts)
    if found is None:
        raise not_found()
    return _attachment(*found)


@router.get("/attempts/{attempt_id}/files/{name}")
def file(service: ServiceDep, visitor: SignedIn, facts: VisibleAttempt, name: str) -> Response:
    """One file to be kept."""
    found = _permitted_file(service, visitor, facts, name)
    if found is None:
        raise not_found()
    return _attachment(found[0], name, found[1])


def _permitted_file(
    service: WebService, visitor: Visitor, facts: VisibleAttempt, name: str
) -> tuple[bytes, str] | None:
    if hidden_until(service, visitor, facts) is not None:
        return None
    return file_of(service, facts, name, staff=visitor.reads(facts.course_id))


def _attachment(content: bytes, name: str, media_type: str) -> Response:
    # Names are ours or were checked when they were uploaded; quoted all the same.
    plain = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "_" for letter in name
    )
    return Response(
        content,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{plain}"'},
    )
