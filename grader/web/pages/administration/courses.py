"""All courses, for administrators, and founding one: empty, from a course file, or from elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.catalog.courses.course_file import course_files, load_course
from grader.catalog.courses.course_sources import course_from, course_in_archive
from grader.errors import GraderError, TaskError, UsageError
from grader.report.safe_text import one_line
from grader.store.courses import courses, enrolments
from grader.store.courses.course_import import TakenCourse, import_course, take_course
from grader.store.courses.course_life import NAME_HINT, is_course_name
from grader.store.people import people
from grader.store.tables.person import Role
from grader.translation import N_, gettext
from grader.web import flash
from grader.web.security.access import Admin, Visitor
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()
# As the store says them.
_WORDS = (
    N_("Small letters, digits, dots and hyphens, such as ddp-autumn."),
    N_("set"),
    N_("a newer version waits on the settings page"),
    N_("new, as drafts"),
    N_("as they were"),
)


@router.get("/admin/courses")
def show(request: Request, service: ServiceDep, visitor: Admin) -> HTMLResponse:
    """All courses, and the forms for a new one."""
    return _page(request, service, visitor, SubmittedForm({}, {}))


@router.post("/admin/courses")
def add(request: Request, service: ServiceDep, visitor: Admin, form: FormDep) -> Response:
    """An empty course."""
    name, title = form.needed("name", gettext("A short name")), form.needed("title", gettext("A title"))
    if name and not is_course_name(name):
        form.errors["name"] = gettext(NAME_HINT)
    teacher = _teacher(service, form)
    if form.good:
        try:
            made = courses.add_course(
                service.store, name, title[:200], draft=form.ticked("draft"), actor_id=visitor.account.id
            )
        except UsageError:
            form.errors["name"] = gettext("There is a course named {name} already.").format(name=name)
        else:
            return _redirect_to_settings(service, visitor, made, teacher)
    return _page(request, service, visitor, form, 422)


@router.post("/admin/courses/from-file")
def add_from_file(request: Request, service: ServiceDep, visitor: Admin, form: FormDep) -> Response:
    """A course as one of the course files describes it."""
    files = {path.name: path for path in course_files()}
    chosen = files.get(form.text("file"))
    if chosen is None:
        form.errors["file"] = gettext("Choose one of the course files.")
    begins = form.time("begins_at")
    teacher = _teacher(service, form, "file_teacher")
    if form.good and chosen is not None:
        try:
            made = import_course(
                service.store,
                service.files,
                load_course(chosen),
                begins_at=begins or datetime.now(UTC),
                actor_id=visitor.account.id,
            )
        except (TaskError, UsageError) as error:
            form.errors["file"] = f"{error}"
        else:
            return _redirect_to_settings(service, visitor, made, teacher)
    return _page(request, service, visitor, form, 422)


@router.post("/admin/courses/import")
def bring(request: Request, service: ServiceDep, visitor: Admin, form: FormDep) -> Response:
    """A course from an archive or from a Git address, new or a newer state of one that came before."""
    archive, address = form.files.get("archive"), form.text("address", most=500)
    begins, name = form.time("import_begins_at"), form.text("import_name", most=60)
    if name and not is_course_name(name):
        form.errors["import_name"] = gettext(NAME_HINT)
    teacher = _teacher(service, form, "import_teacher")
    given = archive is not None and bool(archive.filename)
    if given == bool(address):
        form.errors["address"] = gettext("Choose an archive or write an address, one of the two.")
    elif address and not address.startswith(("https://", "ssh://")):
        # Whoever is administrator of the pages need not read this machine's folders.
        form.errors["address"] = gettext(
            "An address begins with https:// or ssh://. Folders come by `grader course import`."
        )
    if form.good:
        try:
            with (
                course_in_archive(archive.file, one_line(archive.filename or "archive")[:120])
                if archive is not None and given
                else course_from(address, revision=form.text("revision", most=200))
            ) as found:
                taken = take_course(
                    *(service.store, service.files, found),
                    name=name or None,
                    begins_at=begins,
                    actor_id=visitor.account.id,
                )
        except GraderError as error:
            form.errors["address"] = f"{error}"
        else:
            return _taken(service, visitor, taken, teacher)
    return _page(request, service, visitor, form, 422)


def _taken(service: WebService, visitor: Visitor, taken: TakenCourse, teacher: int | None) -> Response:
    if taken.new:
        return _redirect_to_settings(service, visitor, taken.id, teacher)
    said = "; ".join(f"{gettext(text)}: {', '.join(names)}" for text, names in taken.lines())
    text = gettext("Brought to its newer state. {changes}.").format(changes=said)
    return flash.redirect(f"/courses/{taken.id}/settings", service.secret, text)


def _teacher(service: WebService, form: SubmittedForm, field: str = "teacher") -> int | None:
    """Who teaches the course, by login; nobody yet where the field is empty."""
    login = form.text(field, most=120)
    if not login:
        return None
    found = people.account_by_login(service.store, login)
    if found is None:
        form.errors[field] = gettext("There is no such account; make it first.")
        return None
    return found.id


def _redirect_to_settings(
    service: WebService, visitor: Visitor, course_id: int, teacher: int | None
) -> Response:
    if teacher is not None:
        enrolments.enrol(service.store, course_id, teacher, Role.INSTRUCTOR, actor_id=visitor.account.id)
    return flash.redirect(
        f"/courses/{course_id}/settings",
        service.secret,
        gettext("The course is there. Look at its tasks and dates, then invite people."),
    )


def _page(
    request: Request, service: WebService, visitor: Visitor, form: SubmittedForm, status_code: int = 200
) -> HTMLResponse:
    found = courses.courses(service.store)
    people_of = {one.id: enrolments.participants(service.store, one.id) for one in found}
    return service.render(
        request,
        "staff/admin_courses.html.j2",
        visitor=visitor,
        status_code=status_code,
        courses=[
            (
                one,
                sum(member.role is Role.LEARNER for member in people_of[one.id]),
                [member.name for member in people_of[one.id] if member.role is Role.INSTRUCTOR],
            )
            for one in found
        ],
        files=[(path.name, path.name) for path in course_files()],
        form=form,
    )
