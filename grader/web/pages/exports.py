"""Taking grades out of a course: CSV, JSON, Gradescope's results.json, JUnit, and all certificates in one pile."""

from __future__ import annotations

import re

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.model.grade import Verdict
from grader.store import certificates
from grader.store.attempts import Filter, attempts
from grader.store.collection import counting
from grader.store.courses import SetTask
from grader.store.gradebook import gradebook
from grader.web.staff import exports
from grader.web.staff.qr import drawn
from grader.web.staff.taught import Taught, TaughtHere
from grader.web.visit import Id

router = APIRouter()
MOST_ATTEMPTS = 100_000
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@router.get("/courses/{course_id}/exports")
def show(here: TaughtHere) -> HTMLResponse:
    """What can be taken out."""
    earned = certificates.earned(here.site.store, here.course.id)
    issued = certificates.issued(here.site.store, here.course.id)
    holders = {one.person_id for one in issued}
    return here.page(
        "exports.html.j2",
        {
            "tasks": here.tasks(),
            "num_issued": len(issued),
            "num_new": sum(one not in holders for one in earned),
        },
    )


@router.get("/courses/{course_id}/exports/gradebook.csv")
def gradebook_csv(here: TaughtHere) -> Response:
    """The gradebook for a spreadsheet."""
    book = gradebook(here.site.store, here.course.id)
    return _download(here, "gradebook.csv", "text/csv; charset=utf-8", exports.gradebook_csv(book))


@router.get("/courses/{course_id}/exports/gradebook.json")
def gradebook_json(here: TaughtHere) -> Response:
    """The gradebook for programs."""
    text = exports.gradebook_json(here.course, gradebook(here.site.store, here.course.id))
    return _download(here, "gradebook.json", "application/json", text.encode())


@router.get("/courses/{course_id}/exports/attempts.csv")
def attempts_csv(here: TaughtHere) -> Response:
    """Every attempt for a spreadsheet."""
    found = attempts(here.site.store, Filter(course_id=here.course.id), limit=MOST_ATTEMPTS)
    return _download(here, "attempts.csv", "text/csv; charset=utf-8", exports.attempts_csv(found))


@router.get("/courses/{course_id}/exports/{course_task_id}/gradescope.zip")
def gradescope(here: TaughtHere, course_task_id: Id) -> Response:
    """A task's `results.json` per learner."""
    task = here.task(course_task_id)
    data = exports.gradescope_zip(counting(here.site.store, task.id))
    return _download(here, f"{_called(task)}-gradescope.zip", "application/zip", data)


@router.get("/courses/{course_id}/exports/{course_task_id}/junit.xml")
def junit(here: TaughtHere, course_task_id: Id) -> Response:
    """A task's grades as JUnit, a suite per learner."""
    task = here.task(course_task_id)
    data = exports.junit(task.task, counting(here.site.store, task.id))
    return _download(here, f"{_called(task)}-junit.xml", "application/xml", data)


@router.get("/courses/{course_id}/exports/certificates")
def pile(here: TaughtHere) -> HTMLResponse:
    """All certificates that were issued, one to a page of paper."""
    origin = here.site.origin(here.request)
    accepted = _accepted(here)
    found = [
        (one, f"{origin}/certificates/{one.public_id}", accepted.get(one.person_id, ()))
        for one in certificates.issued(here.site.store, here.course.id)
    ]
    return here.page("certificates.html.j2", {"pile": found, "drawn": drawn})


@router.post("/courses/{course_id}/exports/certificates")
def issue(here: TaughtHere) -> Response:
    """Issue the certificates of everybody who has earned one."""
    for person_id in certificates.earned(here.site.store, here.course.id):
        certificates.issue(here.site.store, here.course.id, person_id)
    return here.send_on("exports/certificates")


def _accepted(here: Taught) -> dict[int, tuple[SetTask, ...]]:
    """The tasks that each learner has accepted, by person."""
    book = gradebook(here.site.store, here.course.id)
    return {
        row.person_id: tuple(
            task
            for task in book.tasks
            if (cell := row.cells.get(task.id)) is not None and cell.verdict is Verdict.ACCEPTED
        )
        for row in book.rows
    }


def _called(task: SetTask) -> str:
    return _PLAIN.sub("_", f"{task.task}-{task.profile}")


def _download(here: Taught, name: str, media_type: str, data: bytes) -> Response:
    called = _PLAIN.sub("_", here.course.name)[:60]
    return Response(
        data,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{called}-{name}"'},
    )
