"""A course's settings: its tasks in their order, closing it; a page per task with its terms and pinned version."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from grader.catalog.tasks.task_folders import load_task
from grader.errors import UsageError
from grader.store.attempts.class_submissions import judged_by_another_version
from grader.store.courses import course_life, course_time_zone, courses, task_order, task_withdrawal
from grader.store.courses.courses import AssignedTask, TaskTerms
from grader.store.courses.exam_freeze import ExamRunsError
from grader.store.courses.task_drafts import publish_task
from grader.store.courses.task_terms import change_terms
from grader.store.courses.task_updates import need_of
from grader.store.courses.task_versions import is_kept, keep_version
from grader.store.courses.task_withdrawal import Withdrawal
from grader.translation import gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.lookups.folder_tasks import folder_task
from grader.web.security.access import Id
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.exam_question import ask_during_exam
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.task_versions import available_version, unset_tasks
from grader.web.staff.terms_form import as_sent, late_options, read_terms

router = APIRouter()


@router.get("/courses/{course_id}/settings")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The tasks in their order, what could be added, and closing the course."""
    every = request.tasks()
    tasks = [one for one in every if not one.withdrawn]
    # One look at each folder: it is asked for as a task of the course, and among those that could be set.
    task_in = cache(folder_task)
    try:
        more, problem = unset_tasks(every, task_in), ""
    except UsageError as error:
        more, problem = (), str(error)
    return request.page(
        "settings.html.j2",
        {
            "tasks": tasks,
            "withdrawn": [one for one in every if one.withdrawn],
            "available": {
                one.id: available_version(request.service, request.course, one, task_in) for one in tasks
            },
            "more": more,
            "problem": problem,
            "whole": sum(one.terms.weight for one in tasks),
            "zones": _zone_options(),
        },
    )


@cache
def _zone_options() -> Markup:
    """All zones to choose from: six hundred, the same on every page."""
    return Markup("").join(map(Markup("<option>{}</option>").format, course_time_zone.time_zones()))


@router.post("/courses/{course_id}/settings/add")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """Set one more task, at the end, as a draft; its own page changes its terms and publishes it."""
    name, _, profile_name = form.text("task").partition("/")
    wanted = next((one for one in unset_tasks(request.tasks()) if one[:2] == (name, profile_name)), None)
    if wanted is None:
        return request.redirect(
            "settings", gettext("Choose one of the tasks that are not set yet."), kind="problem"
        )
    task = load_task(name)
    profile = task.profile(profile_name)
    assert profile is not None, "it was listed"
    keep_version(request.service.store, request.service.files, task)
    terms = TaskTerms(title=task.title, version=task.version, need=need_of(profile))
    made = courses.set_task(
        request.service.store,
        request.course.id,
        name,
        profile_name,
        terms,
        draft=True,
        actor_id=request.actor,
    )
    return request.redirect(
        f"settings/{made}",
        gettext("{title} is a draft: learners do not see it. Set its dates here, then publish it.").format(
            title=task.title
        ),
    )


@router.post("/courses/{course_id}/settings/order")
def reorder(request: CourseRequestDep, form: FormDep) -> Response:
    """Move one task up or down by one."""
    every = request.tasks()
    ids = [one.id for one in every if not one.withdrawn]
    moved, by = form.ids("task"), form.text("by")
    if len(moved) == 1 and moved[0] in ids and by in ("up", "down"):
        index = ids.index(moved[0])
        other = index + (1 if by == "down" else -1)
        if 0 <= other < len(ids):
            ids[index], ids[other] = ids[other], ids[index]
            # Those that nobody sees here come last, so that moving by one is moving by one that is seen.
            ids += [one.id for one in every if one.withdrawn]
            task_order.reorder(request.service.store, request.course.id, tuple(ids), actor_id=request.actor)
    return request.redirect("settings")


@router.post("/courses/{course_id}/settings/door")
def door(request: CourseRequestDep, form: FormDep) -> Response:
    """Close the course, so that nothing more is handed in, or open it again."""
    closed = form.text("closed") == "yes"
    if closed and not request.course.closed and not is_confirmed(form):
        question = Question(
            gettext("Close “{title}”?").format(title=request.course.title),
            gettext(
                "Nobody can hand in anything more, whatever the dates of its tasks say, until you open it again. "
                "Everything stays readable, for learners, too."
            ),
            gettext("Close it"),
            f"{request.at}/settings",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    course_life.set_closed(request.service.store, request.course.id, closed, actor_id=request.actor)
    told = (
        gettext("The course is closed; everything can still be read.")
        if closed
        else gettext("The course is open.")
    )
    return request.redirect("settings", told)


@router.post("/courses/{course_id}/settings/time-zone")
def set_time_zone(request: CourseRequestDep, form: FormDep) -> Response:
    """Write the course's dates in another zone; they stay the moments that they are."""
    name = form.text("time_zone", most=64)
    try:
        course_time_zone.set_time_zone(request.service.store, request.course.id, name, actor_id=request.actor)
    except UsageError:
        return request.redirect(
            "settings", gettext("Choose one of the time zones, such as Europe/Paris."), kind="problem"
        )
    told = gettext("Forms show and take times of {zone} now. No date has moved.").format(zone=name)
    return request.redirect("settings", told)


@router.get("/courses/{course_id}/settings/{course_task_id}")
def show_task(request: CourseRequestDep, course_task_id: Id) -> HTMLResponse:
    """One task's terms and version."""
    task = request.task(course_task_id)
    fields = as_sent(task.terms, request.course.zone)
    return _task_page(
        request, task, SubmittedForm({name: [text] for name, text in fields.items() if text}, {})
    )


@router.post("/courses/{course_id}/settings/{course_task_id}")
def change(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Change one task's terms; who stands where follows at once."""
    task = request.task(course_task_id)
    terms = read_terms(form, task.terms, request.course.zone)
    if not form.good:
        return _task_page(request, task, form, 422)
    try:
        change_terms(
            *(request.service.store, task, terms), during_exam=is_confirmed(form), actor_id=request.actor
        )
    except ExamRunsError as error:
        return ask_during_exam(request, task, error, form)
    return request.redirect(
        f"settings/{task.id}", gettext("Saved. Lateness and standings follow the new terms.")
    )


@router.post("/courses/{course_id}/settings/{course_task_id}/publish")
def publish(request: CourseRequestDep, course_task_id: Id) -> Response:
    """Let learners see a draft."""
    task = request.task(course_task_id)
    title, opens = task.terms.title, task.terms.opens_at
    if not publish_task(request.service.store, request.course.id, task.id, actor_id=request.actor):
        told = gettext("{title} was published before.")
        return request.redirect(f"settings/{task.id}", told.format(title=title), kind="note")
    told = (
        gettext("{title} is published: learners see it now. What it asks they read when it opens.")
        if opens is not None and opens > datetime.now(UTC)
        else gettext("{title} is published: learners see it now.")
    )
    return request.redirect(f"settings/{task.id}", told.format(title=title))


@router.post("/courses/{course_id}/settings/{course_task_id}/withdraw")
def withdraw(request: CourseRequestDep, course_task_id: Id, form: FormDep) -> Response:
    """Take a task out of the course; what was handed in for it stays."""
    task = request.task(course_task_id)
    title = task.terms.title
    try:
        done = task_withdrawal.withdraw_task(
            *(request.service.store, request.course.id, task.id),
            during_exam=is_confirmed(form),
            actor_id=request.actor,
        )
    except ExamRunsError as error:
        return ask_during_exam(request, task, error, form)
    messages = {
        Withdrawal.REMOVED: gettext("{title} is gone. Nobody had handed anything in for it."),
        Withdrawal.WITHDRAWN: gettext(
            "{title} is withdrawn: learners see it no more, and its grades are kept."
        ),
        Withdrawal.UNKNOWN: gettext("{title} was withdrawn before."),
    }
    kind = "note" if done is Withdrawal.UNKNOWN else "done"
    return request.redirect("settings", messages[done].format(title=title), kind=kind)


@router.post("/courses/{course_id}/settings/{course_task_id}/set-again")
def set_again(request: CourseRequestDep, course_task_id: Id) -> Response:
    """Set a withdrawn task again, on the terms that it had."""
    task = request.task(course_task_id)
    if not task_withdrawal.set_task_again(
        request.service.store, request.course.id, task.id, actor_id=request.actor
    ):
        told = gettext("{title} is set already.").format(title=task.terms.title)
        return request.redirect("settings", told, kind="note")
    told = gettext("{title} is set again: look at its dates.").format(title=task.terms.title)
    return request.redirect(f"settings/{task.id}", told)


def _task_page(
    request: CourseRequest, task: AssignedTask, form: SubmittedForm, status_code: int = 200
) -> HTMLResponse:
    return request.page(
        "task_settings.html.j2",
        {
            "task": task,
            "form": form,
            "late": late_options(),
            "available": available_version(request.service, request.course, task),
            "kept": is_kept(request.service.store, task.terms.version),
            "otherwise": judged_by_another_version(request.service.store, task.id, task.terms.version),
            "num_handed_in": task_withdrawal.num_submissions(request.service.store, task.id),
        },
        status_code,
    )
