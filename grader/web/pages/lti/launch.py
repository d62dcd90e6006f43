"""A launch: the platform's word for who comes and what for, believed or refused; then on to where it leads."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from grader.lti.launch_message import (
    LaunchMessage,
    LaunchRefusedError,
    MessageType,
    UnknownDeploymentError,
    read_launch,
)
from grader.lti.platform_http import PlatformError
from grader.store.lti.lti_launches import launch, record_launch, set_launched_person
from grader.store.lti.lti_platforms import LearningPlatform, note_asked_deployment, platform
from grader.store.people.people import Account, account
from grader.store.tables.person import Role
from grader.translation import gettext
from grader.web.lti import arrival
from grader.web.lti.arrival import Arrival, LaunchRefusal
from grader.web.lti.content_choice import choice_page
from grader.web.lti.framed import framed_page, is_framed, refused_page
from grader.web.lti.login_state import LoginState, drop_state, read_state
from grader.web.security.access import Public
from grader.web.security.sign_in import end_present_session, start_session
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter(dependencies=[Public])
_MOST = 100_000


@router.post("/lti/launch")
def begin(request: Request, service: ServiceDep, form: FormDep) -> Response:
    """The answer of a platform to what began at `/lti/login`."""
    secure = service.secure(request)
    state = read_state(request, service.secret, form.text("state"), secure=secure)
    if isinstance(state, str):
        return refused_page(service, request, _no_further(state))
    found = platform(service.store, state.platform_id)
    if found is None or not found.enabled:
        return refused_page(service, request, _no_further(gettext("The platform is switched off here.")))
    told = _message(service, found, state, form.text("id_token", most=_MOST), form.text("error", most=200))
    response = (
        refused_page(service, request, told)
        if isinstance(told, LaunchRefusal)
        else _go_on(service, request, _recorded(service, found, state, told))
    )
    drop_state(response, state.nonce, secure=secure)
    return response


def _message(
    service: WebService, found: LearningPlatform, state: LoginState, token: str, error: str
) -> LaunchMessage | LaunchRefusal:
    if not token:
        text = (
            gettext("Your platform answered {error}. Sign in there and follow the link once more.")
            if error
            else gettext(
                "Your platform did not say who you are. Sign in there and follow the link once more."
            )
        )
        return _no_further(text.format(error=repr(error)))
    try:
        return read_launch(token, found.terms, state.nonce)
    except UnknownDeploymentError as unknown:
        note_asked_deployment(service.store, found.id, unknown.deployment)
        text = gettext(
            "The deployment {deployment} of this platform is not allowed yet; an administrator of the grader allows it "
            "on the platform's page."
        )
        return _no_further(text.format(deployment=f"{unknown.deployment!r:.80}"))
    except LaunchRefusedError as refused:
        return _no_further(
            gettext("What {platform} sent is not believed: {reason}.").format(
                platform=found.terms.name, reason=refused
            )
        )
    except PlatformError as away:
        return _no_further(gettext("{problem} Try again in a minute.").format(problem=_sentence(away)))


def _recorded(
    service: WebService, found: LearningPlatform, state: LoginState, message: LaunchMessage
) -> Arrival | LaunchRefusal:
    said = message.model_dump(mode="json", by_alias=True, exclude_none=True)
    launch_id = record_launch(service.store, found.id, state.nonce, said)
    kept = None if launch_id is None else launch(service.store, launch_id)
    if kept is None:
        return _no_further(gettext("This launch was used before. Follow the link once more."))
    return Arrival(kept, message, found)


def _go_on(service: WebService, request: Request, came: Arrival | LaunchRefusal) -> Response:
    if isinstance(came, LaunchRefusal):
        return refused_page(service, request, came)
    who = _account(service, came)
    if isinstance(who, LaunchRefusal):
        return refused_page(service, request, who)
    if who is not None:
        set_launched_person(service.store, came.launch.id, who.id)
    if came.message.message_type is MessageType.DEEP_LINKING:
        return choice_page(service, request, came, who)
    if is_framed(request):
        address = f"/lti/continue?launch={arrival.launch_token(service, came.launch.id)}"
        return framed_page(service, request, "window.html.j2", address=address)
    response = RedirectResponse("/lti/continue", 303)
    arrival.keep_launch(service, request, response, came.launch.id)
    if who is not None:
        end_present_session(service, request)
        start_session(service, request, response, who)
    return response


def _account(service: WebService, came: Arrival) -> Account | LaunchRefusal | None:
    """Whose account it is; None: somebody who teaches comes for the first time, and may have one here already."""
    known = arrival.known_person(service.store, came)
    if known is not None:
        may = arrival.may_be_launched(account(service.store, known))
        return may if isinstance(may, LaunchRefusal) else arrival.account_of_arrival(service, came)
    if came.message.role in (Role.INSTRUCTOR, Role.ASSISTANT):
        return None
    return arrival.account_of_arrival(service, came)


def _no_further(text: str) -> LaunchRefusal:
    return LaunchRefusal(gettext("The launch came no further"), text)


def _sentence(error: Exception) -> str:
    text = f"{error}"
    return f"{text[:1].upper()}{text[1:]}."
