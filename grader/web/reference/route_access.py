"""Whom each route lets in, and how far a token has to go for it, read off the dependencies that the routes name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from grader.store.tables.api_token import Scope
from grader.web.security.access import AccessRule

_WIDE = (AccessRule.PUBLIC, AccessRule.SIGNED_IN)
"""Rules that others narrow."""
_OWN = (AccessRule.SIGNED_IN, AccessRule.COURSE, AccessRule.ATTEMPT)
"""Rules under which a token that may hand in also changes things."""


@dataclass(frozen=True, slots=True)
class RouteAccess:
    """Who may, in words; `scope`: the least that a token must have, None: it takes none."""

    who: str
    scope: Scope | None


def route_access(app: FastAPI) -> dict[tuple[str, str], RouteAccess]:
    """By method and path, as the OpenAPI document spells them (`get`, `/api/v1/me`)."""
    found = {}
    for context in iter_route_contexts(app.routes):
        dependant = getattr(context, "dependant", None)
        if dependant is None or context.path is None:
            continue
        rules = _rules(dependant)
        rule = next((one for one in rules if one not in _WIDE), None) or (
            AccessRule.SIGNED_IN if AccessRule.SIGNED_IN in rules else AccessRule.PUBLIC
        )
        for method in context.methods or ():
            found[method.lower(), context.path] = RouteAccess(rule.value, _scope(rule, method))
    return found


def _scope(rule: AccessRule, method: str) -> Scope | None:
    if rule is AccessRule.PUBLIC:
        return None
    if rule is AccessRule.WORKER:
        return Scope.JUDGE
    if method in ("GET", "HEAD"):
        return Scope.READ
    return Scope.SUBMIT if rule in _OWN else Scope.MANAGE


def _rules(dependant: Any) -> list[AccessRule]:
    own = getattr(dependant.call, "access_rule", None)
    return [
        *([] if own is None else [own]),
        *(rule for one in dependant.dependencies for rule in _rules(one)),
    ]
