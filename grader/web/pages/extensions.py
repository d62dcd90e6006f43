"""Moved due dates: for one learner, or for everybody who takes part now."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.enrolments import Participant, extend, extensions_of, participants, retract_extension
from grader.store.tables.person import Role
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()


@router.get("/courses/{course_id}/extensions")
def show(request: CourseRequestDep, task: str = "", person: str = "") -> HTMLResponse:
    """All moved dates, and the form for another one."""
    return _page(request, SubmittedForm({"task": [task], "person": [person]}, {}))


@router.post("/courses/{course_id}/extensions")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """Move a task's due date."""
    tasks = {str(one.id): one for one in request.tasks()}
    people = {str(one.person_id): one for one in _learners(request)}
    wanted, whom = form.text("task"), form.text("person")
    due = form.time("due_at", request.course.zone)
    if due is None and "due_at" not in form.errors:
        form.errors["due_at"] = "Until when?"
    if wanted not in tasks:
        form.errors["task"] = "Choose a task."
    if whom and whom not in people:
        form.errors["person"] = "Choose somebody, or everybody."
    if not form.good or due is None:
        return _page(request, form, 422)
    try:
        number = extend(
            request.service.store,
            tasks[wanted].id,
            due,
            person_id=people[whom].person_id if whom else None,
            reason=form.text("reason", most=500),
            actor_id=request.actor,
        )
    except UsageError as error:
        form.errors["task"] = str(error)
        return _page(request, form, 422)
    who = people[whom].name if whom else f"{number} learners (nobody loses a later date)"
    return request.redirect("extensions", f"Moved for {who}. What they handed in since is not late any more.")


@router.post("/courses/{course_id}/extensions/retract")
def retract(request: CourseRequestDep, form: FormDep) -> Response:
    """Let the task's own date hold again for one learner."""
    task, person = form.ids("task"), form.ids("person")
    if len(task) == 1 and len(person) == 1:
        one = request.task(task[0])
        retract_extension(request.service.store, one.id, person[0], actor_id=request.actor)
    return request.redirect("extensions", "The task’s own date holds for them again.")


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    tasks = request.tasks()
    return request.page(
        "extensions.html.j2",
        {
            "tasks": [(one.id, one.terms.title) for one in tasks],
            "titles": {one.id: one.terms.title for one in tasks},
            "people": [
                ("", "Everybody who takes part now"),
                *((one.person_id, one.name) for one in _learners(request)),
            ],
            "found": extensions_of(request.service.store, request.course.id),
            "form": form,
        },
        status_code,
    )


def _learners(request: CourseRequest) -> list[Participant]:
    return [one for one in participants(request.service.store, request.course.id) if one.role is Role.LEARNER]
