"""What operators ask: is it alive, is it ready, how much is there to do. Tells nothing about anybody."""

from __future__ import annotations

import hmac
import os
import shutil
import tempfile

from fastapi import APIRouter, Request
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from grader import readers
from grader.errors import InfraError
from grader.store import schema
from grader.store.attempts.attempt_counts import count_attempts
from grader.store.queue.queue import queue_state
from grader.web.security.access import Public, not_found
from grader.web.service import ServiceDep, WebService

router = APIRouter(include_in_schema=False, dependencies=[Public])
MIN_FREE_BYTES = 256 << 20


@router.get("/healthz")
async def healthz() -> JSONResponse:
    """Whether this process answers at all; asks nobody else, so that an outage elsewhere restarts nothing here."""
    return JSONResponse({"status": "ok"})


@router.get("/readyz")
async def readyz(service: ServiceDep) -> JSONResponse:
    """Whether requests can be served: database and files are there, the disk has room, submissions can be read."""
    checks = await run_in_threadpool(_checks, service)
    good = all(answer == "ok" for answer in checks.values())
    return JSONResponse(
        {"status": "ok" if good else "not ready", "checks": checks},
        200 if good else 503,
        None if good else {"Retry-After": "5"},
    )


@router.get("/metrics")
async def metrics(request: Request, service: ServiceDep) -> Response:
    """Prometheus' text, for this machine and for whoever shows the metrics token."""
    if not _may_measure(request, service):
        raise not_found()
    text = generate_latest(service.request_metrics.registry) + await run_in_threadpool(_from_store, service)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


def _may_measure(request: Request, service: WebService) -> bool:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if service.metrics_token and hmac.compare_digest(given.encode(), service.metrics_token.encode()):
        return True
    # Through a proxy everybody seems to be on this machine.
    direct = "x-forwarded-for" not in request.headers and "forwarded" not in request.headers
    return direct and service.address(request) in ("127.0.0.1", "::1", "")


def _checks(service: WebService) -> dict[str, str]:
    return {
        "database": _database(service),
        "files": _files(service),
        "disk": _disk(service),
        "readers": "ok" if readers.began() else "start",
    }


def _database(service: WebService) -> str:
    try:
        problem = schema.status(service.store).problem
    except InfraError:
        return "does not answer"
    return "ok" if problem is None else problem.removeprefix("the database ")


def _files(service: WebService) -> str:
    root = getattr(service.files, "root", None)
    if root is None:
        return "ok"  # they lie in the database
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as file:
            file.write(b"ready")
            os.fsync(file.fileno())
    except OSError as error:
        return f"cannot be written: {error.strerror}"
    return "ok"


def _disk(service: WebService) -> str:
    try:
        free = shutil.disk_usage(service.state_dir).free
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "ok" if free >= MIN_FREE_BYTES else f"nearly full: {free >> 20} MiB left"


def _from_store(service: WebService) -> bytes:
    registry = CollectorRegistry()
    up = Gauge("grader_database_up", "Whether the database answers.", registry=registry)
    try:
        state, counts = queue_state(service.store), count_attempts(service.store)
    except InfraError:
        up.set(0)
        return generate_latest(registry)
    up.set(1)
    queued = Gauge("grader_queue_length", "Attempts that wait.", ["lane"], registry=registry)
    for lane, number in state.queued.items():
        queued.labels(lane.value).set(number)
    Gauge("grader_queue_oldest_seconds", "Age of what waits longest.", registry=registry).set(
        state.oldest_queued_s
    )
    Gauge("grader_attempts_running", "Attempts that run.", registry=registry).set(state.running)
    Gauge("grader_queue_paused", "Gates of the queue that are closed.", registry=registry).set(
        len(state.pauses)
    )
    Gauge("grader_workers", "Workers seen within a minute.", registry=registry).set(len(state.workers))
    Gauge("grader_worker_slots", "Attempts they can run at once.", registry=registry).set(
        sum(worker.slots for worker in state.workers)
    )
    ended = Gauge(
        "grader_attempts",
        "Attempts by how they stand; verdict only where judged.",
        ["state", "verdict"],
        registry=registry,
    )
    for count in counts:
        ended.labels(count.state.value, count.verdict.value if count.verdict else "").set(count.number)
    return generate_latest(registry)
