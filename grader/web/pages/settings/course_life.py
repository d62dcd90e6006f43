"""From a draft to the archive: publishing a course, putting it away to be read only, and taking it out again."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.store.courses import course_life
from grader.translation import gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.staff.course_request import CourseRequestDep
from grader.web.staff.form import FormDep

router = APIRouter()


@router.post("/courses/{course_id}/publish")
def publish(request: CourseRequestDep) -> Response:
    """Let the people of a draft see it."""
    if not course_life.publish_course(request.service.store, request.course.id, actor_id=request.actor):
        return request.redirect("settings", gettext("The course was published before."), kind="note")
    return request.redirect(
        "settings",
        gettext("The course is published: its people see it now. Tasks that are drafts stay hidden."),
    )


@router.post("/courses/{course_id}/archive")
def archive(request: CourseRequestDep, form: FormDep) -> Response:
    """Let the course be read only."""
    if not request.course.archived and not is_confirmed(form):
        question = Question(
            gettext("Archive “{title}”?").format(title=request.course.title),
            gettext(
                "It leaves the list of current courses, and can be read only: nothing is handed in, graded or changed, "
                "by nobody. What waits is judged to its end, and certificates can still be had. You can take it out of "
                "the archive again."
            ),
            gettext("Archive it"),
            f"{request.at}/settings",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    course_life.archive_course(request.service.store, request.course.id, actor_id=request.actor)
    return request.redirect("settings", gettext("The course is archived: everything in it can be read."))


@router.post("/courses/{course_id}/restore")
def restore(request: CourseRequestDep) -> Response:
    """Take the course out of the archive."""
    if not course_life.restore_course(request.service.store, request.course.id, actor_id=request.actor):
        return request.redirect("settings", gettext("The course is not archived."), kind="note")
    return request.redirect(
        "settings", gettext("The course is out of the archive, with its dates as they were.")
    )
