"""Loads the routes of a package: all pages in their rooms, or all resources of the API. Each module has a `router`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from fastapi import APIRouter
from fastapi.routing import APIRoute

from grader.plugins.loader import Plugin, clashes, load
from grader.plugins.problems import PluginProblem
from grader.plugins.shape import Complaint, Constant, Shape
from grader.plugins.sources import Sources


@cache
def load_routes(package: str) -> APIRouter:
    """All routes of a package's modules as one router, the more exact address first, whatever module it stands in.

    A package of ours is the same for as long as a process runs.

    Raises:
        InfraError: a module has no router, or answers what another one answers.
    """
    found = [
        route for plugin in load(Sources(package, rooms=True), SHAPE, _clashes) for route in _routes(plugin)
    ]
    found.sort(key=_vagueness)
    made = APIRouter()
    made.routes.extend(found)
    return made


def _router(value: object) -> Iterator[Complaint]:
    if not isinstance(value, APIRouter):
        yield Complaint(f"is {value!r:.60}; it must be an APIRouter")
    elif not any(isinstance(route, APIRoute) for route in value.routes):
        yield Complaint("answers nothing; put `@router.get(…)` above a function")


SHAPE = Shape(
    what="a page",
    constants=(Constant("router", "router = APIRouter()", _router),),
    file_example="gradebook.py",
    closed=False,
)


def _routes(plugin: Plugin) -> list[APIRoute]:
    router = plugin.get("router")
    return [r for r in router.routes if isinstance(r, APIRoute)] if isinstance(router, APIRouter) else []


def _clashes(plugins: Sequence[Plugin]) -> Iterator[PluginProblem]:
    """Addresses that two modules answer: only the first would ever be asked."""
    for plugin, address, first in clashes(plugins, _addresses):
        yield plugin.problem("", Complaint(f"{address} is answered by {first.file.path} already"))


def _addresses(plugin: Plugin) -> list[str]:
    return [f"{method} {route.path}" for route in _routes(plugin) for method in sorted(route.methods or ())]


def _vagueness(route: APIRoute) -> tuple[bool, ...]:
    # `/people/import` before `/people/{person_id}`, which would take it for a person.
    return tuple(part.startswith("{") for part in route.path.split("/"))
