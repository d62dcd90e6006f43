"""One's own mail: where it goes, proved by a link that is mailed there, and what of it one wants."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.delivery.mail.links import AddressToConfirm, read_confirm_token, read_off_token
from grader.errors import UsageError
from grader.store.delivery.mail_requests import request_confirmation
from grader.store.people import mailboxes
from grader.store.people.mailboxes import mailbox
from grader.store.tables.mail import MailKind
from grader.translation import N_, gettext, languages
from grader.web import flash
from grader.web.security.access import MaybeVisitor, Public, SignedIn, Visitor, not_found, too_many_requests
from grader.web.security.rate_limits import MAIL_CONFIRMATIONS
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter()
_HERE = "/account#mail"
# Why an address is not taken, as the store says it.
_PROBLEMS = (
    N_("this is no mail address; one looks like name@example.org"),
    N_("this site sends no mail: whoever runs it sets it up"),
)


@router.post("/account/mail/choices")
def choose(service: ServiceDep, visitor: SignedIn, form: FormDep) -> Response:
    """Keep what is wanted."""
    mailboxes.choose(service.store, visitor.account.id, {kind: form.ticked(kind) for kind in MailKind})
    language = form.text("language")
    if language in languages():
        mailboxes.set_language(service.store, visitor.account.id, language)
    return flash.redirect(_HERE, service.secret, gettext("Your choice is kept."))


@router.post("/account/mail/address")
def change_address(service: ServiceDep, visitor: SignedIn, form: FormDep) -> Response:
    """Mail a link to another address, which holds once the link is followed; without one there is none at once."""
    wanted = form.text("address", most=300)
    if not wanted:
        mailboxes.set_address(service.store, visitor.account.id, None, actor_id=visitor.account.id)
        return flash.redirect(_HERE, service.secret, gettext("You are mailed nothing any more."))
    refused = service.rate_limiter.hit(MAIL_CONFIRMATIONS, str(visitor.account.id))
    if refused is not None:
        raise too_many_requests(refused)
    try:
        address = request_confirmation(service.store, visitor.account.id, wanted)
    except UsageError as error:
        return flash.redirect(
            _HERE,
            service.secret,
            gettext("Not changed: {problem}.").format(problem=gettext(str(error))),
            kind="problem",
        )
    text = gettext(
        "A link is on its way to {address}. Follow it to be mailed there; until then nothing changes."
    ).format(address=address)
    return flash.redirect(_HERE, service.secret, text, kind="note")


@router.get("/account/mail/confirm/{token}")
def ask_to_confirm(request: Request, service: ServiceDep, visitor: SignedIn, token: str) -> Response:
    """What following the link leads to: programs that look at links in mails press no button."""
    wanted = _wanted(service, visitor, token)
    return service.render(request, "mail_confirm.html.j2", visitor=visitor, address=wanted.address)


@router.post("/account/mail/confirm/{token}")
def confirm(service: ServiceDep, visitor: SignedIn, token: str) -> Response:
    """Mail goes there from now on."""
    wanted = _wanted(service, visitor, token)
    mailboxes.set_address(service.store, visitor.account.id, wanted.address, actor_id=visitor.account.id)
    return flash.redirect(
        _HERE, service.secret, gettext("You are mailed at {address}.").format(address=wanted.address)
    )


@router.get("/mail/off/{token}", dependencies=[Public])
def ask_to_end(request: Request, service: ServiceDep, visitor: MaybeVisitor, token: str) -> Response:
    """Whether no more mails of a kind are wanted; signed in or not."""
    person_id, kind = _off(service, token)
    return _off_page(request, service, visitor, (person_id, kind))


@router.post("/mail/off/{token}", dependencies=[Public])
def end(request: Request, service: ServiceDep, visitor: MaybeVisitor, token: str) -> Response:
    """No more mails of a kind."""
    person_id, kind = _off(service, token)
    mailboxes.choose(service.store, person_id, {kind: False})
    return _off_page(request, service, visitor, (person_id, kind))


def _off_page(
    request: Request, service: WebService, visitor: Visitor | None, who: tuple[int, MailKind]
) -> Response:
    box = mailbox(service.store, who[0])
    if box is None:
        raise not_found()
    return service.render(
        request, "mail_off.html.j2", visitor=visitor, kind=who[1], wanted=box.wanted[who[1]]
    )


def _off(service: WebService, token: str) -> tuple[int, MailKind]:
    found = read_off_token(service.secret, token)
    if found is None or mailbox(service.store, found[0]) is None:
        raise not_found()
    return found


def _wanted(service: WebService, visitor: Visitor, token: str) -> AddressToConfirm:
    found = read_confirm_token(service.secret, token)
    if found is None or found.person_id != visitor.account.id:
        raise not_found()
    return found
