"""Bringing a course's task to another version: what differs, what it would change, and only then what is in force."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from grader.errors import UsageError
from grader.model.task import Task
from grader.store.attempts.class_submissions import judged_by_another_version
from grader.store.courses.courses import AssignedTask
from grader.store.courses.exam_freeze import ExamRunsError
from grader.store.courses.task_updates import apply_update, update_to
from grader.store.courses.task_versions import keep_version
from grader.store.grading import regrades
from grader.translation import gettext
from grader.web import flash
from grader.web.confirmation import is_confirmed
from grader.web.security.access import Id
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.exam_question import ask_during_exam
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.task_versions import available_version, version_changes

router = APIRouter()


@router.get("/courses/{course_id}/settings/{course_task_id}/update")
def show(request: CourseRequestDep, course_task_id: Id) -> Response:
    """How the version that is available differs, and the two ways to take it over. Changes nothing."""
    task = request.task(course_task_id)
    available = available_version(request.service, request.course, task)
    if available.task is None or not available.newer:
        return _back(request, course_task_id, available.problem or gettext("There is no other version."))
    return request.page(
        "task_update.html.j2",
        {
            "task": task,
            "available": available,
            "changes": version_changes(request.service, task, available.task),
            "num_counting": len(
                judged_by_another_version(request.service.store, task.id, available.task.version)
            ),
        },
    )


@router.post("/courses/{course_id}/settings/{course_task_id}/update")
def update(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Judge what counts by the new version first (`how=try`), or set it at once for what comes (`how=now`)."""
    task = request.task(course_task_id)
    available = available_version(request.service, request.course, task)
    if available.task is None:
        told = gettext("It cannot be read: {problem}").format(problem=available.problem)
        return _back(request, task.id, told)
    if form.text("version") != available.task.version:
        told = gettext("It has changed once more since you looked. Look again.")
        return _back(request, task.id, told, again=True)
    return _take_over(request, task, available.task, form)


def _take_over(request: CourseRequest, task: AssignedTask, found: Task, form: SubmittedForm) -> Response:
    store = request.service.store
    try:
        wanted = update_to(task, found)
    except UsageError as error:
        return _back(request, task.id, str(error))
    keep_version(store, request.service.files, found)
    if form.text("how") == "try":
        counting = judged_by_another_version(store, task.id, found.version)
        try:
            batch = regrades.queue_new_runs(
                store, counting[: regrades.MOST_ATTEMPTS], actor_id=request.actor, trial=wanted
            )
        except UsageError:
            told = gettext("Nothing counts in this task yet: take the version over.")
            return _back(request, task.id, told, again=True)
        return flash.redirect(
            f"/regrades/{batch}",
            request.service.secret,
            gettext(
                "Queued. The task stays at its version, and nothing counts, before you have looked and applied it."
            ),
        )
    try:
        done = apply_update(store, wanted, during_exam=is_confirmed(form), actor_id=request.actor)
    except ExamRunsError as error:
        return ask_during_exam(request, task, error, form)
    if not done:
        told = gettext("Somebody else has brought it to another version meanwhile.")
        return _back(request, task.id, told)
    return request.redirect(
        f"settings/{task.id}",
        gettext("Updated: what is handed in from now on is judged by the new version."),
    )


def _back(request: CourseRequest, course_task_id: int, text: str, *, again: bool = False) -> Response:
    place = f"settings/{course_task_id}/update" if again else f"settings/{course_task_id}"
    return request.redirect(place, text, kind="problem")
