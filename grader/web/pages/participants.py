"""The people of a course: who they are, a new password for one, their role, ending their part, erasing them."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store import enrolments
from grader.store.enrolments import Participant
from grader.store.erasure import erase
from grader.store.tables.person import Role
from grader.web.staff import accounts
from grader.web.staff.handouts import handouts
from grader.web.staff.roster import Listed, wrong_with
from grader.web.staff.sent import Sent, SentForm
from grader.web.staff.taught import Taught, TaughtHere
from grader.web.visit import Id, not_found

router = APIRouter()
ROLES = (Role.LEARNER, Role.INSTRUCTOR)


@router.get("/courses/{course_id}/people")
def show(here: TaughtHere) -> HTMLResponse:
    """Everybody in the course."""
    return _page(here, Sent({}, {}))


@router.post("/courses/{course_id}/people")
def add(here: TaughtHere, form: SentForm) -> Response:
    """One more learner, with an account that is made if there is none."""
    login, name = form.needed("login", "A login").casefold(), form.needed("name", "A name")
    trouble = wrong_with(login, name) if form.good else None
    if trouble is not None:
        form.errors["login"] = trouble
    if not form.good:
        return _page(here, form, 422)
    planned = accounts.plan(here.site.store, here.course.id, [Listed(0, login, name)])
    if planned[0].inside:
        return here.send_on("people", f"{planned[0].listed.login} takes part already.", kind="note")
    return handouts(here, accounts.take_over(here.site.store, here.course.id, planned, actor_id=here.actor))


@router.get("/courses/{course_id}/people/{person_id}")
def show_one(here: TaughtHere, person_id: Id) -> HTMLResponse:
    """One of them, and what can be done for them."""
    return _one(here, _participant(here, person_id), "")


@router.post("/courses/{course_id}/people/{person_id}/password")
def reset(here: TaughtHere, person_id: Id) -> Response:
    """A one-time password for somebody who has forgotten theirs, shown once."""
    one = _participant(here, person_id)
    if not accounts.in_care_of(here.site.store, here.visitor, one.person_id):
        return here.send_on(f"people/{one.person_id}", _not_yours(one), kind="problem")
    return handouts(here, (accounts.reset(here.site.store, one.person_id, actor_id=here.actor),))


@router.post("/courses/{course_id}/people/{person_id}/role")
def change_role(here: TaughtHere, person_id: Id, form: SentForm) -> Response:
    """Let somebody teach the course, or only learn in it."""
    one = _participant(here, person_id)
    role = Role(form.one_of("role", ROLES))
    if one.person_id == here.actor and role is Role.LEARNER and not here.visitor.is_admin:
        return here.send_on(
            "people", "You would lock yourself out; let another instructor do it.", kind="problem"
        )
    enrolments.enrol(here.site.store, here.course.id, one.person_id, role, actor_id=here.actor)
    return here.send_on("people", f"{one.name} is {role} in this course now.")


@router.post("/courses/{course_id}/people/{person_id}/remove")
def remove(here: TaughtHere, person_id: Id) -> Response:
    """End somebody's part in the course; what they handed in stays."""
    one = _participant(here, person_id)
    if one.person_id == here.actor and not here.visitor.is_admin:
        return here.send_on(
            "people", "You would lock yourself out; let another instructor do it.", kind="problem"
        )
    enrolments.leave(here.site.store, here.course.id, one.person_id, actor_id=here.actor)
    return here.send_on(
        "people", f"{one.name} takes no part any more. What they handed in is kept until it is erased."
    )


@router.post("/courses/{course_id}/people/{person_id}/erase")
def do_erase(here: TaughtHere, person_id: Id, form: SentForm) -> Response:
    """Erase somebody, if their login was typed."""
    one = _participant(here, person_id)
    if not accounts.in_care_of(here.site.store, here.visitor, one.person_id):
        return here.send_on(f"people/{one.person_id}", _not_yours(one), kind="problem")
    if form.text("confirm").casefold() != one.login:
        return _one(here, one, f"Type {one.login} to confirm.", 422)
    try:
        gone = erase(here.site.store, here.site.files, one.person_id, actor_id=here.actor)
    except UsageError as error:
        return here.send_on("people", f"{error}", kind="problem")
    return here.send_on(
        "people",
        f"Erased, with {gone.num_submissions} submissions and {gone.num_files} files. Nothing brings it back.",
    )


def _page(here: Taught, form: Sent, status_code: int = 200) -> HTMLResponse:
    found = enrolments.participants(here.site.store, here.course.id)
    return here.page(
        "people.html.j2",
        {
            "people": found,
            "num_learners": sum(one.role is Role.LEARNER for one in found),
            "form": form,
        },
        status_code,
    )


def _one(here: Taught, one: Participant, error: str, status_code: int = 200) -> HTMLResponse:
    own = enrolments.courses_of(here.site.store, one.person_id)
    return here.page(
        "person.html.j2",
        {
            "person": one,
            "own": own,
            "allowed": accounts.in_care_of(here.site.store, here.visitor, one.person_id),
            "refusal": _not_yours(one),
            "myself": one.person_id == here.actor,
            "error": error,
        },
        status_code,
    )


def _participant(here: Taught, person_id: int) -> Participant:
    for one in enrolments.participants(here.site.store, here.course.id):
        if one.person_id == person_id:
            return one
    raise not_found()


def _not_yours(one: Participant) -> str:
    return (
        f"{one.name} is more than a learner of your courses (or it is your own account), so only an administrator may"
        " do this."
    )
