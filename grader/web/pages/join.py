"""Joining a course by its code: with the account that one has, or with one made on the spot.

A room of sixty people does this in the same minute from one address; only wrong codes are counted against it.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from grader.errors import UsageError
from grader.store import invitations, people
from grader.store.invitations import Entry, Opens
from grader.web import flash
from grader.web.doors.rates import JOIN_ADDRESS
from grader.web.doors.sign_in import AT_ONCE
from grader.web.site import Here, Site
from grader.web.visit import Guest, Open, SignedIn, Visitor, too_many

router = APIRouter()

_LOGIN = re.compile(r"[\w.@+-]{2,64}")
_CLOSED = {
    Entry.UNKNOWN: "This code opens no course. Check it letter by letter: it has 8, without I, O, 0 and 1.",
    Entry.EXPIRED: "This code has expired. Ask your instructor for a new one.",
    Entry.USED_UP: "This code has been used as often as it may be. Ask your instructor for a new one.",
}


@router.get("/join", dependencies=[Open])
def ask(request: Request, site: Here, visitor: Guest, code: Annotated[str, Query()] = "") -> Response:
    """Where a code is typed that was read from a wall."""
    spelt = "".join(letter for letter in code if letter.isalnum())[:32]
    if spelt:
        return RedirectResponse(f"/join/{spelt}", 303)
    return _page(request, site, visitor, "", None)


@router.get("/join/{code}", dependencies=[Open])
def page(request: Request, site: Here, visitor: Guest, code: str) -> Response:
    """What the code opens, and how to come in."""
    return _page(request, site, visitor, code, _opens(request, site, code))


@router.post("/join/{code}")
def enter(request: Request, site: Here, visitor: SignedIn, code: str) -> Response:
    """Join with the account that is signed in."""
    return _redeem(request, site, visitor, code, visitor.account.id)


@router.post("/join/{code}/new", dependencies=[Open])
def enter_new(
    request: Request,
    site: Here,
    visitor: Guest,
    code: str,
    login: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
) -> Response:
    """Make an account, sign it in, join."""
    opens = _opens(request, site, code)
    if opens.entry is not Entry.ENTERED:
        return _page(request, site, visitor, code, opens)
    told = {"login": login.strip(), "name": name.strip()[:200]}
    errors = {}
    if not _LOGIN.fullmatch(told["login"]):
        errors["login"] = "2 to 64 letters, digits, dots or dashes, such as anna.k."
    if not told["name"]:
        errors["name"] = "It stands on your certificate."
    if not people.MIN_PASSWORD <= len(password) <= people.MAX_PASSWORD:
        errors["password"] = f"At least {people.MIN_PASSWORD} characters, please."
    if not errors:
        try:
            with AT_ONCE:
                person_id = people.add_person(site.store, told["login"], told["name"], password=password)
        except UsageError as error:
            taken = "taken" in str(error)
            errors["login" if taken else "password"] = (
                "Somebody has this name already. Take another one, or sign in if it is yours."
                if taken
                else f"{str(error)[:1].upper()}{str(error)[1:]}."
            )
        else:
            return _redeem(request, site, visitor, code, person_id, new=True)
    return _page(request, site, visitor, code, opens, errors=errors, told=told, status_code=422)


def _redeem(
    request: Request, site: Site, visitor: Visitor | None, code: str, person_id: int, *, new: bool = False
) -> Response:
    done = invitations.redeem(site.store, code, person_id)
    if done.course_id is None:
        if done.entry is Entry.UNKNOWN:
            _count(request, site)
        if not new:
            return _page(request, site, visitor, code, Opens(done.entry))
        response = flash.send_on("/", site.secret, _CLOSED[done.entry], kind="problem")
    else:
        welcome = (
            "You take part already." if done.entry is Entry.ALREADY_IN else "Welcome. These are the tasks."
        )
        response = flash.send_on(f"/courses/{done.course_id}", site.secret, welcome)
    account = people.account(site.store, person_id) if new else None
    if account is not None:
        site.sessions.start(response, account, secure=site.secure(request))
    return response


def _opens(request: Request, site: Site, code: str) -> Opens:
    refused = site.rates.full(JOIN_ADDRESS, site.address(request))
    if refused is not None:
        raise too_many(refused)
    found = invitations.look_up(site.store, code)
    if found.entry is Entry.UNKNOWN:
        _count(request, site)
    return found


def _count(request: Request, site: Site) -> None:
    refused = site.rates.take(JOIN_ADDRESS, site.address(request))
    if refused is not None:
        raise too_many(refused)


def _page(
    request: Request,
    site: Site,
    visitor: Visitor | None,
    code: str,
    opens: Opens | None,
    *,
    errors: dict[str, str] | None = None,
    told: dict[str, str] | None = None,
    status_code: int = 200,
) -> Response:
    closed = "" if opens is None else _CLOSED.get(opens.entry, "")
    unknown = opens is not None and opens.entry is Entry.UNKNOWN
    return site.render(
        request,
        "join.html.j2",
        visitor=visitor,
        status_code=(404 if unknown else 410) if closed else status_code,
        code=code,
        opens=opens,
        closed=closed,
        errors=errors or {},
        told=told or {"login": "", "name": ""},
        least=people.MIN_PASSWORD,
    )
