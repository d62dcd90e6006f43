"""Addresses that a form was sent to, opened again from the address bar: on to the page that has the form.

A form that comes back with a mistake, or a question, stands under the address that it was sent to.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse

from grader.web.security.access import Admin, Id, StaffAttempt, VisibleAttempt, VisibleCourse
from grader.web.staff.course_request import CourseRequestDep

router = APIRouter(include_in_schema=False)


@router.get("/attempts/{attempt_id}/cancel")
@router.get("/attempts/{attempt_id}/regrade-requests")
def cancel(facts: VisibleAttempt) -> RedirectResponse:
    """The attempt."""
    return _to(f"/attempts/{facts.id}")


@router.get("/attempts/{attempt_id}/override")
@router.get("/attempts/{attempt_id}/decide")
@router.get("/attempts/{attempt_id}/comment")
def review(facts: StaffAttempt) -> RedirectResponse:
    """The review page."""
    return _to(f"/attempts/{facts.id}/review")


@router.get("/attempts/{attempt_id}/regrade-requests/{request_id}")
def request_about(facts: StaffAttempt, request_id: Id) -> RedirectResponse:
    """The review page, which has the request."""
    return _to(f"/attempts/{facts.id}/review#request-{request_id}")


@router.get("/courses/{course_id}/groups/list")
@router.get("/courses/{course_id}/groups/{group_id}/dissolve")
def groups(request: CourseRequestDep) -> RedirectResponse:
    """The groups."""
    return _to(f"{request.at}/groups")


@router.get("/courses/{course_id}/group/join")
@router.get("/courses/{course_id}/group/leave")
def own_group(course: VisibleCourse) -> RedirectResponse:
    """One's own group."""
    return _to(f"/courses/{course.id}/group")


@router.get("/courses/{course_id}/grading/{course_task_id}")
def task_grading(request: CourseRequestDep, course_task_id: Id) -> RedirectResponse:
    """The rules."""
    return _to(f"{request.at}/grading#task-{request.task(course_task_id).id}")


@router.get("/courses/{course_id}/people/import/take-over")
def take_over(request: CourseRequestDep) -> RedirectResponse:
    """The people: passwords are not shown twice, and can be given anew there."""
    return _to(f"{request.at}/people")


@router.get("/courses/{course_id}/people/{person_id}/role")
@router.get("/courses/{course_id}/people/{person_id}/password")
@router.get("/courses/{course_id}/people/{person_id}/erase")
def person(request: CourseRequestDep, person_id: Id) -> RedirectResponse:
    """The person's page."""
    return _to(f"{request.at}/people/{person_id}")


@router.get("/courses/{course_id}/settings/{course_task_id}/regrade")
def task(request: CourseRequestDep, course_task_id: Id) -> RedirectResponse:
    """The task's settings."""
    return _to(f"{request.at}/settings/{request.task(course_task_id).id}")


@router.get("/courses/{course_id}/certificates/{person_id}/revoke")
def certificate(request: CourseRequestDep, person_id: Id) -> RedirectResponse:
    """The certificate's page."""
    return _to(f"{request.at}/certificates/{person_id}")


@router.get("/admin/people/{person_id}/role")
@router.get("/admin/people/{person_id}/password")
@router.get("/admin/people/{person_id}/erase")
def account(_visitor: Admin, person_id: Id) -> RedirectResponse:
    """The account's page."""
    return _to(f"/admin/people/{person_id}")


def _to(place: str) -> RedirectResponse:
    return RedirectResponse(place, 303)
