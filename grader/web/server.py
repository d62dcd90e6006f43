"""The service behind a socket: uvicorn with our limits, ending in order when it is told to.

One process uses one core. Several share the socket, and with it the visitors. Rate limits they share through Redis;
where the broker is none, each counts for itself, so that limits are as many times higher (see `security.rate_limits`).
"""

from __future__ import annotations

import logging
import signal

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from grader.settings import settings
from grader.web.app import create_app
from grader.web.monitoring.logs import log_as_json
from grader.web.security.connections import KEEP_ALIVE_S, TimedConnection, allow_many_files
from grader.web.service import WebService, open_service

SHUTDOWN_S = 5
"""Live streams are ended after that long; browsers come back by themselves."""


def server_config(
    app: FastAPI | str, *, host: str, port: int, fd: int | None = None, processes: int = 1
) -> uvicorn.Config:
    """How uvicorn serves our application, or what makes it by name; `fd`: a socket that somebody else opened."""
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=processes,
        host=host,
        port=port,
        fd=fd,
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        # Addresses of clients are `trusted_proxies`' business, in the application.
        proxy_headers=False,
        server_header=False,
        # Waiting ends there; how many requests are worked on at once is the application's business.
        http=TimedConnection,
        ws="none",
        timeout_keep_alive=int(KEEP_ALIVE_S),
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


def run_web(service: WebService, *, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    log_as_json()
    allow_many_files()
    # uvicorn ends in order and then raises the signal once more, which would make an orderly end look like a crash.
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, lambda *_: None)
    uvicorn.Server(server_config(create_app(service), host=host, port=port)).run()


def run_processes(processes: int, *, host: str, port: int) -> None:
    """Serve in so many processes until SIGTERM or SIGINT; one that dies is replaced, SIGHUP renews them in turn."""
    config = server_config("grader.web.server:application", host=host, port=port, processes=processes)
    Multiprocess(config, sockets=[config.bind_socket()]).run()


def application() -> FastAPI:
    """The application as the settings say, for one process of several."""
    log_as_json()
    allow_many_files()
    return create_app(open_service(settings()))
