"""Bringing a list of people into a course: read, shown with all that is wrong in it, then taken over meanwhile."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import roster_imports
from grader.store.delivery.delivery_channels import mail_problem
from grader.store.delivery.mail_requests import mail_each
from grader.store.people.personal_invitations import personal_invitations, revoke_personal
from grader.store.tables.roster_import import Admission
from grader.translation import counted, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.security.sign_in import need_passwords
from grader.web.staff import accounts
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.csv_files import to_csv
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.password_handouts import handouts_csv
from grader.web.staff.roster import MAX_BYTES, Roster, read_roster, read_text
from grader.web.staff.roster_job import start_taking_over
from grader.web.staff.store_problems import problem_text

router = APIRouter()


@router.get("/courses/{course_id}/people/import")
def show(request: CourseRequestDep) -> HTMLResponse:
    """Where a list is chosen or pasted, and what became of those before."""
    found = roster_imports.imports_of(request.service.store, request.course.id)
    if any(one.finished_at is None for one in found):
        start_taking_over(request.service)
    return request.page(
        "import.html.j2", {"roster": None, "planned": (), "text": "", "num_new": 0, "imports": found}
    )


@router.post("/courses/{course_id}/people/import")
def preview(request: CourseRequestDep, form: FormDep) -> Response:
    """What the list says, line by line, and what taking it over would do; nothing is changed."""
    text = _text(form)
    roster = read_text(text) if isinstance(text, str) else text
    return _preview(request, roster, text if isinstance(text, str) else "")


@router.post("/courses/{course_id}/people/import/take-over")
def take_over(request: CourseRequestDep, form: FormDep) -> Response:
    """Keep the list to be taken over in the background; it is read again as it was previewed."""
    text = form.values.get("text", [""])[0]
    roster = read_text(text)
    usual = Admission.PASSWORD if request.service.sign_on.local_passwords else Admission.SIGN_ON
    admission = form.one_of("admission", list(Admission)) if form.ticked("admission") else usual
    if admission == Admission.PASSWORD:
        need_passwords(request.service)
    if not roster.people or not form.good:
        return _preview(request, roster, text)
    import_id = roster_imports.begin(
        request.service.store, request.course.id, roster.people, Admission(admission), actor_id=request.actor
    )
    start_taking_over(request.service)
    return request.redirect(f"people/imports/{import_id}")


@router.get("/courses/{course_id}/people/imports/{import_id}")
def show_import(request: CourseRequestDep, import_id: Id) -> HTMLResponse:
    """How far a list is, what came of it and what could not be taken over."""
    found = roster_imports.roster_import(request.service.store, request.course.id, import_id)
    if found is None:
        raise not_found()
    if found.finished_at is None:
        start_taking_over(request.service)
    return request.page(
        "roster_import.html.j2", {"found": found, "mails": not mail_problem(request.service.store)}
    )


@router.get("/courses/{course_id}/people/one-time-passwords.csv")
def passwords_csv(request: CourseRequestDep) -> Response:
    """One-time passwords that nobody has used yet, as often as it is asked for."""
    need_passwords(request.service)
    kept = accounts.kept_passwords(request.service, request.visitor, request.course.id)
    return request.download("one-time-passwords.csv", "text/csv; charset=utf-8", handouts_csv(request, kept))


@router.get("/courses/{course_id}/people/join-links.csv")
def links_csv(request: CourseRequestDep) -> Response:
    """The links of those who were invited one by one and are not here yet."""
    site = request.service.site(request.http)
    table = to_csv(
        ("section", "name", "login", "email", "role", "link"),
        (
            (one.section, one.name, one.login, one.email, one.role, f"{site}/join/{one.code}")
            for one in personal_invitations(request.service.store, request.course.id)
        ),
    )
    return request.download("join-links.csv", "text/csv; charset=utf-8", table)


@router.post("/courses/{course_id}/people/join-links/mail")
def mail_links(request: CourseRequestDep) -> Response:
    """Mail each of them their own link, where there is an address; who was mailed is not mailed again."""
    try:
        number = mail_each(request.service.store, request.course.id, actor_id=request.actor)
    except UsageError as error:
        told = gettext("Nobody was mailed: {problem}.").format(problem=problem_text(error))
        return request.redirect("people", told, kind="problem")
    text = (
        counted(
            "Their links are on their way to %(num)s.", "Their links are on their way to %(num)s.", number
        )
        if number
        else gettext("Whoever has an address was mailed before.")
    )
    return request.redirect("people", text, kind="done" if number else "note")


@router.post("/courses/{course_id}/people/join-links/revoke")
def revoke_links(request: CourseRequestDep, form: FormDep) -> Response:
    """End all of these links."""
    number = len(personal_invitations(request.service.store, request.course.id))
    if number and not is_confirmed(form):
        question = Question(
            counted("End this link?", "End the links of %(num)s people?", number),
            gettext("Who has not joined yet can no longer do so by them; whoever is in the course stays."),
            gettext("End them"),
            f"{request.at}/people",
        )
        return ask_first(request.service, request.http, request.visitor, question)
    revoke_personal(request.service.store, request.course.id, actor_id=request.actor)
    return request.redirect("people", gettext("These links no longer let anybody in."))


def _text(form: SubmittedForm) -> str | Roster:
    """The list as text: of the file if there is one, of the field otherwise."""
    chosen = form.files.get("file")
    if chosen is not None and chosen.filename:
        return read_roster(chosen.file.read(MAX_BYTES + 1)) if chosen.size else read_text("")
    return form.values.get("text", [""])[0]


def _preview(request: CourseRequest, roster: Roster, text: str) -> HTMLResponse:
    planned = accounts.plan(request.service.store, request.course.id, roster.people)
    return request.page(
        "import.html.j2",
        {
            "roster": roster,
            "planned": planned,
            "num_new": sum(not one.known for one in planned),
            "text": text or roster.as_text(),
            "imports": (),
        },
        200 if roster.people else 422,
    )
