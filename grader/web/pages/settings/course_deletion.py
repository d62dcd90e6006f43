"""Deleting an archived course, for administrators: what goes, what stays, and its short name typed first."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses.course_deletion import course_contents, delete_course
from grader.store.courses.courses import CourseFacts, course
from grader.translation import counted, gettext
from grader.web import flash
from grader.web.security.access import Admin, Id, Visitor, not_found
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()


@router.get("/admin/courses/{course_id}/delete")
def show(request: Request, service: ServiceDep, visitor: Admin, course_id: Id) -> HTMLResponse:
    """What would go."""
    return _page(request, service, visitor, _found(service, course_id), SubmittedForm({}, {}))


@router.post("/admin/courses/{course_id}/delete")
def delete(request: Request, service: ServiceDep, visitor: Admin, course_id: Id, form: FormDep) -> Response:
    """Delete it, if its short name was typed."""
    found = _found(service, course_id)
    if form.text("confirm") != found.name:
        form.errors["confirm"] = gettext("Type {name} to confirm.").format(name=found.name)
        return _page(request, service, visitor, found, form, 422)
    try:
        gone = delete_course(service.store, service.files, course_id, actor_id=visitor.account.id)
    except UsageError as error:
        form.errors["confirm"] = f"{error}"
        return _page(request, service, visitor, found, form, 422)
    return flash.redirect(
        "/admin/courses",
        service.secret,
        counted(
            "{title} is deleted, with %(num)s attempt. Nothing brings it back.",
            "{title} is deleted, with %(num)s attempts. Nothing brings it back.",
            gone.num_attempts,
        ).format(title=found.title),
    )


def _found(service: WebService, course_id: int) -> CourseFacts:
    found = course(service.store, course_id)
    if found is None:
        raise not_found()
    return found


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    found: CourseFacts,
    form: SubmittedForm,
    status_code: int = 200,
) -> HTMLResponse:
    return service.render(
        request,
        "staff/course_deletion.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=found,
        contents=course_contents(service.store, found.id),
        form=form,
    )
