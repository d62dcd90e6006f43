"""Where a launch begins: the platform sends the browser here, and we send it back with a state and a nonce of ours."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from grader.store.lti.lti_platforms import LearningPlatform, platforms_of_issuer
from grader.translation import gettext
from grader.web.lti.arrival import LaunchRefusal
from grader.web.lti.framed import framed_page, is_framed, refused_page
from grader.web.lti.login_state import begin_login
from grader.web.security.access import Public
from grader.web.service import ServiceDep, WebService
from grader.web.staff.form import FormDep

router = APIRouter(dependencies=[Public])
_FIELDS = ("iss", "login_hint", "target_link_uri", "lti_message_hint", "client_id", "lti_deployment_id")
_CHOOSING = "/lti/deep-linking"
_MOST = 4000


@router.get("/lti/login")
async def by_link(request: Request, service: ServiceDep) -> Response:
    """A launch that begins with a link."""
    said = {name: request.query_params.get(name, "")[:_MOST] for name in _FIELDS}
    return await run_in_threadpool(_begin, service, request, said)


@router.post("/lti/login")
def by_form(request: Request, service: ServiceDep, form: FormDep) -> Response:
    """A launch that begins with a form."""
    return _begin(service, request, {name: form.text(name, most=_MOST) for name in _FIELDS})


@router.get("/lti/keys")
def keys(service: ServiceDep) -> dict[str, object]:
    """Our public keys, for platforms."""
    return service.tool_keys.public()


def _begin(service: WebService, request: Request, said: dict[str, str]) -> Response:
    if not said["iss"] or not said["login_hint"]:
        text = gettext("This address is for learning platforms: open the link in your course there.")
        return refused_page(service, request, LaunchRefusal(gettext("Nothing to begin with"), text), 400)
    found = _platform(service, said["iss"], said["client_id"])
    if found is None:
        text = gettext(
            "This grader knows no learning platform {issuer} with that client id. An administrator of the grader "
            "adds it."
        ).format(issuer=repr(said["iss"][:200]))
        return refused_page(service, request, LaunchRefusal(gettext("An unknown platform"), text))
    if is_framed(request) and urlsplit(said["target_link_uri"]).path != _CHOOSING:
        # Begun anew in a window of its own: there no browser keeps cookies back, and our pages refuse to be framed.
        again = f"/lti/login?{urlencode({name: value for name, value in said.items() if value})}"
        return framed_page(service, request, "window.html.j2", address=again)
    secure = service.secure(request)
    begun = begin_login(service.secret, found.id, secure=secure)
    asked = {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": found.terms.client_id,
        "redirect_uri": f"{service.site(request)}/lti/launch",
        "login_hint": said["login_hint"],
        "state": begun.state,
        "nonce": begun.nonce,
    }
    if said["lti_message_hint"]:
        asked["lti_message_hint"] = said["lti_message_hint"]
    joint = "&" if urlsplit(found.terms.auth_url).query else "?"
    response = RedirectResponse(f"{found.terms.auth_url}{joint}{urlencode(asked)}", 303)
    begun.keep(response, secure=secure)
    return response


def _platform(service: WebService, issuer: str, client_id: str) -> LearningPlatform | None:
    found = platforms_of_issuer(service.store, issuer, client_id)
    # A platform that knows us under several names has to say which.
    return found[0] if len(found) == 1 else None
