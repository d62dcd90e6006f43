"""Holding a course once more: its name and first day, then all dates as they would be, then the copy, a draft."""

from __future__ import annotations

from datetime import date, datetime, tzinfo

from babel.dates import format_date
from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import course_copies, courses
from grader.store.courses.course_copies import CoursePlan, DateShift
from grader.store.courses.course_life import is_course_name
from grader.store.courses.enrolments import Participant, participants
from grader.store.tables.person import Role
from grader.translation import current_language, gettext, moment_text
from grader.web import flash
from grader.web.lookups.catalog import about_course
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()


@router.get("/courses/{course_id}/copy")
def show(request: CourseRequestDep) -> HTMLResponse:
    """The form, with the dates as they are."""
    first = course_copies.first_day_of(_tasks(request), request.course.zone)
    sent = {
        "title": [request.course.title],
        "name": [f"{request.course.name[:50]}-again"],
        "first_day": [first.isoformat() if first else ""],
        "weekdays": ["on"],
        "staff": [str(request.actor)],
    }
    return _page(request, SubmittedForm(sent, {}), None)


@router.post("/courses/{course_id}/copy")
def make(request: CourseRequestDep, form: FormDep) -> Response:
    """What the dates would be (`action=look`), or the copy itself."""
    plan = _plan(request, form)
    if plan is None:
        return _page(request, form, None, 422)
    if form.text("action") != "make":
        return _page(request, form, plan.shift)
    try:
        made = course_copies.copy_course(request.service.store, request.course, plan, actor_id=request.actor)
    except UsageError as error:
        form.errors["name"] = f"{error}"
        return _page(request, form, plan.shift, 422)
    return flash.redirect(
        f"/courses/{made}/settings",
        request.service.secret,
        gettext(
            "The copy is there, a draft that only its staff sees. Look at its dates, then publish it and invite people."
        ),
    )


def _plan(request: CourseRequest, form: SubmittedForm) -> CoursePlan | None:
    title, name = form.needed("title", gettext("A title")), form.needed("name", gettext("A short name"))
    if name and not is_course_name(name):
        form.errors["name"] = gettext("Small letters, digits, dots and hyphens, such as ddp-autumn.")
    elif any(one.name == name for one in courses.courses(request.service.store)):
        form.errors["name"] = gettext("There is a course named {name} already.").format(name=name)
    first_day = _day(form, "first_day")
    if not form.good:
        return None
    tasks, zone = _tasks(request), request.course.zone
    shift = DateShift(0, zone)
    if first_day is not None:
        shift = course_copies.shift_to(tasks, zone, first_day, keep_weekdays=form.ticked("weekdays"))
    staff = {one.person_id for one in _staff(request)} & set(form.ids("staff"))
    if not request.visitor.is_admin:
        # Whoever makes it teaches it: nobody locks themselves out.
        staff.add(request.actor)
    return CoursePlan(name, title[:200], about_course(request.course) or None, shift, staff)


def _day(form: SubmittedForm, name: str) -> date | None:
    found = form.text(name, most=40)
    if not found:
        return None
    try:
        day = date.fromisoformat(found)
    except ValueError:
        day = date.min
    if not 2000 <= day.year <= 2200:
        form.errors[name] = gettext("Write a date, such as 2027-03-01.")
        return None
    return day


def _tasks(request: CourseRequest) -> tuple[courses.AssignedTask, ...]:
    return course_copies.copied_tasks(request.tasks())


def _staff(request: CourseRequest) -> list[Participant]:
    return [
        one for one in participants(request.service.store, request.course.id) if one.role is Role.INSTRUCTOR
    ]


def _page(
    request: CourseRequest, form: SubmittedForm, shift: DateShift | None, status_code: int = 200
) -> HTMLResponse:
    zone = request.course.zone
    return request.page(
        "course_copy.html.j2",
        {
            "form": form,
            "staff": _staff(request),
            "chosen": form.ids("staff"),
            "looked": shift is not None,
            "rows": [
                (
                    one,
                    *(_local(at, zone) for at in (one.terms.opens_at, one.terms.due_at)),
                    *_moved(one, shift),
                )
                for one in _tasks(request)
            ],
        },
        status_code,
    )


def _moved(task: courses.AssignedTask, shift: DateShift | None) -> tuple[str, str]:
    if shift is None:
        return "", ""
    terms = shift.terms(task.terms)
    return _local(terms.opens_at, shift.zone), _local(terms.due_at, shift.zone)


def _local(at: datetime | None, zone: tzinfo) -> str:
    """A moment with its weekday, as clocks of the course show it."""
    if at is None:
        return ""
    local = at.astimezone(zone)
    return f"{format_date(local, 'ccc', locale=current_language())} {moment_text(local)}"
