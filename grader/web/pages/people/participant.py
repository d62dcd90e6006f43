"""One person of a course: how they do, and what can be done for them: details, password, role, ending, erasing."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.courses import enrolments
from grader.store.courses.enrolment_details import EnrolmentDetails, set_details
from grader.store.courses.enrolments import Participant
from grader.store.grading import certificates
from grader.store.people import own_courses
from grader.store.people.erasure import erase
from grader.store.people.mailboxes import bounced_reason
from grader.store.tables.person import COURSE_ROLES, Role
from grader.translation import N_, gettext
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.role_names import role_name
from grader.web.security.access import Id, not_found
from grader.web.security.sign_in import need_passwords
from grader.web.staff import accounts
from grader.web.staff.course_request import CourseRequest, CourseRequestDep, ReaderRequestDep
from grader.web.staff.form import FormDep
from grader.web.staff.learner_overview import learner_overview
from grader.web.staff.password_handouts import handouts
from grader.web.staff.roster import MAX_DETAIL

router = APIRouter()
_MEANS = {
    Role.ASSISTANT: N_(
        "They read, comment and decide attempts of the learners of their section, or of all if they are in none. They "
        "see no settings and change nobody's part."
    ),
    Role.OBSERVER: N_(
        "They see how the learners of their section do, or all if they are in none, and change nothing."
    ),
    Role.INSTRUCTOR: N_(
        "They see and change everything in the course: all scripts and grades, the dates, and who takes part."
    ),
}


@router.get("/courses/{course_id}/people/{person_id}")
def show_one(request: ReaderRequestDep, person_id: Id) -> HTMLResponse:
    """How they do, and for instructors what can be done for them."""
    return _page(request, _participant(request, person_id), "")


@router.post("/courses/{course_id}/people/{person_id}/details")
def change_details(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Another section, another id."""
    one = _participant(request, person_id)
    section, external_id = (form.text(name, most=MAX_DETAIL) or None for name in ("section", "external_id"))
    wanted = {one.person_id: EnrolmentDetails(section, external_id)}
    set_details(request.service.store, request.course.id, wanted, actor_id=request.actor)
    return request.redirect(f"people/{one.person_id}", gettext("Saved."))


@router.post("/courses/{course_id}/people/{person_id}/password")
def reset(request: CourseRequestDep, person_id: Id) -> Response:
    """A one-time password for somebody who has forgotten theirs."""
    need_passwords(request.service)
    one = _participant(request, person_id)
    made = accounts.reissue_passwords(request.service, request.visitor, request.course.id, [one.person_id])
    if not made:
        return request.redirect(f"people/{one.person_id}", _not_yours(one), kind="problem")
    return handouts(request, made)


@router.post("/courses/{course_id}/people/{person_id}/role")
def change_role(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Make somebody something else in the course; what gives a say over others is asked first."""
    one = _participant(request, person_id)
    role = Role(form.one_of("role", COURSE_ROLES))
    if one.person_id == request.actor and role is not Role.INSTRUCTOR and not request.visitor.is_admin:
        return _would_lock_out(request)
    if role not in (Role.LEARNER, one.role) and not is_confirmed(form):
        question = Question(
            gettext("Make {name} an {role}?").format(name=one.name, role=role_name(role)),
            " ".join(
                (
                    gettext(_MEANS[role]),
                    gettext("What {name} has handed in no longer stands in the gradebook.").format(
                        name=one.name
                    ),
                )
            ),
            gettext("Make them an {role}").format(role=role_name(role)),
            f"{request.at}/people/{one.person_id}",
            fields=form.values,
        )
        return ask_first(request.service, request.http, request.visitor, question)
    enrolments.enrol(request.service.store, request.course.id, one.person_id, role, actor_id=request.actor)
    told = gettext("{name} is {role} in this course now.").format(name=one.name, role=role_name(role))
    return request.redirect("people", told)


@router.post("/courses/{course_id}/people/{person_id}/remove")
def remove(request: CourseRequestDep, person_id: Id) -> Response:
    """End somebody's part in the course; what they handed in stays."""
    one = _participant(request, person_id)
    if one.person_id == request.actor and not request.visitor.is_admin:
        return _would_lock_out(request)
    enrolments.leave(request.service.store, request.course.id, one.person_id, actor_id=request.actor)
    told = gettext("{name} takes no part any more. What they handed in is kept until it is erased.")
    return request.redirect("people", told.format(name=one.name))


@router.post("/courses/{course_id}/people/{person_id}/erase")
def do_erase(request: CourseRequestDep, person_id: Id, form: FormDep) -> Response:
    """Erase somebody, if their login was typed."""
    one = _participant(request, person_id)
    if not accounts.may_manage(request.service.store, request.visitor, one.person_id):
        return request.redirect(f"people/{one.person_id}", _not_yours(one), kind="problem")
    if form.text("confirm").casefold() != one.login:
        return _page(request, one, gettext("Type {login} to confirm.").format(login=one.login), 422)
    try:
        gone = erase(request.service.store, request.service.files, one.person_id, actor_id=request.actor)
    except UsageError as error:
        return request.redirect("people", f"{error}", kind="problem")
    told = gettext(
        "Erased, with {num_submissions} submissions and {num_files} files. Nothing brings it back."
    )
    return request.redirect(
        "people", told.format(num_submissions=gone.num_submissions, num_files=gone.num_files)
    )


def _page(request: CourseRequest, one: Participant, error: str, status_code: int = 200) -> HTMLResponse:
    store, course_id = request.service.store, request.course.id
    return request.page(
        "person.html.j2",
        {
            "person": one,
            "bounced": bounced_reason(store, one.email) if one.email else "",
            "own": own_courses.courses_of(store, one.person_id),
            "overview": learner_overview(store, course_id, one.person_id),
            "certificate": certificates.certificate_of(store, course_id, one.person_id),
            "allowed": accounts.may_manage(store, request.visitor, one.person_id),
            "refusal": _not_yours(one),
            "myself": one.person_id == request.actor,
            "titles": {one.id: one.terms.title for one in request.tasks()},
            "roles": [(role, role_name(role)) for role in COURSE_ROLES],
            "error": error,
        },
        status_code,
    )


def _participant(request: CourseRequest, person_id: int) -> Participant:
    for one in enrolments.participants(request.service.store, request.course.id):
        if one.person_id == person_id and request.visitor.reads_learner(
            request.course.id, one.role, one.section
        ):
            return one
    raise not_found()


def _would_lock_out(request: CourseRequest) -> Response:
    return request.redirect(
        "people", gettext("You would lock yourself out; let another instructor do it."), kind="problem"
    )


def _not_yours(one: Participant) -> str:
    return gettext(
        "{name} has or had a part in courses that you do not teach, has an account from elsewhere, or is more than a "
        "learner (or it is your own account), so only an administrator may do this."
    ).format(name=one.name)
