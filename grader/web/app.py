"""The application: every router of `pages/` and `api/`, found by folder, behind what keeps harm out. Knows no route."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, Depends, FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.routing import BaseRoute
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from grader.web.error_responses import UnexpectedErrors, add_handlers
from grader.web.languages import PageLanguage
from grader.web.monitoring import health
from grader.web.monitoring.request_log import RequestLog
from grader.web.routes import load_routes
from grader.web.security import csrf
from grader.web.security.access import API, V1, current_visitor
from grader.web.security.body_limits import BodyLimits
from grader.web.security.headers import SecurityHeaders
from grader.web.security.overload import Overload
from grader.web.security.plain_text import plain_text
from grader.web.service import WebService
from grader.web.staff.roster_job import start_taking_over
from grader.web.startup import warm_up


def create_app(service: WebService) -> FastAPI:
    """The whole service as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncGenerator[None]:
        await run_in_threadpool(warm_up, service)
        # What was under way when the service ended goes on.
        start_taking_over(service)
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
    app.router.routes.extend(_routes())
    app.add_middleware(UnexpectedErrors)
    app.add_middleware(BodyLimits, max_bytes=service.max_upload_bytes)
    app.add_middleware(Overload)
    app.add_middleware(PageLanguage, api=API)
    app.add_middleware(RequestLog, service=service)
    app.add_middleware(SecurityHeaders, secure=service.public_url.startswith("https://"))
    if service.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=service.trusted_proxies)
    return app


@cache
def _routes() -> tuple[BaseRoute, ...]:
    """All that is answered; the same for every application of a process, as what each route takes is costly to find."""
    # The visitor is made out before any route runs, and the forgery token of whatever changes something is checked.
    known = [Depends(current_visitor), Depends(plain_text)]
    every = APIRouter()
    every.include_router(load_routes("grader.web.api"), dependencies=known)
    every.include_router(load_routes("grader.web.pages"), dependencies=known, include_in_schema=False)
    every.include_router(health.router)
    return tuple(every.routes)
