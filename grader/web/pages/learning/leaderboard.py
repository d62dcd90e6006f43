"""A task's leaderboard, and under which name one wants to stand on it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import UsageError
from grader.store.courses.grading_rules import TaskGrading, task_gradings
from grader.store.grading.gradebook import feedback_opens_at
from grader.store.grading.leaderboard import leaderboard_name, set_leaderboard_name
from grader.translation import gettext
from grader.web import flash
from grader.web.learner.leaderboard import leaderboard
from grader.web.security.access import SignedIn, TaskInCourse, VisibleCourseTask, Visitor
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.get("/courses/{course_id}/tasks/{course_task_id}/leaderboard")
def show(request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask) -> Response:
    """Who did best, of those who want to be seen."""
    name = leaderboard_name(service.store, found.course.id, visitor.account.id)
    return _page(request, service, visitor, found, SubmittedForm({"name": [name or ""]}, {}))


@router.post("/courses/{course_id}/tasks/{course_task_id}/leaderboard")
def choose_name(
    request: Request, service: ServiceDep, visitor: SignedIn, found: VisibleCourseTask, form: FormDep
) -> Response:
    """Be seen under a name on all leaderboards of the course, or (none) on none."""
    name = form.text("name")
    try:
        set_leaderboard_name(service.store, found.course.id, visitor.account.id, name)
    except UsageError as error:
        form.errors["name"] = gettext("Nothing was saved: {problem}.").format(problem=problem_text(error))
        return _page(request, service, visitor, found, form, 422)
    place = f"/courses/{found.course.id}/tasks/{found.task.id}/leaderboard"
    done = (
        gettext("You are seen as {name}.").format(name=name)
        if name
        else gettext("You are on no leaderboard of this course.")
    )
    return flash.redirect(place, service.secret, done)


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    found: TaskInCourse,
    form: SubmittedForm,
    status_code: int = 200,
) -> Response:
    grading = task_gradings(service.store, found.course.id).get(found.task.id, TaskGrading())
    if grading.leaderboard is None:
        place = f"/courses/{found.course.id}/tasks/{found.task.id}"
        return flash.redirect(place, service.secret, gettext("This task has no leaderboard."), kind="note")
    hidden = feedback_opens_at(service.store, found.task.id, visitor.account.id)
    hidden = None if visitor.teaches(found.course.id) else hidden
    board = leaderboard(service, found.task, grading, visitor.account.id) if hidden is None else None
    return service.render(
        request,
        "leaderboard.html.j2",
        visitor=visitor,
        status_code=status_code,
        course=found.course,
        task=found.task,
        board=board,
        hidden_until=hidden,
        form=form,
        learns=not visitor.teaches(found.course.id),
    )
