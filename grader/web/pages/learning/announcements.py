"""What a course's staff tells all who take part: written, pinned, removed and read here; the course's page shows it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import UsageError
from grader.store.courses import announcements
from grader.translation import gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.mail_state import mail_problem_text
from grader.web.security.access import Id, SignedIn, VisibleCourse, Visitor, not_found
from grader.web.service import ServiceDep, WebService
from grader.web.staff.course_request import CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()
_PLACE = "announcements"
_HERE = "/courses/{course_id}/announcements"


@router.get(_HERE)
def show(request: Request, service: ServiceDep, visitor: SignedIn, course: VisibleCourse) -> Response:
    """All of them; for staff with the form for another one."""
    return _page(request, service, visitor, course, SubmittedForm({}, {}))


@router.post(_HERE)
def write(request: CourseRequestDep, form: FormDep) -> Response:
    """Another one."""
    title = form.needed("title", gettext("A title"))
    text = form.text("text", most=announcements.MOST_TEXT + 1)
    if not text:
        form.errors["text"] = gettext("{what} is needed.").format(what=gettext("A text"))
    if form.good:
        try:
            announcements.announce(
                request.service.store,
                request.course.id,
                title,
                text,
                pinned=form.ticked("pinned"),
                author_id=request.actor,
            )
            return request.redirect(_PLACE, gettext("It stands on the course's page now."))
        except UsageError as error:
            form.errors["title" if "title" in str(error) else "text"] = f"{error}."
    return _page(request.http, request.service, request.visitor, request.course, form, 422)


@router.post(_HERE + "/{announcement_id}/pin")
def pin(request: CourseRequestDep, form: FormDep, announcement_id: Id) -> Response:
    """Keep one above the others, or no longer."""
    pinned = form.ticked("pinned")
    store, course_id = request.service.store, request.course.id
    if not announcements.pin(store, course_id, announcement_id, pinned, actor_id=request.actor):
        raise not_found()
    done = gettext("It stays at the top.") if pinned else gettext("It stands where its time puts it.")
    return request.redirect(_PLACE, done)


@router.post(_HERE + "/{announcement_id}/remove")
def remove(request: CourseRequestDep, form: FormDep, announcement_id: Id) -> Response:
    """Take one away."""
    store, course_id = request.service.store, request.course.id
    named = [one for one in announcements.announcements_of(store, course_id) if one.id == announcement_id]
    if not named:
        raise not_found()
    if not is_confirmed(form):
        text = gettext(
            "“{title}” is gone then, for everybody. What was mailed already stays in people's mailboxes."
        ).format(title=named[0].title)
        question = Question(
            gettext("Remove this announcement?"), text, gettext("Remove it"), f"{request.at}/{_PLACE}"
        )
        return ask_first(request.service, request.http, request.visitor, question)
    announcements.remove_announcement(store, course_id, announcement_id, actor_id=request.actor)
    return request.redirect(_PLACE, gettext("It is removed."))


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    course: VisibleCourse,
    form: SubmittedForm,
    status_code: int = 200,
) -> Response:
    return service.render(
        request,
        "announcements.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=course,
        teaches=visitor.teaches(course.id),
        told=announcements.announcements_of(service.store, course.id),
        form=form,
        mail_problem=mail_problem_text(service.store),
    )
