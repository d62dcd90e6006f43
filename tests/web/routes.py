"""All routes of the app, each with the doors that it names: what the generated matrix walks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from grader.web.security.access import AccessRule

_WIDER = (AccessRule.PUBLIC, AccessRule.SIGNED_IN)
"""Doors that narrower ones stand behind."""


@dataclass(frozen=True)
class Way:
    """One method of one route; `door`: the narrowest of those it names."""

    method: str
    path: str
    access_rule: AccessRule | None

    @property
    def changes(self) -> bool:
        return self.method not in ("GET", "HEAD")

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api/")

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(re.findall(r"{(\w+)(?::\w+)?}", self.path))

    def address(self, values: dict[str, Any]) -> str:
        return re.sub(r"{(\w+)(?::\w+)?}", lambda match: str(values.get(match[1], "1")), self.path)


def ways(app: FastAPI) -> list[Way]:
    """Every method of every route."""
    found = []
    for context in iter_route_contexts(app.routes):
        dependant = getattr(context, "dependant", None)
        if dependant is None:
            # The one route that FastAPI itself adds.
            assert context.path == "/api/v1/openapi.json", context.path
            found.append(Way("GET", context.path, AccessRule.PUBLIC))
            continue
        narrow = {
            access_rule for access_rule in _access_rules(dependant) if access_rule not in _WIDER
        } or set(_access_rules(dependant))
        narrow -= {AccessRule.PUBLIC} if len(narrow) > 1 else set()
        assert len(narrow) <= 1, f"{context.path} names several doors: {sorted(narrow)}"
        assert context.path is not None
        for method in sorted(context.methods or ()):
            found.append(Way(method, context.path, next(iter(narrow), None)))
    return found


def _access_rules(dependant: Any) -> list[AccessRule]:
    found = [access_rule] if (access_rule := getattr(dependant.call, "access_rule", None)) is not None else []
    for one in dependant.dependencies:
        found += _access_rules(one)
    return found
