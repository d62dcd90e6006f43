"""An invitation mailed to those whom it is meant for."""

from __future__ import annotations

import re

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.store.delivery.mail_requests import mail_invitations
from grader.store.people.invitations import InvitationFacts, invitations_of
from grader.store.people.mailboxes import mail_address
from grader.translation import counted, gettext
from grader.web.mail_state import mail_problem_text
from grader.web.security.access import not_found
from grader.web.staff.course_request import CourseRequest, CourseRequestDep
from grader.web.staff.form import FormDep, SubmittedForm
from grader.web.staff.store_problems import problem_text

router = APIRouter()
_MOST, _MOST_TEXT = 500, 60_000
_HERE = "/courses/{course_id}/invitations/{code}/mail"


@router.get(_HERE)
def show(request: CourseRequestDep, code: str) -> HTMLResponse:
    """The form for the addresses."""
    return _page(request, _open(request, code), SubmittedForm({}, {}))


@router.post(_HERE)
def send(request: CourseRequestDep, form: FormDep, code: str) -> Response:
    """Mail it to them, each once."""
    one = _open(request, code)
    typed = [part for part in re.split(r"[\s,;]+", form.text("addresses", most=_MOST_TEXT)) if part]
    if not typed:
        form.errors["addresses"] = gettext("Write at least one address.")
    elif len(typed) > _MOST:
        form.errors["addresses"] = gettext("At most {most} addresses at a time, please.").format(most=_MOST)
    wrong = [part for part in typed if not _is_address(part)]
    if wrong:
        told = gettext("No mail address: {addresses}. Nobody was mailed.")
        form.errors["addresses"] = told.format(addresses=", ".join(wrong[:5]))
    if not form.good:
        return _page(request, one, form, 422)
    try:
        mailed = mail_invitations(request.service.store, one.code, typed, actor_id=request.actor)
    except UsageError as error:
        form.errors["addresses"] = gettext("Not mailed: {problem}.").format(problem=problem_text(error))
        return _page(request, one, form, 422)
    again = len({part.lower() for part in typed}) - mailed
    text = counted("It is on its way to %(num)s.", "It is on its way to %(num)s.", mailed)
    if again:
        rest = counted("%(num)s had it already.", "%(num)s had it already.", again)
        text = f"{text} {rest}"
    return request.redirect("invitations", text)


def _is_address(text: str) -> bool:
    try:
        mail_address(text)
    except UsageError:
        return False
    return True


def _open(request: CourseRequest, code: str) -> InvitationFacts:
    for one in invitations_of(request.service.store, request.course.id):
        if one.code == code and one.open:
            return one
    raise not_found()


def _page(
    request: CourseRequest, one: InvitationFacts, form: SubmittedForm, status_code: int = 200
) -> HTMLResponse:
    problem = mail_problem_text(request.service.store)
    return request.page(
        "invitation_mail.html.j2",
        {"one": one, "form": form, "mail_problem": problem, "most": _MOST_TEXT},
        status_code,
    )
