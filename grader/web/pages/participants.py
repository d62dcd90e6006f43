"""The people of a course: who they are, a new password for one, their role, ending their part, erasing them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store import certificates, enrolments
from grader.store.class_list import without_own_password
from grader.store.enrolments import Participant
from grader.store.erasure import erase
from grader.store.tables.person import Role
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, not_found
from grader.web.staff import accounts
from grader.web.staff.course_request import CourseRequest, CourseRequestDep, ReaderRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.learner_overview import learner_overview
from grader.web.staff.password_handouts import handouts
from grader.web.staff.roster import ListedPerson, problem_with

router = APIRouter()
_ROLES = (Role.LEARNER, Role.INSTRUCTOR)


@router.get("/courses/{course_id}/people")
def show(request: ReaderRequestDep) -> HTMLResponse:
    """Everybody in the course."""
    return _page(request, SubmittedForm({}, {}))


@router.post("/courses/{course_id}/people")
def add(request: CourseRequestDep, form: FormDep) -> Response:
    """One more learner, with an account that is made if there is none."""
    login, name = form.needed("login", "A login").casefold(), form.needed("name", "A name")
    trouble = problem_with(login, name) if form.good else None
    if trouble is not None:
        form.errors["login"] = trouble
    if not form.good:
        return _page(request, form, 422)
    planned = accounts.plan(request.service.store, request.course.id, [ListedPerson(0, login, name)])
    if planned[0].inside:
        return request.redirect("people", f"{planned[0].listed.login} takes part already.", kind="note")
    return handouts(
        request,
        accounts.enrol_planned(request.service.store, request.course.id, planned, actor_id=request.actor),
    )


@router.post("/courses/{course_id}/people/passwords")
def reissue(request: CourseRequestDep) -> Response:
    """New one-time passwords for all who have not chosen one: the page with those before was lost."""
    made = accounts.reissue_passwords(request.service.store, request.visitor, request.course.id)
    if not made:
        return request.redirect("people", "Everybody has chosen a password by now.", kind="note")
    return handouts(request, made)


@router.get("/courses/{course_id}/people/{person_id}")
def show_one(request: ReaderRequestDep, person_id: Id) -> HTMLResponse:
    """One of them, and what can be done for them."""
    return _one(request, _participant(request, person_id), "")


@router.post("/courses/{course_id}/people/{person_id}/password")
def reset(request: CourseRequestDep, person_id: Id) -> Response:
    """A one-time password for somebody who has forgotten theirs, shown once."""
    one = _participant(request, person_id)
    if not accounts.may_manage(request.service.store, request.visitor, one.person_id):
        return request.redirect(f"people/{one.person_id}", _not_yours(one), kind="problem")
    return handouts(
        request, (accounts.reset_password(request.service.store, one.person_id, actor_id=request.actor),)
    )


@router.post("/courses/{course_id}/people/{person_id}/role")
def change_role(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Let somebody teach the course, or only learn in it."""
    one = _participant(request, person_id)
    role = Role(form.one_of("role", _ROLES))
    if one.person_id == request.actor and role is Role.LEARNER and not request.visitor.is_admin:
        return request.redirect(
            "people", "You would lock yourself out; let another instructor do it.", kind="problem"
        )
    if role is Role.INSTRUCTOR and one.role is not role and not is_confirmed(form):
        question = Question(
            f"Make {one.name} an instructor?",
            f"They will see and change everything in “{request.course.title}”: all scripts and grades, the dates, "
            "and who takes part. What they have handed in no longer stands in the gradebook.",
            "Make them an instructor",
            f"{request.at}/people/{one.person_id}",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    enrolments.enrol(request.service.store, request.course.id, one.person_id, role, actor_id=request.actor)
    return request.redirect("people", f"{one.name} is {role} in this course now.")


@router.post("/courses/{course_id}/people/{person_id}/remove")
def remove(request: CourseRequestDep, person_id: Id) -> Response:
    """End somebody's part in the course; what they handed in stays."""
    one = _participant(request, person_id)
    if one.person_id == request.actor and not request.visitor.is_admin:
        return request.redirect(
            "people", "You would lock yourself out; let another instructor do it.", kind="problem"
        )
    enrolments.leave(request.service.store, request.course.id, one.person_id, actor_id=request.actor)
    return request.redirect(
        "people", f"{one.name} takes no part any more. What they handed in is kept until it is erased."
    )


@router.post("/courses/{course_id}/people/{person_id}/erase")
def do_erase(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Erase somebody, if their login was typed."""
    one = _participant(request, person_id)
    if not accounts.may_manage(request.service.store, request.visitor, one.person_id):
        return request.redirect(f"people/{one.person_id}", _not_yours(one), kind="problem")
    if form.text("confirm").casefold() != one.login:
        return _one(request, one, f"Type {one.login} to confirm.", 422)
    try:
        gone = erase(request.service.store, request.service.files, one.person_id, actor_id=request.actor)
    except UsageError as error:
        return request.redirect("people", f"{error}", kind="problem")
    return request.redirect(
        "people",
        f"Erased, with {gone.num_submissions} submissions and {gone.num_files} files. Nothing brings it back.",
    )


def _page(request: CourseRequest, form: SubmittedForm, status_code: int = 200) -> HTMLResponse:
    everybody = enrolments.participants(request.service.store, request.course.id)
    # Who teaches is no secret; of learners one is shown one's own.
    found = [one for one in everybody if one.role is not Role.LEARNER or _is_shown(request, one)]
    return request.page(
        "people.html.j2",
        {
            "people": found,
            "linked": {one.person_id for one in found if _is_shown(request, one)},
            "num_learners": sum(one.role is Role.LEARNER for one in found),
            "num_waiting": len(without_own_password(request.service.store, request.course.id)),
            "form": form,
        },
        status_code,
    )


def _one(request: CourseRequest, one: Participant, error: str, status_code: int = 200) -> HTMLResponse:
    own = enrolments.courses_of(request.service.store, one.person_id)
    return request.page(
        "person.html.j2",
        {
            "person": one,
            "own": own,
            "overview": learner_overview(request.service.store, request.course.id, one.person_id),
            "certificate": certificates.certificate_of(
                request.service.store, request.course.id, one.person_id
            ),
            "allowed": accounts.may_manage(request.service.store, request.visitor, one.person_id),
            "refusal": _not_yours(one),
            "myself": one.person_id == request.actor,
            "error": error,
        },
        status_code,
    )


def _participant(request: CourseRequest, person_id: int) -> Participant:
    for one in enrolments.participants(request.service.store, request.course.id):
        if one.person_id == person_id and _is_shown(request, one):
            return one
    raise not_found()


def _is_shown(request: CourseRequest, one: Participant) -> bool:
    return request.visitor.reads_learner(request.course.id, one.role, one.section)


def _not_yours(one: Participant) -> str:
    return (
        f"{one.name} has or had a part in courses that you do not teach, has an account from elsewhere, or is more than"
        " a learner (or it is your own account), so only an administrator may do this."
    )
