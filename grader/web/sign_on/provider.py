"""A provider of sign-on as the service knows it: who it is, how we show ourselves, and what it decides here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from grader.store.people.group_roles import CourseRole, GroupRoles
from grader.store.tables.person import Role

AuthMethod = Literal["client_secret_basic", "client_secret_post"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        id: stands in addresses of ours; title: what people know it as.
        issuer: its `iss`, to the letter.
        client_secret: "": we are a client without one.
        auth_method: how we show the secret.
        groups_claim: the claim that names somebody's groups; "": none does.
        site_roles: group → role on the whole site; course_roles: group and role in a course.
        link_by_address: a verified address opens the learner's account that has it.
        trusts_addresses: its addresses are verified although it does not say so.
        open_accounts: whoever comes gets an account.
        domains: of addresses that may come in; none: all.
    """

    id: str
    title: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False, default="")
    auth_method: AuthMethod = "client_secret_basic"
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = ""
    site_roles: Mapping[str, Role] = field(default_factory=dict)
    course_roles: tuple[tuple[str, CourseRole], ...] = ()
    link_by_address: bool = False
    trusts_addresses: bool = False
    open_accounts: bool = False
    domains: tuple[str, ...] = ()

    @property
    def gives_roles(self) -> bool:
        """Whether groups say what somebody may do here."""
        return bool(self.site_roles or self.course_roles)

    def roles_of(self, groups: Collection[str]) -> GroupRoles:
        """What somebody in these groups may do here."""
        site = {role for group, role in self.site_roles.items() if group in groups}
        return GroupRoles(
            site=next((role for role in (Role.ADMIN, Role.INSTRUCTOR) if role in site), None),
            courses=tuple(role for group, role in self.course_roles if group in groups),
        )

    def admits(self, address: str | None) -> bool:
        """Whether somebody with this verified address (None: they have none) may come in."""
        return not self.domains or (address is not None and address.rpartition("@")[2] in self.domains)


@dataclass(frozen=True, slots=True)
class SignOnSettings:
    """All providers, in the order of the file, and whether passwords of our own open anything."""

    providers: tuple[Provider, ...] = ()
    local_passwords: bool = True

    def provider(self, provider_id: str) -> Provider | None:
        """The provider of that id."""
        return next((one for one in self.providers if one.id == provider_id), None)

    def title_of(self, issuer: str) -> str:
        """What people know an issuer as; one that is no provider of ours by the name of its host."""
        titles = [one.title for one in self.providers if one.issuer == issuer]
        return titles[0] if titles else urlsplit(issuer).hostname or issuer
