"""One's own account: tokens for programs, shown once; ways to sign in; signing out everywhere; what is kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from grader.store.people import people, tokens
from grader.store.people.identities import sign_on_of
from grader.store.people.mailboxes import mailbox
from grader.store.tables.api_token import Scope
from grader.translation import N_, gettext
from grader.web import flash
from grader.web.mail_state import mail_problem_text
from grader.web.security.access import Id, SignedIn, Visitor, not_found
from grader.web.service import ServiceDep, WebService

router = APIRouter()

_LIFETIMES = {7: N_("7 days"), 30: N_("30 days"), 180: N_("180 days"), 365: N_("a year")}
_SCOPES = {
    Scope.READ: N_("read: look at courses, attempts and reports"),
    Scope.SUBMIT: N_("submit: hand in and cancel, too"),
    Scope.VERIFY: N_("verify: judge a task's own submissions, too"),
    Scope.MANAGE: N_("manage: everything that your account may do"),
}
_DAY_S = 86400.0
_MOST_TOKENS = 50


@router.get("/account")
def page(request: Request, service: ServiceDep, visitor: SignedIn) -> Response:
    """The account's page."""
    return _page(request, service, visitor)


@router.post("/account/tokens")
def issue(
    request: Request,
    service: ServiceDep,
    visitor: SignedIn,
    name: Annotated[str, Form()] = "",
    scope: Annotated[str, Form()] = Scope.SUBMIT,
    days: Annotated[int, Form()] = 30,
) -> Response:
    """Make a token and show it, this once."""
    name = name.strip()[:120]
    errors = {}
    if not name:
        errors["name"] = gettext("Give it a name, so that you know later which program has it.")
    if scope not in _scopes(visitor):
        errors["scope"] = gettext("Your account cannot give that much away.")
    if days not in _LIFETIMES:
        errors["days"] = gettext("Choose one of these.")
    live = [one for one in tokens.tokens_of(service.store, visitor.account.id) if one.revoked_at is None]
    if any(one.name == name for one in live):
        # Loading the page with a fresh token again sends its form again.
        errors["name"] = gettext(
            "You have a token of this name. It is shown only once: revoke it, or choose another name."
        )
    if len(live) >= _MOST_TOKENS:
        errors["name"] = gettext("You have {number} tokens. Revoke one that you no longer need.").format(
            number=_MOST_TOKENS
        )
    if errors:
        return _page(request, service, visitor, errors=errors, status_code=422)
    token = tokens.issue_token(
        service.store,
        visitor.account.id,
        name,
        Scope(scope),
        lifetime_s=days * _DAY_S,
        actor_id=visitor.account.id,
    )
    return _page(request, service, visitor, token=token, token_name=name)


@router.post("/account/tokens/{token_id}/revoke")
def revoke(service: ServiceDep, visitor: SignedIn, token_id: Id) -> Response:
    """End one of one's own tokens."""
    if not tokens.revoke_token(service.store, visitor.account.id, token_id, actor_id=visitor.account.id):
        raise not_found()
    return flash.redirect("/account", service.secret, gettext("The token is revoked and no longer works."))


@router.post("/account/sign-out-everywhere")
def sign_out_everywhere(request: Request, service: ServiceDep, visitor: SignedIn) -> Response:
    """End the sessions of all browsers, this one included, and all tokens."""
    people.end_sessions(service.store, visitor.account.id, actor_id=visitor.account.id)
    response = flash.redirect(
        "/sign-in", service.secret, gettext("You are signed out in all browsers, and your tokens have ended.")
    )
    service.sessions.end(response, secure=service.secure(request))
    return response


def _scopes(visitor: Visitor) -> dict[Scope, str]:
    return {
        scope: gettext(text)
        for scope, text in _SCOPES.items()
        if visitor.is_staff or scope in (Scope.READ, Scope.SUBMIT)
    }


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    *,
    errors: dict[str, str] | None = None,
    token: str = "",
    token_name: str = "",
    status_code: int = 200,
) -> Response:
    known = tokens.tokens_of(service.store, visitor.account.id)
    own = sign_on_of(service.store, visitor.account.id)
    issuers = {one.issuer for one in own.identities}
    return service.render(
        request,
        "account.html.j2",
        visitor=visitor,
        status_code=status_code,
        tokens=[one for one in known if one.revoked_at is None],
        scopes=_scopes(visitor),
        lifetimes={days: gettext(text) for days, text in _LIFETIMES.items()},
        errors=errors or {},
        token=token,
        token_name=token_name,
        site=service.site(request),
        own=own,
        sign_on=service.sign_on,
        titles={one: service.sign_on.title_of(one) for one in issuers},
        addable=[one for one in service.sign_on.providers if one.issuer not in issuers],
        mail=mailbox(service.store, visitor.account.id),
        mail_problem=mail_problem_text(service.store),
    )
