"""Where a platform registers itself: by a link that an administrator of ours gave to its administrator, once."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from grader.errors import UsageError
from grader.lti.platform_http import PlatformError
from grader.lti.registration import PlatformConfiguration, read_configuration, register_tool
from grader.store.lti.lti_platforms import (
    give_back_registration,
    register,
    registration_open,
    take_registration,
)
from grader.translation import gettext
from grader.web.lti.arrival import LaunchRefusal
from grader.web.lti.framed import framed_page, refused_page
from grader.web.security.access import Public
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter(dependencies=[Public])
_MOST = 4000


@router.get("/lti/register")
def ask(
    request: Request,
    service: ServiceDep,
    token: str = "",
    openid_configuration: str = "",
    registration_token: str = "",
) -> Response:
    """Who wants to be registered, and the button that does it."""
    if not registration_open(service.store, token):
        return refused_page(service, request, _ended())
    if not openid_configuration:
        text = gettext(
            "This address is for your learning platform: paste it there, where tools register themselves."
        )
        return refused_page(service, request, LaunchRefusal(gettext("Not here"), text), 400)
    found = _configuration(openid_configuration[:_MOST])
    if isinstance(found, LaunchRefusal):
        return refused_page(service, request, found, 400)
    return framed_page(
        service,
        request,
        "register.html.j2",
        found=found,
        token=token,
        address=openid_configuration[:_MOST],
        platform_token=registration_token[:_MOST],
        site=service.site(request),
    )


@router.post("/lti/register")
def do_register(request: Request, service: ServiceDep, form: FormDep) -> Response:
    """Register, with the platform and here."""
    token = form.text("token")
    if not take_registration(service.store, token):
        return refused_page(service, request, _ended())
    done = _register(
        service,
        request,
        token,
        form.text("openid_configuration", most=_MOST),
        form.text("registration_token", most=_MOST),
    )
    if isinstance(done, LaunchRefusal):
        # Nothing came of it: the same link may be tried again.
        give_back_registration(service.store, token)
        return refused_page(service, request, done, 400)
    return framed_page(service, request, "registered.html.j2", name=done)


def _register(
    service: WebService, request: Request, token: str, address: str, platform_token: str
) -> str | LaunchRefusal:
    found = _configuration(address)
    if isinstance(found, LaunchRefusal):
        return found
    try:
        terms = register_tool(found, platform_token, service.site(request))
        register(service.store, token, terms)
    except (PlatformError, UsageError) as error:
        return LaunchRefusal(gettext("The registration came to nothing"), f"{error}.")
    return terms.name


def _ended() -> LaunchRefusal:
    return LaunchRefusal(
        gettext("This link has ended"),
        gettext(
            "A registration link holds for an hour and for one platform. An administrator of the grader makes another."
        ),
    )


def _configuration(address: str) -> PlatformConfiguration | LaunchRefusal:
    try:
        return read_configuration(address)
    except PlatformError as error:
        return LaunchRefusal(gettext("The platform cannot be registered"), f"{error}.")
