"""Choosing the tasks that a platform's course links to, in a frame of the platform: the launch stands in the form."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from grader.store.people.people import Account, account
from grader.translation import gettext
from grader.web.lti.arrival import Arrival, LaunchRefusal, known_person, launch_of_token, may_be_launched
from grader.web.lti.content_choice import answer_page, choice_page
from grader.web.lti.framed import refused_page
from grader.web.security.access import Public
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter(dependencies=[Public])


@router.get("/lti/deep-linking")
def show() -> RedirectResponse:
    """The address that platforms are told for choosing content; people come to it by a launch alone."""
    return RedirectResponse("/", 303)


@router.post("/lti/deep-linking")
def choose(request: Request, service: ServiceDep, form: FormDep) -> Response:
    """The tasks that were chosen, on their way to the platform; or, once the course is connected, the choice."""
    came = launch_of_token(service, form.text("launch"))
    if came is None:
        text = gettext("This page stood open for too long. Close it and choose the content once more.")
        return refused_page(service, request, LaunchRefusal(gettext("Too late"), text))
    who = _account(service, came)
    if isinstance(who, LaunchRefusal):
        return refused_page(service, request, who)
    if who is None or not form.ticked("chosen"):
        return choice_page(service, request, came, who)
    return answer_page(service, request, came, who, form.ids("task"))


def _account(service: WebService, came: Arrival) -> Account | LaunchRefusal | None:
    known = known_person(service.store, came)
    return None if known is None else may_be_launched(account(service.store, known))
