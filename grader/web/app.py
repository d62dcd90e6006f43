"""The application: every router of `pages/` and `api/`, found by folder, behind the doors. Knows no single route."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import ModuleType

from fastapi import APIRouter, Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from grader.web import api, health, pages
from grader.web.doors import csrf
from grader.web.doors.bodies import BodyCaps
from grader.web.doors.headers import SecurityHeaders
from grader.web.faults import Caught, add_handlers
from grader.web.observe import Observed
from grader.web.site import Site
from grader.web.visit import V1, who
from grader.web.warming import warm_up


def create_app(site: Site) -> FastAPI:
    """The whole service over this site, as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        await run_in_threadpool(warm_up, site)
        yield
        site.store.close()

    app = FastAPI(
        title="Grader",
        summary="Hand in training scripts, follow their judging, read their grades.",
        version="1",
        openapi_url=f"{V1}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        form_limits={
            "max_files": csrf.MAX_FILES,
            "max_fields": csrf.MAX_FIELDS,
            "max_part_size": csrf.PART_BYTES,
        },
    )
    app.state.site = site
    add_handlers(app)
    # Whoever comes is looked at before any route runs, and with that the forgery token of whatever changes something.
    known = [Depends(who)]
    app.include_router(_routes_in(api), dependencies=known)
    app.include_router(_routes_in(pages), dependencies=known, include_in_schema=False)
    app.include_router(health.router)
    app.add_middleware(Caught)
    app.add_middleware(BodyCaps, max_bytes=site.max_upload_bytes)
    app.add_middleware(Observed, site=site)
    app.add_middleware(SecurityHeaders, secure=site.public_url.startswith("https://"))
    if site.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=site.trusted_proxies)
    return app


def _routes_in(package: ModuleType) -> APIRouter:
    """All routes of a folder's modules as one router, the more exact address first, whatever module it stands in."""
    found: list[APIRoute] = []
    for module in pkgutil.iter_modules(package.__path__):
        router: APIRouter = importlib.import_module(f"{package.__name__}.{module.name}").router
        found += [route for route in router.routes if isinstance(route, APIRoute)]
    made = APIRouter()
    found.sort(key=_vagueness)
    made.routes.extend(found)
    return made


def _vagueness(route: APIRoute) -> tuple[bool, ...]:
    # `/people/import` before `/people/{person_id}`, which would take it for a person.
    return tuple(part.startswith("{") for part in route.path.split("/"))
