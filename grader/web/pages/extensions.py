"""Moved due dates: for one learner, or for everybody who takes part now."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.enrolments import Participant, extend, extensions_of, participants, retract_extension
from grader.store.tables.person import Role
from grader.web.staff.sent import Sent, SentForm
from grader.web.staff.taught import Taught, TaughtHere

router = APIRouter()


@router.get("/courses/{course_id}/extensions")
def show(here: TaughtHere, task: str = "", person: str = "") -> HTMLResponse:
    """All moved dates, and the form for another one."""
    return _page(here, Sent({"task": [task], "person": [person]}, {}))


@router.post("/courses/{course_id}/extensions")
def add(here: TaughtHere, form: SentForm) -> Response:
    """Move a task's due date."""
    tasks = {str(one.id): one for one in here.tasks()}
    people = {str(one.person_id): one for one in _learners(here)}
    wanted, whom = form.text("task"), form.text("person")
    due = form.time("due_at", here.course.zone)
    if due is None and "due_at" not in form.errors:
        form.errors["due_at"] = "Until when?"
    if wanted not in tasks:
        form.errors["task"] = "Choose a task."
    if whom and whom not in people:
        form.errors["person"] = "Choose somebody, or everybody."
    if not form.good or due is None:
        return _page(here, form, 422)
    try:
        number = extend(
            here.site.store,
            tasks[wanted].id,
            due,
            person_id=people[whom].person_id if whom else None,
            reason=form.text("reason", most=500),
            actor_id=here.actor,
        )
    except UsageError as error:
        form.errors["task"] = str(error)
        return _page(here, form, 422)
    who = people[whom].name if whom else f"{number} learners (nobody loses a later date)"
    return here.send_on("extensions", f"Moved for {who}. What they handed in since is not late any more.")


@router.post("/courses/{course_id}/extensions/retract")
def retract(here: TaughtHere, form: SentForm) -> Response:
    """Let the task's own date hold again for one learner."""
    task, person = form.ids("task"), form.ids("person")
    if len(task) == 1 and len(person) == 1:
        one = here.task(task[0])
        retract_extension(here.site.store, one.id, person[0], actor_id=here.actor)
    return here.send_on("extensions", "The task’s own date holds for them again.")


def _page(here: Taught, form: Sent, status_code: int = 200) -> HTMLResponse:
    tasks = here.tasks()
    return here.page(
        "extensions.html.j2",
        {
            "tasks": [(one.id, one.terms.title) for one in tasks],
            "titles": {one.id: one.terms.title for one in tasks},
            "people": [
                ("", "Everybody who takes part now"),
                *((one.person_id, one.name) for one in _learners(here)),
            ],
            "found": extensions_of(here.site.store, here.course.id),
            "form": form,
        },
        status_code,
    )


def _learners(here: Taught) -> list[Participant]:
    return [one for one in participants(here.site.store, here.course.id) if one.role is Role.LEARNER]
