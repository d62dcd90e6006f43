"""What a learning platform says in a launch: an ID token, believed only where every word of it holds.

Checked as LTI 1.3 and the security framework 1.0 want it: the signature by a key that the platform publishes, RS256
alone; issuer, audience, authorized party, times, nonce, version, deployment and message. Whether the nonce was used
before is the caller's to find out. What is read of the token is a `LaunchMessage`, and nothing else of it is kept.
"""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Annotated, Any, TypeGuard

from joserfc import jws, jwt
from joserfc.errors import JoseError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from grader.errors import UsageError
from grader.lti.platform_keys import platform_key
from grader.lti.tool_keys import ALGORITHM
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.tables.person import Role

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
DEEP_LINKING = "https://purl.imsglobal.org/spec/lti-dl/claim/"
ROSTER = "https://purl.imsglobal.org/spec/lti-nrps/claim/namesroleservice"
GRADES = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
VERSION = "1.3.0"
SKEW_S, OLDEST_S = 60, 600
"""By how much clocks may differ; how long ago a token may have been made."""
_MOST_BYTES = 64 << 10
_ROLE = "http://purl.imsglobal.org/vocab/lis/v2/membership"

Name = Annotated[str, StringConstraints(max_length=255)]
Address = Annotated[str, StringConstraints(max_length=2000)]


class LaunchRefusedError(UsageError):
    """A launch is not believed; the text says which word of it does not hold."""


class UnknownDeploymentError(LaunchRefusedError):
    """All of it is true, and it comes from a place in the platform that nobody allowed: `deployment`."""

    def __init__(self, deployment: str) -> None:
        super().__init__(
            f"the deployment {deployment!r:.80} of this platform is not allowed yet; an administrator of the grader "
            "allows it on the platform's page"
        )
        self.deployment = deployment


class MessageType(StrEnum):
    """What is to be done."""

    RESOURCE_LINK = "LtiResourceLinkRequest"
    DEEP_LINKING = "LtiDeepLinkingRequest"


class _Claims(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ResourceLink(_Claims):
    """The link in the platform's course that was followed."""

    id: Name
    title: str | None = None


class LaunchContext(_Claims):
    """The platform's course."""

    id: Name
    label: str | None = None
    title: str | None = None


class RosterService(_Claims):
    """Where the course's people are read."""

    context_memberships_url: Address


class GradeService(_Claims):
    """Where grades are told, and what is allowed there."""

    scope: list[Name] = []
    lineitems: Address | None = None
    lineitem: Address | None = None


class DeepLinkingSettings(_Claims):
    """What the platform takes, and where it wants the answer."""

    deep_link_return_url: Address
    accept_types: list[str]
    accept_multiple: bool = True
    accept_lineitem: bool = True
    data: Annotated[str, StringConstraints(max_length=20_000)] | None = None


class LaunchMessage(_Claims):
    """A launch, as far as we use it."""

    sub: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    name: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    email: str | None = None
    message_type: MessageType = Field(alias=f"{CLAIM}message_type")
    deployment_id: Annotated[str, StringConstraints(min_length=1, max_length=255)] = Field(
        alias=f"{CLAIM}deployment_id"
    )
    roles: list[str] = Field(default=[], alias=f"{CLAIM}roles")
    resource_link: ResourceLink | None = Field(default=None, alias=f"{CLAIM}resource_link")
    context: LaunchContext | None = Field(default=None, alias=f"{CLAIM}context")
    custom: dict[str, Any] = Field(default={}, alias=f"{CLAIM}custom")
    roster: RosterService | None = Field(default=None, alias=ROSTER)
    grades: GradeService | None = Field(default=None, alias=GRADES)
    deep_linking: DeepLinkingSettings | None = Field(
        default=None, alias=f"{DEEP_LINKING}deep_linking_settings"
    )

    @property
    def person_name(self) -> str:
        """What the person is called, as far as the platform tells."""
        return person_name(self.name, self.given_name, self.family_name)

    @property
    def role(self) -> Role | None:
        """What they are in the platform's course; None: a mentor, who sees one learner there and none here."""
        return course_role(self.roles)


def person_name(name: str | None, given: str | None, family: str | None) -> str:
    """One name from what a platform tells; "" where it tells none."""
    return (name or " ".join(one for one in (given, family) if one)).strip()[:200]


def course_role(roles: list[str]) -> Role | None:
    """The role in a course that these roles of a platform mean; those that somebody has elsewhere mean nothing.

    None: a mentor. They look after one learner there; our observers see all of them, so nobody becomes one by that.
    """
    own = {one.removeprefix(f"{_ROLE}#") for one in roles}
    own |= {one.removeprefix(f"{_ROLE}/") for one in roles if one.startswith(f"{_ROLE}/")}
    # Some platforms call an assistant an instructor, too.
    if any(one.endswith("#TeachingAssistant") for one in own) or "TeachingAssistant" in own:
        return Role.ASSISTANT
    if "Instructor" in own or any(one.startswith("Instructor#") for one in own):
        return Role.INSTRUCTOR
    if "Mentor" in own and "Learner" not in own:
        return None
    return Role.LEARNER


def read_launch(token: str, platform: PlatformTerms, nonce: str) -> LaunchMessage:
    """The message of an ID token that this platform signed in answer to this nonce.

    Raises:
        LaunchRefusedError: some word of it does not hold.
        PlatformError: the platform's keys cannot be read just now.
    """
    claims = _signed(token, platform)
    _check_party(claims, platform)
    _check_times(claims)
    if claims.get("nonce") != nonce:
        raise LaunchRefusedError("its nonce is not the one that it was asked with")
    if claims.get(f"{CLAIM}version") != VERSION:
        raise LaunchRefusedError(f"it is not of LTI version {VERSION}")
    try:
        message = LaunchMessage.model_validate(claims)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part).rpartition("/")[2] for part in first["loc"])
        raise LaunchRefusedError(
            f"its claim {place or 'set'} is not as it should be: {first['msg']}"
        ) from None
    if message.message_type is MessageType.DEEP_LINKING and message.deep_linking is None:
        raise LaunchRefusedError("it asks for deep linking and says nothing of where the answer goes")
    if message.message_type is MessageType.RESOURCE_LINK and message.resource_link is None:
        raise LaunchRefusedError("it follows a link and does not say which")
    if message.deployment_id not in platform.deployments:
        raise UnknownDeploymentError(message.deployment_id)
    return message


def _signed(token: str, platform: PlatformTerms) -> dict[str, Any]:
    if len(token) > _MOST_BYTES:
        raise LaunchRefusedError("it is far too long")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError):
        raise LaunchRefusedError("it is no signed token") from None
    if header.get("alg") != ALGORITHM:
        raise LaunchRefusedError(f"it is not signed with {ALGORITHM}")
    kid = header.get("kid")
    key = platform_key(platform.jwks_url, kid) if isinstance(kid, str) else None
    if key is None:
        raise LaunchRefusedError("it is signed with a key that the platform does not publish")
    try:
        claims = jwt.decode(token, key, algorithms=[ALGORITHM]).claims
    except (JoseError, ValueError):
        raise LaunchRefusedError("its signature does not hold") from None
    return dict(claims)


def _check_party(claims: dict[str, Any], platform: PlatformTerms) -> None:
    if claims.get("iss") != platform.issuer:
        raise LaunchRefusedError("it is of another issuer")
    audience = claims.get("aud")
    parties = audience if isinstance(audience, list) else [audience]
    if platform.client_id not in parties:
        raise LaunchRefusedError("it is meant for another audience")
    authorized = claims.get("azp")
    if authorized != platform.client_id and (authorized is not None or len(parties) > 1):
        raise LaunchRefusedError("another party is authorized by it")


def _check_times(claims: dict[str, Any]) -> None:
    expires, made, now = claims.get("exp"), claims.get("iat"), time.time()
    if not (_is_number(expires) and _is_number(made)):
        raise LaunchRefusedError("it does not say from when to when it holds")
    if expires < now - SKEW_S:
        raise LaunchRefusedError("it has expired; follow the link once more")
    if made > now + SKEW_S:
        raise LaunchRefusedError("it was made in the future: one of the two clocks is wrong")
    if made < now - OLDEST_S:
        raise LaunchRefusedError("it is too old; follow the link once more")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
