"""Dynamic registration 1.0: a platform tells us where it is asked, and we tell it where we are."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.lti.launch_message import Address, MessageType, Name
from grader.lti.platform_http import PlatformError, ask, platform_address
from grader.lti.roster import SCOPE as ROSTER_SCOPE
from grader.lti.scores import LINE_ITEM_SCOPE
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.lti.lti_scores import SCORE_SCOPE

_PLATFORM = "https://purl.imsglobal.org/spec/lti-platform-configuration"
_TOOL = "https://purl.imsglobal.org/spec/lti-tool-configuration"
SCOPES = (LINE_ITEM_SCOPE, SCORE_SCOPE, ROSTER_SCOPE)
_TITLE = "Grader"
_ABOUT = "Judges training scripts by running them on several ranks."


class _Product(BaseModel):
    model_config = ConfigDict(extra="ignore")

    product_family_code: str = "platform"


class PlatformConfiguration(BaseModel):
    """What a platform publishes about itself."""

    model_config = ConfigDict(extra="ignore")

    issuer: Name
    authorization_endpoint: Address
    token_endpoint: Address
    jwks_uri: Address
    registration_endpoint: Address
    authorization_server: Address | None = None
    product: _Product = Field(default=_Product(), alias=_PLATFORM)

    @property
    def name(self) -> str:
        """What people call it until its administrator says otherwise."""
        family = self.product.product_family_code.strip()[:40] or "platform"
        return f"{family.capitalize()} at {urlsplit(self.issuer).hostname or self.issuer}"[:120]


def read_configuration(url: str) -> PlatformConfiguration:
    """What the platform says of itself at this address, which must be one of its own.

    Raises:
        PlatformError: it cannot be read, or speaks for another host.
    """
    try:
        found = PlatformConfiguration.model_validate(ask("GET", url).json())
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise PlatformError(f"the platform's configuration lacks or spoils {place}", passing=False) from None
    # Whoever could speak for another's issuer could sign in with its people's identities.
    if urlsplit(found.issuer).hostname != urlsplit(url).hostname:
        raise PlatformError("this configuration speaks for an issuer of another host", passing=False)
    for one in (
        found.authorization_endpoint,
        found.token_endpoint,
        found.jwks_uri,
        found.registration_endpoint,
    ):
        problem = platform_address(one)
        if problem is not None:
            raise PlatformError(f"{one[:200]}: {problem}", passing=False)
    return found


def register_tool(found: PlatformConfiguration, token: str, site: str) -> PlatformTerms:
    """Register ourselves, who are reached at `site`, and return how the platform is known from now on.

    Raises:
        PlatformError: it did not take us.
    """
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    given = ask("POST", found.registration_endpoint, headers=headers, content=tool_configuration(site)).json()
    client_id = given.get("client_id") if isinstance(given, dict) else None
    if not isinstance(client_id, str) or not 0 < len(client_id) <= 255:
        raise PlatformError("the platform gave us no client id", passing=False)
    ours = given.get(_TOOL)
    deployment = ours.get("deployment_id") if isinstance(ours, dict) else None
    return PlatformTerms(
        name=found.name,
        issuer=found.issuer,
        client_id=client_id,
        auth_url=found.authorization_endpoint,
        token_url=found.token_endpoint,
        jwks_url=found.jwks_uri,
        token_audience=found.authorization_server,
        deployments=(str(deployment)[:255],) if deployment else (),
    )


def tool_configuration(site: str) -> dict[str, Any]:
    """What we are and where: as platforms take it when a tool registers."""
    launch, chosen = f"{site}/lti/launch", f"{site}/lti/deep-linking"
    return {
        "application_type": "web",
        "client_name": _TITLE,
        "client_uri": site,
        "grant_types": ["client_credentials", "implicit"],
        "response_types": ["id_token"],
        "initiate_login_uri": f"{site}/lti/login",
        "redirect_uris": [launch],
        "jwks_uri": f"{site}/lti/keys",
        "token_endpoint_auth_method": "private_key_jwt",
        "scope": " ".join(SCOPES),
        _TOOL: {
            "domain": urlsplit(site).netloc,
            "target_link_uri": launch,
            "description": _ABOUT,
            "claims": ["iss", "sub", "name", "given_name", "family_name", "email"],
            "messages": [
                {"type": MessageType.RESOURCE_LINK.value, "target_link_uri": launch, "label": _TITLE},
                {"type": MessageType.DEEP_LINKING.value, "target_link_uri": chosen, "label": _TITLE},
            ],
        },
    }
