"""The list of a course's people as the platform keeps it (Names and Role Provisioning Services 2.0), page by page."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from grader.lti.access_tokens import PlatformServices
from grader.lti.launch_message import course_role, person_name
from grader.lti.platform_http import PlatformAnswer, PlatformError
from grader.store.lti.lti_rosters import RosterMember

SCOPE = "https://purl.imsglobal.org/spec/lti-nrps/scope/contextmembership.readonly"
_TYPE = "application/vnd.ims.lti-nrps.v2.membershipcontainer+json"
_MOST_PAGES, _MOST_MEMBERS = 200, 20_000


class _Member(BaseModel):
    model_config = ConfigDict(extra="ignore")

    user_id: str | int
    status: str = "Active"
    name: str | None = None
    given_name: str | None = None
    family_name: str | None = None
    email: str | None = None
    lis_person_sourcedid: str | None = None
    roles: list[str] = []


class _Page(BaseModel):
    model_config = ConfigDict(extra="ignore")

    members: list[_Member]


def read_roster(services: PlatformServices, url: str) -> tuple[RosterMember, ...]:
    """Everybody who takes part there now, each once; the whole list or none of it.

    Raises:
        PlatformError: some page of it cannot be read, or it has no end, or nobody is on it.
    """
    found: dict[str, RosterMember] = {}
    for page in _pages(services, url):
        for one in page.members:
            # A deleted or an inactive one takes part no more.
            if one.status.casefold() == "active":
                member = _member(one)
                found[member.subject] = member
        if len(found) > _MOST_MEMBERS:
            raise PlatformError("the platform's list of people has no end", passing=False)
    if not found:
        # Whoever asks is on every list: an empty one is a fault, and nobody shall be taken for gone.
        raise PlatformError("the platform says that nobody takes part in its course", passing=True)
    return tuple(found.values())


def _pages(services: PlatformServices, first: str) -> Iterator[_Page]:
    url: str | None = first
    seen: set[str] = set()
    while url is not None:
        if url in seen or len(seen) == _MOST_PAGES:
            raise PlatformError("the platform's list of people leads round in a circle", passing=False)
        seen.add(url)
        answer = services.ask("GET", url, [SCOPE], headers={"Accept": _TYPE})
        try:
            yield _Page.model_validate(answer.json())
        except ValidationError:
            raise PlatformError("the platform's list of people cannot be read", passing=True) from None
        url = _next(answer)


def _next(answer: PlatformAnswer) -> str | None:
    links = httpx.Response(answer.status, headers=answer.headers).links.items()
    return next((urljoin(answer.url, link["url"]) for relation, link in links if _is_next(relation)), None)


def _is_next(relation: str | None) -> bool:
    return relation is not None and "next" in relation.lower().split()


def _member(one: _Member) -> RosterMember:
    subject = str(one.user_id)
    name = person_name(one.name, one.given_name, one.family_name)
    return RosterMember(subject, name, one.email, course_role(one.roles), one.lis_person_sourcedid)
