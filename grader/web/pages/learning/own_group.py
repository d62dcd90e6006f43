"""One's own group in a course: who is in it; forming, joining and leaving one where learners may do that."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import learner_groups
from grader.store.courses.courses import CourseFacts
from grader.store.courses.grading_rules import grading_rules
from grader.translation import gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import SignedIn, VisibleCourse, Visitor
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.get("/courses/{course_id}/group")
def show(request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse) -> HTMLResponse:
    """The group, or how to come into one."""
    return _page(request, service, visitor, course, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/group")
def form_one(
    request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse, form: FormDep
) -> Response:
    """Form a group and be its first member."""
    name, person_id = form.needed("name", gettext("A name")), visitor.account.id
    if form.good:
        try:
            learner_groups.form_group(service.store, course.id, name, person_id=person_id)
        except UsageError as error:
            form.errors["name"] = problem_text(error)
        else:
            done = gettext("{group} is formed. Give its code to those who shall join.").format(group=name)
            return flash.redirect(f"/courses/{course.id}/group", service.secret, done)
    return _page(request, service, visitor, course, form, 422)


@router.post("/courses/{course_id}/group/join")
def join(
    request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse, form: FormDep
) -> Response:
    """Join a group by its code."""
    code = form.needed("code", gettext("A code"))
    if form.good:
        try:
            name = learner_groups.join_group(service.store, course.id, code, person_id=visitor.account.id)
        except UsageError as error:
            form.errors["code"] = problem_text(error)
        else:
            done = gettext("You are in {group}. What it hands in from now on counts for you.").format(
                group=name
            )
            return flash.redirect(f"/courses/{course.id}/group", service.secret, done)
    return _page(request, service, visitor, course, form, 422)


@router.post("/courses/{course_id}/group/leave")
def leave(
    request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse, form: FormDep
) -> Response:
    """Leave one's group; asked first."""
    place = f"/courses/{course.id}/group"
    if not is_confirmed(form):
        question = Question(
            gettext("Leave your group?"),
            gettext("What it hands in afterwards does not count for you. What it handed in until now does."),
            gettext("Leave it"),
            place,
        )
        return ask_first(service, request, visitor, question)
    try:
        learner_groups.leave_group(service.store, course.id, person_id=visitor.account.id)
    except UsageError as error:
        text = gettext("Nothing was changed: {problem}.").format(problem=problem_text(error))
        return flash.redirect(place, service.secret, text, kind="problem")
    return flash.redirect(place, service.secret, gettext("You hand in alone now."))


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    course: CourseFacts,
    form: SubmittedForm,
    status_code: int = 200,
) -> HTMLResponse:
    return service.render(
        request,
        "group.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=course,
        group=learner_groups.group_of(service.store, course.id, visitor.account.id),
        rules=grading_rules(service.store, course.id),
        form=form,
    )
