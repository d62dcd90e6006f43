"""Ways to sign in that others vouch for, as their owner adds and removes them on the account's page."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.store.lti.lti_platforms import platforms
from grader.store.people import identities
from grader.store.people.identities import UnlinkResult, WaysIn
from grader.translation import gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Id, SignedIn, not_found
from grader.web.service import ServiceDep
from grader.web.sign_on.problem import SignOnError
from grader.web.staff.form import FormDep

router = APIRouter()
_PLACE = "/account"
_log = logging.getLogger("grader.web")


@router.post("/account/sign-on/{provider_id}/add")
async def add(request: Request, service: ServiceDep, visitor: SignedIn, provider_id: str) -> Response:
    """A page that leads on to the provider, which is asked who this is.

    Begun by a form of ours alone: a link from elsewhere could add an account that somebody else has the key of.
    """
    client = service.openid_clients.get(provider_id)
    if client is None:
        raise not_found()
    address = f"{service.site(request)}/sign-on/{provider_id}/callback"
    pending = service.pending_sign_ons.new(provider_id, address, _PLACE, linking=str(request.state.nonce))
    try:
        url = await client.authorization_url(pending.request, prompt="login")
    except SignOnError as error:
        _log.warning("sign-on came to nothing: %s", error.reason)
        return flash.redirect(_PLACE, service.secret, f"{error.title}. {error.text}", kind="problem")
    response = service.render(
        request, "sign_on_leave.html.j2", visitor=visitor, provider=client.provider, url=url, back=_PLACE
    )
    service.pending_sign_ons.keep(request, response, pending, secure=service.secure(request))
    return response


@router.post("/account/sign-on/{identity_id}/remove")
def remove(
    request: Request, service: ServiceDep, visitor: SignedIn, identity_id: Id, form: FormDep
) -> Response:
    """Take one away, never the last way in."""
    own = identities.sign_on_of(service.store, visitor.account.id).identities
    found = next((one for one in own if one.id == identity_id), None)
    if found is None:
        raise not_found()
    title = service.sign_on.title_of(found.issuer)
    if not is_confirmed(form):
        question = Question(
            gettext("Remove {title}?").format(title=title),
            gettext(
                "It opens your account no more, and roles that its groups gave you end. Who signs in with it again is "
                "somebody new here."
            ),
            gettext("Remove {title}").format(title=title),
            _PLACE,
            fields=form.values,
        )
        return ask_first(service, request, visitor, question)
    issuers = {one.issuer for one in service.sign_on.providers}
    issuers |= {one.terms.issuer for one in platforms(service.store) if one.enabled}
    ways = WaysIn(frozenset(issuers), service.sign_on.local_passwords)
    done = identities.unlink(service.store, visitor.account.id, identity_id, ways)
    if done is UnlinkResult.NONE:
        raise not_found()
    if done is UnlinkResult.LAST:
        text = gettext("{title} is the only way into your account. Add another one first.").format(
            title=title
        )
        return flash.redirect(_PLACE, service.secret, text, kind="problem")
    return flash.redirect(
        _PLACE, service.secret, gettext("{title} opens your account no more.").format(title=title)
    )
