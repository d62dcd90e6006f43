"""The application: every router of `pages/` and `api/`, found by folder, behind what keeps harm out. Knows no route."""

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

from grader.web import api, pages
from grader.web.error_responses import UnexpectedErrors, add_handlers
from grader.web.monitoring import health
from grader.web.monitoring.request_log import RequestLog
from grader.web.security import csrf
from grader.web.security.access import V1, current_visitor
from grader.web.security.body_limits import BodyLimits
from grader.web.security.headers import SecurityHeaders
from grader.web.service import WebService
from grader.web.startup import warm_up


def create_app(service: WebService) -> FastAPI:
    """The whole service as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        await run_in_threadpool(warm_up, service)
        yield
        service.store.close()

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
    app.state.service = service
    add_handlers(app)
    # The visitor is made out before any route runs, and the forgery token of whatever changes something is checked.
    known = [Depends(current_visitor)]
    app.include_router(_routes_in(api), dependencies=known)
    app.include_router(_routes_in(pages), dependencies=known, include_in_schema=False)
    app.include_router(health.router)
    app.add_middleware(UnexpectedErrors)
    app.add_middleware(BodyLimits, max_bytes=service.max_upload_bytes)
    app.add_middleware(RequestLog, service=service)
    app.add_middleware(SecurityHeaders, secure=service.public_url.startswith("https://"))
    if service.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=service.trusted_proxies)
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
