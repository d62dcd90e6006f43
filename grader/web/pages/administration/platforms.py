"""Learning platforms, for administrators: which may launch the grader, what they may, and how another one is added."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from grader.errors import UsageError
from grader.lti.platform_http import platform_address
from grader.store.lti import lti_platforms
from grader.store.lti.lti_platforms import LearningPlatform, PlatformTerms
from grader.store.lti.lti_scores import tell_platform_again
from grader.translation import N_, counted, gettext
from grader.web import flash
from grader.web.confirmation import Question, ask_first, is_confirmed
from grader.web.security.access import Admin, Id, Visitor, not_found
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep, SubmittedForm

router = APIRouter()
_AT = "/admin/platforms"
_MOST_DEPLOYMENTS = 50
# What may be wrong with an address, as `platform_address` says it.
_PROBLEMS = (
    N_("This is no address."),
    N_("Write an address that begins with https://."),
    N_("Over plain http anybody on the way could pose as the platform. Write https://."),
)


@router.get("/admin/platforms")
def show(request: Request, service: ServiceDep, visitor: Admin) -> HTMLResponse:
    """All of them, what they are told of us, and the form for one more."""
    return _page(request, service, visitor, SubmittedForm({}, {}))


@router.post("/admin/platforms")
def add(request: Request, service: ServiceDep, visitor: Admin, form: FormDep) -> Response:
    """One more, by hand."""
    terms = _terms(form)
    if terms is not None:
        try:
            made = lti_platforms.add_platform(service.store, terms, actor_id=visitor.account.id)
        except UsageError:
            form.errors["issuer"] = _taken(terms)
        else:
            return flash.redirect(
                f"{_AT}/{made}",
                service.secret,
                gettext("{name} may launch the grader now.").format(name=terms.name),
            )
    return _page(request, service, visitor, form, status_code=422)


@router.post("/admin/platforms/registration")
def offer(request: Request, service: ServiceDep, visitor: Admin) -> HTMLResponse:
    """A link by which one platform registers itself; shown once."""
    token = lti_platforms.offer_registration(service.store, actor_id=visitor.account.id)
    link = f"{service.site(request)}/lti/register?token={token}"
    return _page(request, service, visitor, SubmittedForm({}, {}), link=link)


@router.get("/admin/platforms/{platform_id}")
def show_one(request: Request, service: ServiceDep, visitor: Admin, platform_id: Id) -> HTMLResponse:
    """One of them, and how it is known."""
    found = _found(service, platform_id)
    terms = found.terms
    values = {
        name: [str(getattr(terms, name) or "")]
        for name in ("name", "issuer", "client_id", "auth_url", "token_url", "jwks_url", "token_audience")
    }
    values["deployments"] = ["\n".join(terms.deployments)]
    values |= {name: ["on"] for name in ("link_by_address", "make_courses") if getattr(terms, name)}
    return _one(request, service, visitor, found, SubmittedForm(values, {}))


@router.post("/admin/platforms/{platform_id}")
def change(request: Request, service: ServiceDep, visitor: Admin, platform_id: Id, form: FormDep) -> Response:
    """Know it otherwise."""
    found, terms = _found(service, platform_id), _terms(form)
    if terms is not None:
        try:
            lti_platforms.change_platform(service.store, found.id, terms, actor_id=visitor.account.id)
        except UsageError:
            form.errors["issuer"] = _taken(terms)
        else:
            return flash.redirect(f"{_AT}/{found.id}", service.secret, gettext("Saved."))
    return _one(request, service, visitor, found, form, 422)


@router.post("/admin/platforms/{platform_id}/deployment")
def allow(service: ServiceDep, visitor: Admin, platform_id: Id, form: FormDep) -> Response:
    """Allow the deployment that asked."""
    found, asked = _found(service, platform_id), form.text("deployment", most=255)
    if asked and asked == found.asked_deployment:
        lti_platforms.allow_deployment(service.store, found.id, asked, actor_id=visitor.account.id)
    return flash.redirect(
        f"{_AT}/{found.id}",
        service.secret,
        gettext("Deployment {deployment} may launch the grader now.").format(deployment=asked),
    )


@router.post("/admin/platforms/{platform_id}/enabled")
def switch(service: ServiceDep, visitor: Admin, platform_id: Id, form: FormDep) -> Response:
    """Switch it off, or on again; then it is told what it missed."""
    found, on = _found(service, platform_id), form.one_of("enabled", ("yes", "no")) == "yes"
    lti_platforms.set_platform_enabled(service.store, found.id, on, actor_id=visitor.account.id)
    if on:
        tell_platform_again(service.store, found.id)
    said = (
        gettext("{name} may launch the grader again.")
        if on
        else gettext("{name} launches nothing and is told nothing any more.")
    )
    return flash.redirect(f"{_AT}/{found.id}", service.secret, said.format(name=found.terms.name))


@router.post("/admin/platforms/{platform_id}/delete")
def delete(request: Request, service: ServiceDep, visitor: Admin, platform_id: Id, form: FormDep) -> Response:
    """Forget it, if that is meant."""
    found = _found(service, platform_id)
    if not is_confirmed(form):
        number = lti_platforms.num_connected(service.store).get(found.id, 0)
        text = counted(
            "%(num)s course is connected to it, and will be no more: nobody comes in by it, and no grade goes out. "
            "Courses, accounts and grades stay here; accounts that only it opens need another way in.",
            "%(num)s courses are connected to it, and will be no more: nobody comes in by it, and no grade goes out. "
            "Courses, accounts and grades stay here; accounts that only it opens need another way in.",
            number,
        )
        question = Question(
            gettext("Delete {name}?").format(name=found.terms.name),
            text,
            gettext("Delete it"),
            f"{_AT}/{found.id}",
        )
        return ask_first(service, request, visitor, question)
    lti_platforms.delete_platform(service.store, found.id, actor_id=visitor.account.id)
    return flash.redirect(_AT, service.secret, gettext("{name} is forgotten.").format(name=found.terms.name))


def _terms(form: SubmittedForm) -> PlatformTerms | None:
    """What the form says, or None: something in it cannot be used."""
    name, client_id = (
        form.needed("name", gettext("A name")),
        form.needed("client_id", gettext("The client id")),
    )
    issuer = form.needed("issuer", gettext("The issuer"))
    for field in ("auth_url", "token_url", "jwks_url"):
        problem = platform_address(form.text(field)) if form.needed(field, gettext("This address")) else None
        if problem is not None:
            form.errors[field] = gettext(problem)
    for field in ("issuer", "client_id"):
        if len(form.text(field)) > 255:
            form.errors[field] = gettext("At most {number} characters.").format(number=255)
    deployments = tuple(
        dict.fromkeys(one.strip() for one in form.text("deployments").splitlines() if one.strip())
    )
    if len(deployments) > _MOST_DEPLOYMENTS or any(len(one) > 255 for one in deployments):
        form.errors["deployments"] = gettext("At most {number}, each of at most {length} characters.").format(
            number=_MOST_DEPLOYMENTS, length=255
        )
    if not form.good:
        return None
    return PlatformTerms(
        name=name[:120],
        issuer=issuer,
        client_id=client_id,
        auth_url=form.text("auth_url"),
        token_url=form.text("token_url"),
        jwks_url=form.text("jwks_url"),
        token_audience=form.text("token_audience") or None,
        deployments=deployments,
        link_by_address=form.ticked("link_by_address"),
        make_courses=form.ticked("make_courses"),
    )


def _taken(terms: PlatformTerms) -> str:
    text = gettext("Another platform is {issuer} with the client id {client_id}.")
    return text.format(issuer=terms.issuer, client_id=terms.client_id)


def _found(service: WebService, platform_id: int) -> LearningPlatform:
    found = lti_platforms.platform(service.store, platform_id)
    if found is None:
        raise not_found()
    return found


def _page(
    request: Request,
    service: WebService,
    visitor: Visitor,
    form: SubmittedForm,
    *,
    link: str = "",
    status_code: int = 200,
) -> HTMLResponse:
    return service.render(
        request,
        "staff/admin_platforms.html.j2",
        visitor=visitor,
        status_code=status_code,
        platforms=lti_platforms.platforms(service.store),
        connected=lti_platforms.num_connected(service.store),
        site=service.site(request),
        form=form,
        link=link,
    )


def _one(
    request: Request,
    service: WebService,
    visitor: Visitor,
    found: LearningPlatform,
    form: SubmittedForm,
    status_code: int = 200,
) -> HTMLResponse:
    return service.render(
        request,
        "staff/admin_platform.html.j2",
        visitor=visitor,
        status_code=status_code,
        platform=found,
        at=f"{_AT}/{found.id}",
        site=service.site(request),
        form=form,
    )
