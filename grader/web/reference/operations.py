"""What each operation of the programming interface takes and answers, out of the OpenAPI document."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fastapi import FastAPI

from grader.web.reference.route_access import RouteAccess, route_access
from grader.web.reference.schema_examples import example_of, type_of

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value in the path, the query or a header; `kind`: its type in words."""

    name: str
    place: str
    kind: str
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class OperationAnswer:
    """One status that may be answered; `example` is JSON, "" where the body is none."""

    status: str
    about: str
    example: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        anchor: its place on the page.
        body: an example of what is sent, as JSON; "" where nothing is; media_types: what may be sent.
        command: a line for a shell with GRADER_URL and GRADER_TOKEN that does it.
        answer: what comes when all is well; refusals: what else may come.
    """

    method: str
    path: str
    anchor: str
    about: str
    access: RouteAccess
    parameters: tuple[Parameter, ...]
    media_types: tuple[str, ...]
    body: str
    command: str
    answer: OperationAnswer
    refusals: tuple[OperationAnswer, ...]


@lru_cache(maxsize=4)
def operations(app: FastAPI) -> dict[str, tuple[Operation, ...]]:
    """All operations by what they are about, in the document's order."""
    document, access = app.openapi(), route_access(app)
    named = document.get("components", {}).get("schemas", {})
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            one = _operation(method, path, described, access[method, path], named)
            found.setdefault(described["tags"][0], []).append(one)
    return {about: tuple(ones) for about, ones in found.items()}


def _operation(
    method: str, path: str, described: Mapping[str, Any], access: RouteAccess, named: Mapping[str, Any]
) -> Operation:
    sent = described.get("requestBody", {}).get("content", {})
    body = _json(example_of(sent[_JSON]["schema"], named)) if _JSON in sent else ""
    answers = [_answer(status, one, named) for status, one in described["responses"].items()]
    return Operation(
        method=method.upper(),
        path=path,
        anchor=described["operationId"],
        about=described.get("description", ""),
        access=access,
        parameters=tuple(_parameters(described.get("parameters", ()), named)),
        media_types=tuple(sent),
        body=body,
        command=_command(method.upper(), path, body, access),
        answer=answers[0],
        refusals=tuple(answers[1:]),
    )


def _parameters(described: Any, named: Mapping[str, Any]) -> Iterator[Parameter]:
    for one in described:
        kind = type_of(one["schema"], named).removesuffix(" or nothing")
        yield Parameter(one["name"], one["in"], kind, one["required"], one.get("description", ""))


def _answer(status: str, described: Mapping[str, Any], named: Mapping[str, Any]) -> OperationAnswer:
    content = described.get("content", {})
    example = example_of(content[_JSON]["schema"], named) if _JSON in content else None
    return OperationAnswer(status, described["description"], "" if example in (None, {}) else _json(example))


def _command(method: str, path: str, body: str, access: RouteAccess) -> str:
    for name in ("course_task_id", "course_id", "attempt_id"):
        path = path.replace(f"{{{name}}}", "1")
    words = ["curl"]
    if method != "GET":
        words += ["-X", method]
    if access.scope is not None or method == "DELETE":
        words.append('-H "Authorization: Bearer $GRADER_TOKEN"')
    if body:
        words += ["--json", shlex.quote(json.dumps(json.loads(body)))]
    return " ".join([*words, f'"$GRADER_URL{path}"'])


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)
