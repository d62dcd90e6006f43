"""What a provider vouches for about somebody, read out of its claims; whatever is not as it should be is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.store.people.group_roles import GroupRoles
from grader.store.people.identities import VouchedIdentity
from grader.web.sign_on.provider import Provider

MOST_SUBJECT, MOST_ADDRESS, MOST_NAME = 255, 254, 200


@dataclass(frozen=True, slots=True)
class VouchedPerson:
    """A person as a provider tells of them; roles None: it says nothing of groups, and nothing changes."""

    identity: VouchedIdentity
    roles: GroupRoles | None


def lacks(provider: Provider, claims: Mapping[str, Any]) -> bool:
    """Whether an ID token leaves out something that the provider may tell elsewhere."""
    return (
        not _name(claims)
        or not isinstance(claims.get("email"), str)
        or (provider.gives_roles and _groups(provider, claims) is None)
    )


def vouched_person(provider: Provider, claims: Mapping[str, Any]) -> VouchedPerson | None:
    """The person, or None: their subject is none that we could keep to the letter."""
    subject = str(claims["sub"])
    if not 0 < len(subject) <= MOST_SUBJECT or not subject.isprintable():
        return None
    address = _address(provider, claims)
    login = next(
        (
            claims[key]
            for key in ("preferred_username", "upn", "email", "nickname")
            if isinstance(claims.get(key), str) and claims[key].strip()
        ),
        "",
    )
    identity = VouchedIdentity(provider.issuer, subject, _name(claims) or login[:MOST_NAME], login, address)
    return VouchedPerson(identity, _roles(provider, claims))


def _name(claims: Mapping[str, Any]) -> str:
    whole = claims.get("name")
    parts = [whole] if isinstance(whole, str) else [claims.get("given_name"), claims.get("family_name")]
    return " ".join(" ".join(part for part in parts if isinstance(part, str)).split())[:MOST_NAME]


def _address(provider: Provider, claims: Mapping[str, Any]) -> str | None:
    told = claims.get("email")
    # Some say so in words.
    verified = claims.get("email_verified") in (True, "true") or provider.trusts_addresses
    if not isinstance(told, str) or not verified:
        return None
    address = told.strip().casefold()
    plain = address.isprintable() and " " not in address and address.count("@") == 1
    return address if plain and 3 <= len(address) <= MOST_ADDRESS and address[0] != "@" else None


def _roles(provider: Provider, claims: Mapping[str, Any]) -> GroupRoles | None:
    if not provider.gives_roles:
        # What groups gave by an earlier file is taken.
        return GroupRoles()
    groups = _groups(provider, claims)
    if groups is None:
        # Whoever is in very many groups may get an address in their place, which we do not follow.
        elsewhere = claims.get("_claim_names")
        return None if isinstance(elsewhere, dict) and provider.groups_claim in elsewhere else GroupRoles()
    return provider.roles_of(groups)


def _groups(provider: Provider, claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Groups by the claim of that name, or by a path such as `realm_access.roles`; None: there is no such claim."""
    found: Any = claims.get(provider.groups_claim)
    if found is None:
        found = claims
        for part in provider.groups_claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        return frozenset((found,))
    return frozenset(one for one in found if isinstance(one, str)) if isinstance(found, list) else None
