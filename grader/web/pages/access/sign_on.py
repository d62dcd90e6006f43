"""Signing in by whoever else vouches for somebody: to the provider, back from it, and out of it again.

Its answers are waited for on the event loop, in no thread that others need; whatever is wrong with them ends on a page
that says what to do, and changes nothing.
"""

from __future__ import annotations

import hmac
import logging
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from grader.store.people import identities, invitations, people, sign_ons
from grader.store.people.identities import LinkResult
from grader.store.people.invitations import InvitationResult
from grader.store.people.sign_ons import SignedOn, SignOnRefusal, SignOnTerms
from grader.translation import gettext
from grader.web import flash
from grader.web.security.access import MaybeVisitor, Public, Visitor, not_found, too_many_requests
from grader.web.security.rate_limits import SIGN_ON_ADDRESS
from grader.web.security.sign_in import end_present_session, own_place, start_session
from grader.web.service import ServiceDep, WebService
from grader.web.sign_on import problem
from grader.web.sign_on.openid_client import OpenIdClient
from grader.web.sign_on.pending import PendingSignOn
from grader.web.sign_on.problem import SignOnError
from grader.web.sign_on.vouched_person import VouchedPerson

router = APIRouter(dependencies=[Public])
_log = logging.getLogger("grader.web")
_JOIN = re.compile(r"/join/(\w+)")
_DOWN = ("server_error", "temporarily_unavailable")
_SAID_NO = ("access_denied", "login_required", "interaction_required", "consent_required")


@router.get("/sign-on/{provider_id}")
async def begin(
    request: Request,
    service: ServiceDep,
    visitor: MaybeVisitor,
    provider_id: str,
    next_: Annotated[str, Query(alias="next")] = "/",
) -> Response:
    """Send the browser to the provider; who is signed in already goes on."""
    client, place = _client(service, provider_id), own_place(next_)
    if visitor is not None:
        return RedirectResponse(place, 303)
    await _count(request, service)
    pending = service.pending_sign_ons.new(provider_id, _return_address(service, request, client), place)
    try:
        response: Response = RedirectResponse(await client.authorization_url(pending.request), 303)
    except SignOnError as error:
        return _problem(request, service, visitor, (client, pending), error)
    service.pending_sign_ons.keep(request, response, pending, secure=service.secure(request))
    return response


@router.get("/sign-on/{provider_id}/callback")
async def come_back(
    request: Request, service: ServiceDep, visitor: MaybeVisitor, provider_id: str
) -> Response:
    """What the provider sends the browser back with: sign in, or link, whoever it is."""
    client, secure = _client(service, provider_id), service.secure(request)
    await _count(request, service)
    pending = service.pending_sign_ons.read(request, request.query_params.get("state", ""), secure=secure)
    if pending is None or pending.provider != provider_id:
        nothing = service.pending_sign_ons.new(provider_id, "", "/")
        error = problem.begin_again(f"{provider_id}: no sign-on of this browser has this state")
        return _problem(request, service, visitor, (client, nothing), error)
    try:
        person = await _identify(request, client, pending)
        if not client.provider.admits(person.identity.address):
            raise problem.not_admitted(provider_id, client.provider.title, client.provider.domains)
        if pending.linking:
            response = await run_in_threadpool(_link, request, service, visitor, pending, person)
        else:
            response = await run_in_threadpool(_sign_in, request, service, client, pending, person)
    except SignOnError as error:
        response = _problem(request, service, visitor, (client, pending), error)
    service.pending_sign_ons.drop(response, pending.request.state, secure=secure)
    return response


@router.get("/sign-on/{provider_id}/sign-out")
async def sign_out_there(request: Request, service: ServiceDep, provider_id: str) -> Response:
    """End the browser's session with the provider, too; ours has ended before."""
    client = _client(service, provider_id)
    try:
        url = await client.sign_out_url(f"{service.site(request)}/sign-in")
    except SignOnError as error:
        _log.warning("signing out of %s: %s", provider_id, error.reason)
        url = None
    if url is None:
        text = gettext("{title} tells no way to sign out from here. Sign out on its own pages.").format(
            title=client.provider.title
        )
        return flash.redirect("/sign-in", service.secret, text, kind="problem")
    return RedirectResponse(url, 303)


def _client(service: WebService, provider_id: str) -> OpenIdClient:
    client = service.openid_clients.get(provider_id)
    if client is None:
        raise not_found()
    return client


async def _count(request: Request, service: WebService) -> None:
    refused = await service.rate_limiter.hit_async(SIGN_ON_ADDRESS, service.address(request))
    if refused is not None:
        raise too_many_requests(refused)


def _return_address(service: WebService, request: Request, client: OpenIdClient) -> str:
    return f"{service.site(request)}/sign-on/{client.provider.id}/callback"


async def _identify(request: Request, client: OpenIdClient, pending: PendingSignOn) -> VouchedPerson:
    told, title = request.query_params, client.provider.title
    error, code = told.get("error"), told.get("code")
    if error is not None:
        name = error if error in (*_DOWN, *_SAID_NO) else "another error"
        reason = f"{client.provider.id}: the browser came back with {name}"
        if error in _DOWN:
            raise problem.unreachable(title, reason)
        raise problem.refused_there(title, reason) if error in _SAID_NO else problem.not_set_up(title, reason)
    if not code:
        raise problem.begin_again(f"{client.provider.id}: the browser came back without a code")
    return await client.identify(pending.request, code, told.get("iss"))


def _sign_in(
    request: Request, service: WebService, client: OpenIdClient, pending: PendingSignOn, person: VouchedPerson
) -> Response:
    provider = client.provider
    terms = SignOnTerms(
        provider.link_by_address, provider.open_accounts or _is_invited(service, pending.place)
    )
    found = sign_ons.sign_on(service.store, person.identity, terms, person.roles)
    if isinstance(found, SignOnRefusal):
        raise problem.refused_here(provider.title, found)
    account = people.account(service.store, found.person_id)
    if account is None:
        raise problem.begin_again(f"{provider.id}: the account was erased just now")
    end_present_session(service, request)
    response = flash.redirect(pending.place, service.secret, _welcome(found, provider.title))
    start_session(service, request, response, account, provider=provider.id)
    return response


def _is_invited(service: WebService, place: str) -> bool:
    """Whether somebody came with a code that lets people into a course: such people may have an account."""
    code = _JOIN.fullmatch(place)
    return code is not None and invitations.look_up(service.store, code[1]).result is InvitationResult.ENTERED


def _welcome(found: SignedOn, title: str) -> str:
    if found.made:
        return gettext("Welcome. An account was made for you.")
    if found.linked:
        return gettext(
            "{title} opens your account here from now on. A password that it had, and tokens, have ended; make new "
            "tokens on your account page."
        ).format(title=title)
    return ""


def _link(
    request: Request,
    service: WebService,
    visitor: Visitor | None,
    pending: PendingSignOn,
    person: VouchedPerson,
) -> Response:
    if visitor is None or not hmac.compare_digest(str(request.state.nonce), pending.linking):
        raise problem.begin_again(f"{pending.provider}: the session that asked for it has ended")
    done = identities.link(service.store, visitor.account.id, person.identity)
    who = person.identity.address or person.identity.login or person.identity.name
    if done is LinkResult.ANOTHERS:
        text = gettext(
            "{who} opens another account here already. Sign in with that one; if you want to be rid of it, ask an "
            "administrator."
        ).format(who=who)
        return flash.redirect(pending.place, service.secret, text, kind="problem")
    linked = done is LinkResult.LINKED
    text = gettext("{who} opens this account from now on.") if linked else gettext("{who} opens it already.")
    return flash.redirect(pending.place, service.secret, text.format(who=who))


def _problem(
    request: Request,
    service: WebService,
    visitor: Visitor | None,
    begun: tuple[OpenIdClient, PendingSignOn],
    error: SignOnError,
) -> Response:
    client, pending = begun
    _log.warning("sign-on came to nothing: %s", error.reason)
    return service.render(
        request,
        "sign_on_problem.html.j2",
        visitor=visitor,
        status_code=error.status,
        headers={"Retry-After": "60"} if error.status == 503 else None,
        problem=error,
        provider=client.provider,
        place=pending.place,
        linking=bool(pending.linking),
    )
