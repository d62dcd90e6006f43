"""Taking grades out of a course: tables, JSON, files for other platforms, JUnit, and all certificates in one pile."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.class_submissions import counted_attempts
from grader.store.courses.class_register import RegisteredLearner, register_of
from grader.store.courses.courses import AssignedTask
from grader.store.grading import certificates
from grader.store.grading.gradebook import Gradebook, gradebook
from grader.store.grading.pseudonyms import anonymous_tasks
from grader.web.security.access import Id
from grader.web.staff import exports
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.platform_gradebooks import canvas_csv, moodle_csv
from grader.web.staff.qr_codes import qr_svg

router = APIRouter()
_MOST_ATTEMPTS = 100_000
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@router.get("/courses/{course_id}/exports")
def show(request: CourseRequestDep) -> HTMLResponse:
    """What can be taken out."""
    earned = certificates.earned(request.service.store, request.course.id)
    known = certificates.certificates_of(request.service.store, request.course.id)
    holders = {one.person_id for one in known}
    return request.page(
        "exports.html.j2",
        {
            "tasks": request.tasks(),
            "num_anonymous": len(anonymous_tasks(request.service.store, request.course.id)),
            "num_issued": sum(one.revoked_at is None for one in known),
            "num_known": len(known),
            "num_new": sum(one not in holders for one in earned),
        },
    )


@router.get("/courses/{course_id}/exports/gradebook.csv")
def gradebook_csv(request: CourseRequestDep, anonymous: bool = False) -> Response:
    """The gradebook for a spreadsheet; `anonymous`: of the tasks that are graded so."""
    book = gradebook(request.service.store, request.course.id, anonymous=anonymous)
    return request.download("gradebook.csv", "text/csv; charset=utf-8", exports.gradebook_csv(book))


@router.get("/courses/{course_id}/exports/gradebook.json")
def gradebook_json(request: CourseRequestDep, anonymous: bool = False) -> Response:
    """The gradebook for programs; `anonymous`: of the tasks that are graded so."""
    book = gradebook(request.service.store, request.course.id, anonymous=anonymous)
    text = exports.gradebook_json(request.course, book)
    return request.download("gradebook.json", "application/json", text.encode())


@router.get("/courses/{course_id}/exports/canvas.csv")
def canvas(request: CourseRequestDep) -> Response:
    """The gradebook as Canvas imports it."""
    return _for_platform(request, "canvas.csv", canvas_csv)


@router.get("/courses/{course_id}/exports/moodle.csv")
def moodle(request: CourseRequestDep) -> Response:
    """The gradebook as Moodle imports it."""
    return _for_platform(request, "moodle.csv", moodle_csv)


@router.get("/courses/{course_id}/exports/attempts.csv")
def attempts_csv(request: CourseRequestDep) -> Response:
    """Every attempt for a spreadsheet."""
    found = attempts(request.service.store, AttemptFilter(course_id=request.course.id), limit=_MOST_ATTEMPTS)
    results = results_of(request.service.store, [one.id for one in found])
    return request.download("attempts.csv", "text/csv; charset=utf-8", exports.attempts_csv(found, results))


@router.get("/courses/{course_id}/exports/{course_task_id}/gradescope.zip")
def gradescope(request: CourseRequestDep, course_task_id: Id) -> Response:
    """A task's `results.json` per learner."""
    task = request.task(course_task_id)
    data = exports.gradescope_zip(counted_attempts(request.service.store, task.id))
    return request.download(f"{_file_stem(task)}-gradescope.zip", "application/zip", data)


@router.get("/courses/{course_id}/exports/{course_task_id}/junit.xml")
def junit(request: CourseRequestDep, course_task_id: Id) -> Response:
    """A task's grades as JUnit, a suite per learner."""
    task = request.task(course_task_id)
    data = exports.junit(task.task, counted_attempts(request.service.store, task.id))
    return request.download(f"{_file_stem(task)}-junit.xml", "application/xml", data)


@router.get("/courses/{course_id}/exports/certificates")
def pile(request: CourseRequestDep) -> HTMLResponse:
    """All certificates that hold, one to a page of paper."""
    site = request.service.site(request.http)
    accepted = _accepted(request)
    found = [
        (one, f"{site}/certificates/{one.public_id}", accepted.get(one.person_id, ()))
        for one in certificates.certificates_of(request.service.store, request.course.id)
        if one.revoked_at is None
    ]
    return request.page("certificates.html.j2", {"pile": found, "qr_svg": qr_svg})


@router.post("/courses/{course_id}/exports/certificates")
def issue(request: CourseRequestDep) -> Response:
    """Issue the certificates of everybody who has earned one."""
    for person_id in certificates.earned(request.service.store, request.course.id):
        certificates.issue(request.service.store, request.course.id, person_id)
    return request.redirect("exports/certificates")


def _accepted(request: CourseRequest) -> dict[int, list[tuple[str, AttemptResult]]]:
    """The tasks that each learner has accepted and what each counts as, by person."""
    book = gradebook(request.service.store, request.course.id)
    return {
        row.person_id: [
            (task.terms.title, cell.result)
            for task in book.tasks
            if (cell := row.cells.get(task.id)) is not None
            and cell.result is not None
            and cell.result.verdict is Verdict.ACCEPTED
        ]
        for row in book.rows
    }


def _for_platform(
    request: CourseRequest, name: str, write: Callable[[Gradebook, Sequence[RegisteredLearner]], bytes]
) -> Response:
    store, course_id = request.service.store, request.course.id
    data = write(gradebook(store, course_id), register_of(store, course_id))
    return request.download(name, "text/csv; charset=utf-8", data)


def _file_stem(task: AssignedTask) -> str:
    return _PLAIN.sub("_", f"{task.task}-{task.profile}")
