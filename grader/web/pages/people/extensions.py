"""More time and attempts: for one learner, for those ticked, or for everybody who takes part now."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses.enrolments import Participant, participants
from grader.store.courses.extensions import Extension, extend, extensions_of, retract_extension
from grader.store.tables.person import Role
from grader.translation import counted, gettext
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.extension_list import extensions_csv
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()
_MOST = 100_000


@router.get("/courses/{course_id}/extensions")
def show(request: CourseRequestDep, task: str = "", person: str = "") -> HTMLResponse:
    """All extensions, and the form for another one."""
    return _page(request, SubmittedForm({"task": [task], "person": [person]}, {}))


@router.get("/courses/{course_id}/extensions.csv")
def export(request: CourseRequestDep) -> Response:
    """All extensions, as they can be brought again."""
    tasks = {one.id: one for one in request.tasks()}
    found = extensions_of(request.service.store, request.course.id)
    return Response(
        extensions_csv(found, tasks, request.course.zone),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="extensions-{request.course.id}.csv"'},
    )


@router.post("/courses/{course_id}/extensions")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """Give a task's extension to those chosen."""
    tasks = {str(one.id): one for one in request.tasks()}
    people = {str(one.person_id): one for one in _learners(request)}
    wanted, whom = form.text("task"), [one for one in form.texts("person") if one]
    given = Extension(
        form.time("due_at", request.course.zone),
        form.whole("extra_total", least=0, most=_MOST),
        form.whole("extra_per_day", least=0, most=_MOST),
        form.whole("extra_minutes", least=0, most=_MOST),
        form.text("reason", most=500),
    )
    if form.good and not given.gives_anything:
        form.errors["due_at"] = gettext("Until when? Or write how many attempts more.")
    if wanted not in tasks:
        form.errors["task"] = gettext("Choose a task.")
    if any(one not in people for one in whom):
        form.errors["person"] = gettext("Choose learners, or everybody.")
    if not form.good:
        return _page(request, form, 422)
    chosen = [people[one] for one in dict.fromkeys(whom)]
    try:
        number = extend(
            request.service.store,
            tasks[wanted].id,
            given,
            person_ids=[one.person_id for one in chosen] or None,
            actor_id=request.actor,
        )
    except UsageError as error:
        form.errors["task"] = str(error)
        return _page(request, form, 422)
    if len(chosen) == 1:
        told = gettext("Extended for {name}. What they handed in since is not late any more.")
        return request.redirect("extensions", told.format(name=chosen[0].name))
    told = (
        counted(
            "Extended for %(num)s learner. What they handed in since is not late any more.",
            "Extended for %(num)s learners. What they handed in since is not late any more.",
            number,
        )
        if chosen
        else counted(
            "Extended for %(num)s learner (nobody loses a later date). What they handed in since is not late any more.",
            "Extended for %(num)s learners (nobody loses a later date). What they handed in since is not late any "
            "more.",
            number,
        )
    )
    return request.redirect("extensions", told)


@router.post("/courses/{course_id}/extensions/retract")
def retract(request: CourseRequestDep, form: FormDep) -> Response:
    """Let what everybody has hold again for one learner."""
    task, person = form.ids("task"), form.ids("person")
    if len(task) == 1 and len(person) == 1:
        one = request.task(task[0])
        retract_extension(request.service.store, one.id, person[0], actor_id=request.actor)
    return request.redirect("extensions", gettext("What everybody has holds for them again."))


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    tasks = request.tasks()
    return request.page(
        "extensions.html.j2",
        {
            "tasks": [(one.id, one.terms.title) for one in tasks],
            "titles": {one.id: one.terms.title for one in tasks},
            "exams": any(one.terms.exam_minutes for one in tasks),
            "people": _learners(request),
            "chosen": form.texts("person"),
            "found": extensions_of(request.service.store, request.course.id),
            "form": form,
        },
        status_code,
    )


def _learners(request: CourseRequest) -> list[Participant]:
    return [one for one in participants(request.service.store, request.course.id) if one.role is Role.LEARNER]
