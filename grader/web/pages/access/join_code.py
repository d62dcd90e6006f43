"""Joining a course by its code: with the account that one has, or with one made on the spot.

A room of sixty people does this in the same minute from one address; only wrong codes are counted against it.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from grader.errors import UsageError
from grader.store.people import invitations, people
from grader.store.people.invitations import InvitationPreview, InvitationResult
from grader.store.people.mailboxes import set_address
from grader.translation import N_, gettext
from grader.web import flash
from grader.web.security.access import MaybeVisitor, Public, SignedIn, Visitor, too_many_requests
from grader.web.security.rate_limits import JOIN_ADDRESS
from grader.web.security.sign_in import AT_ONCE, need_passwords, password_problem, start_session
from grader.web.service import ServiceDep, WebService

router = APIRouter()

_LOGIN = re.compile(r"[\w.@+-]{2,64}")
_CLOSED = {
    InvitationResult.UNKNOWN: N_(
        "This code opens no course. Check it letter by letter: it has 8, without I, O, 0 and 1."
    ),
    InvitationResult.EXPIRED: N_("This code has expired. Ask your instructor for a new one."),
    InvitationResult.USED_UP: N_(
        "This code has been used as often as it may be. Ask your instructor for a new one."
    ),
}


@router.get("/join", dependencies=[Public])
def ask(
    request: Request, service: ServiceDep, visitor: MaybeVisitor, code: Annotated[str, Query()] = ""
) -> Response:
    """Where a code is typed that was read from a wall."""
    spelt = "".join(letter for letter in code if letter.isalnum())[:32]
    if spelt:
        return RedirectResponse(f"/join/{spelt}", 303)
    return _page(request, service, visitor, "", None)


@router.get("/join/{code}", dependencies=[Public])
def page(request: Request, service: ServiceDep, visitor: MaybeVisitor, code: str) -> Response:
    """What the code opens, and how to come in."""
    return _page(request, service, visitor, code, _opens(request, service, code))


@router.post("/join/{code}")
def enter(request: Request, service: ServiceDep, visitor: SignedIn, code: str) -> Response:
    """Join with the account that is signed in."""
    return _redeem(request, service, visitor, code, visitor.account.id)


@router.post("/join/{code}/new", dependencies=[Public])
def enter_new(
    request: Request,
    service: ServiceDep,
    visitor: MaybeVisitor,
    code: str,
    login: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
) -> Response:
    """Make an account, sign it in, join."""
    need_passwords(service)
    opens = _opens(request, service, code)
    if opens.result is not InvitationResult.ENTERED:
        return _page(request, service, visitor, code, opens)
    typed = {"login": login.strip(), "name": name.strip()[:200]}
    errors = {}
    if not _LOGIN.fullmatch(typed["login"]):
        errors["login"] = gettext("2 to 64 letters, digits, dots or dashes, such as anna.k.")
    if not typed["name"]:
        errors["name"] = gettext("It stands on your certificate.")
    if not people.MIN_PASSWORD <= len(password) <= people.MAX_PASSWORD:
        errors["password"] = gettext("At least {number} characters, please.").format(
            number=people.MIN_PASSWORD
        )
    if not errors:
        try:
            with AT_ONCE:
                person_id = people.add_person(
                    service.store,
                    typed["login"],
                    typed["name"],
                    password=password,
                )
                if opens.email:
                    set_address(service.store, person_id, opens.email, actor_id=person_id)
        except UsageError as error:
            taken = "taken" in str(error)
            errors["login" if taken else "password"] = (
                gettext("Somebody has this name already. Take another one, or sign in if it is yours.")
                if taken
                else password_problem(password)
            )
        else:
            return _redeem(request, service, visitor, code, person_id, new=True)
    return _page(request, service, visitor, code, opens, errors=errors, typed=typed)


def _redeem(
    request: Request,
    service: WebService,
    visitor: Visitor | None,
    code: str,
    person_id: int,
    *,
    new: bool = False,
) -> Response:
    done = invitations.redeem(service.store, code, person_id)
    if done.course_id is None:
        if done.result is InvitationResult.UNKNOWN:
            _count(request, service)
        if not new:
            return _page(request, service, visitor, code, InvitationPreview(done.result))
        response = flash.redirect("/", service.secret, gettext(_CLOSED[done.result]), kind="problem")
    else:
        welcome = (
            gettext("You take part already.")
            if done.result is InvitationResult.ALREADY_IN
            else gettext("Welcome. These are the tasks.")
        )
        response = flash.redirect(f"/courses/{done.course_id}", service.secret, welcome)
    account = people.account(service.store, person_id) if new else None
    if account is not None:
        start_session(service, request, response, account)
    return response


def _opens(request: Request, service: WebService, code: str) -> InvitationPreview:
    refused = service.rate_limiter.exceeded(JOIN_ADDRESS, service.address(request))
    if refused is not None:
        raise too_many_requests(refused)
    found = invitations.look_up(service.store, code)
    if found.result is InvitationResult.UNKNOWN:
        _count(request, service)
    return found


def _count(request: Request, service: WebService) -> None:
    refused = service.rate_limiter.hit(JOIN_ADDRESS, service.address(request))
    if refused is not None:
        raise too_many_requests(refused)


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor | None,
    code: str,
    opens: InvitationPreview | None,
    *,
    errors: dict[str, str] | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    closed = gettext(_CLOSED[opens.result]) if opens is not None and opens.result in _CLOSED else ""
    unknown = opens is not None and opens.result is InvitationResult.UNKNOWN
    return service.render(
        request,
        "join.html.j2",
        visitor=visitor,
        status_code=404 if unknown else 410 if closed else 422 if errors else 200,
        code=code,
        opens=opens,
        closed=closed,
        errors=errors or {},
        typed=typed or {"login": opens.login if opens else "", "name": opens.name if opens else ""},
        least=people.MIN_PASSWORD,
        sign_on=service.sign_on,
    )
