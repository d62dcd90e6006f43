"""The queue for workers that reach nothing else: claims, signs of life, sources, evidence, ends. For `grader worker`.

An attempt is there for the workers of the token that claimed it, under the lease that they name, for as long as it is
theirs: everything else answers 409, whether it is somebody else's, over, or never was. `grader.worker.http_coordinator`
is the other side; both are of one version.
"""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from grader.catalog.data.transfer import OfferedData, data_piece, offered_data
from grader.model.grade import SCHEMA, Verdict
from grader.report.json_report import from_json
from grader.store import events
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.attempt_endings import AttemptEnding, StoredFile
from grader.store.attempts.attempts import attempt
from grader.store.courses.task_versions import packed_version, time_limits
from grader.store.grading.grades import NewGrade, new_grade
from grader.store.queue import claims, queue
from grader.store.queue.claims import HeartbeatAnswer, Idle
from grader.store.queue.queue import WorkerHost
from grader.store.queue.worker_demand import worker_demand
from grader.store.queue.worker_tokens import worker_name
from grader.web.documents.worker_schemas import (
    NAME,
    ClaimIn,
    EndIn,
    EventsIn,
    HeartbeatIn,
    KeptFileIn,
    WorkerIn,
)
from grader.web.lookups.catalog import cached_task
from grader.web.security.access import V1, Visitor, Worker, too_many_requests
from grader.web.security.rate_limits import WORKER_CLAIMS, WORKER_FILES, RateLimit
from grader.web.security.worker_leases import AttemptLease, LiveLease, NamedLease, check_again, stale
from grader.web.service import ServiceDep, WebService
from grader.web.upload import evidence

router = APIRouter(prefix=f"{V1}/worker", include_in_schema=False)
_Name = Annotated[str, Path(pattern=NAME)]


@router.get("")
def greet(_visitor: Worker) -> dict[str, int]:
    """What a worker asks before it begins: whether it is let in, and which grades are taken."""
    return {"grade_schema": SCHEMA}


@router.put("/hosts/{name}")
def report_worker(service: ServiceDep, visitor: Worker, name: _Name, body: WorkerIn) -> dict[str, bool]:
    """A worker is there; `drain`: it is to take nothing more and end."""
    host = None if body.host is None else WorkerHost(**body.host.model_dump())
    full = worker_name(visitor.token, name)
    return {"drain": queue.report_worker(service.store, full, body.needs, body.slots, host)}


@router.delete("/hosts/{name}")
def forget_worker(service: ServiceDep, visitor: Worker, name: _Name) -> dict[str, bool]:
    """A worker has ended in order."""
    queue.forget_worker(service.store, worker_name(visitor.token, name))
    return {"forgotten": True}


@router.get("/demand")
def demand(service: ServiceDep, visitor: Worker) -> Response:
    """What the queue wants of workers; of those that there are, the token's own, by the names that they have there."""
    seen = worker_demand(service.store)
    own = worker_name(visitor.token, "")
    busy = {name.removeprefix(own): one for name, one in seen.busy.items() if name.startswith(own)}
    return _json(asdict(replace(seen, busy=busy)))


@router.get("/limits")
def limits(service: ServiceDep, _visitor: Worker) -> Response:
    """How long runs of each task may take in each profile, for workers whose time is short."""
    return _json({"limits": time_limits(service.store)})


@router.post("/claims")
def claim(service: ServiceDep, visitor: Worker, body: ClaimIn) -> Response:
    """The next attempt for a worker, or why there is none."""
    _count(service, visitor, WORKER_CLAIMS)
    answer = claims.claim(
        service.store,
        worker_name(visitor.token, body.worker),
        body.needs,
        lane=body.lane,
        fitting=body.fitting,
        lease_s=body.lease_s,
    )
    if isinstance(answer, Idle):
        return _json({"idle": answer, "claimed": None})
    claimed = {**asdict(answer), "lease_until": answer.lease_until.isoformat()}
    return _json({"idle": None, "claimed": claimed})


@router.get("/attempts/{attempt_id}")
def look(service: ServiceDep, lease: LiveLease) -> dict[str, str]:
    """Whether an attempt is still to be judged."""
    facts = attempt(service.store, lease.attempt_id)
    cancelled = facts is not None and facts.cancel_requested_at is not None
    return {"answer": HeartbeatAnswer.CANCEL if cancelled else HeartbeatAnswer.KEPT}


@router.post("/attempts/{attempt_id}/heartbeat")
def heartbeat(service: ServiceDep, lease: LiveLease, body: HeartbeatIn) -> dict[str, str]:
    """A sign of life; prolongs the lease."""
    answer = claims.heartbeat(
        service.store, lease.attempt_id, lease.lease_token, phase=body.phase or None, lease_s=body.lease_s
    )
    if answer is HeartbeatAnswer.STALE:
        raise stale()
    return {"answer": answer}


@router.post("/attempts/{attempt_id}/events")
def add_events(service: ServiceDep, lease: LiveLease, body: EventsIn) -> dict[str, bool]:
    """What people see of it meanwhile."""
    if not events.add_live_events(service.store, lease.attempt_id, lease.lease_token, body.events):
        raise stale()
    return {"taken": True}


@router.get("/attempts/{attempt_id}/source")
def source(service: ServiceDep, lease: LiveLease) -> Response:
    """The files that it judges; null: they were erased."""
    found = submissions.source_of(service.store, lease.attempt_id)
    return _json({"submission": None if found is None else asdict(found)})


@router.get("/attempts/{attempt_id}/task")
def task(service: ServiceDep, lease: LiveLease) -> Response:
    """The task that it is judged by, packed; 204: nobody kept its version."""
    facts = attempt(service.store, lease.attempt_id)
    packed = None if facts is None else packed_version(service.store, service.files, facts.task_version)
    if packed is None:
        return Response(status_code=204)
    return Response(packed, media_type="application/gzip")


@router.get("/attempts/{attempt_id}/data")
def data(service: ServiceDep, lease: LiveLease) -> Response:
    """The data that it is judged on, hidden part and all, as this host has it prepared; null: it has none."""
    offered = _offered(service, lease)
    return _json({"offered": None if offered is None else asdict(offered)})


@router.get("/attempts/{attempt_id}/data/{number}")
def piece(
    service: ServiceDep,
    lease: LiveLease,
    number: Annotated[int, Path(ge=0, le=100_000)],
    offset: Annotated[int, Query(ge=0, le=2**50)] = 0,
) -> Response:
    """A piece of a file of that data; 204: there is nothing more of it."""
    offered = _offered(service, lease)
    found = (
        b""
        if offered is None or number >= len(offered.manifest.files)
        else data_piece(offered, number, offset)
    )
    return Response(found, media_type="application/octet-stream") if found else Response(status_code=204)


@router.put("/attempts/{attempt_id}/files/{name}")
async def keep_file(
    request: Request, service: ServiceDep, visitor: Worker, lease: LiveLease, name: str
) -> dict[str, Any]:
    """Keep a file that it left; the receipt makes it the attempt's at its end."""
    await run_in_threadpool(_count, service, visitor, WORKER_FILES)
    with await evidence.receive(request, name) as body:
        # It may have taken a while to come.
        await run_in_threadpool(check_again, service, visitor, lease)
        kept = await run_in_threadpool(evidence.keep, service, body, name)
    given = evidence.receipt(service.secret, lease.attempt_id, lease.lease_token, kept)
    return {**asdict(kept), "receipt": given}


@router.post("/attempts/{attempt_id}/end")
def end(service: ServiceDep, lease: NamedLease, body: EndIn) -> dict[str, str]:
    """How it ended. Said again, it is answered again."""
    store, attempt_id, lease_token = service.store, lease.attempt_id, lease.lease_token
    if body.how == "finish":
        files = [_own(service, lease, one) for one in body.files]
        ending = attempt_endings.finish(store, attempt_id, lease_token, _grade(service, files), files)
    elif body.how == "fail":
        ending = attempt_endings.fail(store, attempt_id, lease_token, body.reason, retry=body.retry)
    else:
        ending = attempt_endings.give_up(store, attempt_id, lease_token)
    if ending is AttemptEnding.STALE:
        raise stale()
    return {"ending": ending}


def _offered(service: WebService, lease: AttemptLease) -> OfferedData | None:
    facts = attempt(service.store, lease.attempt_id)
    task = None if facts is None else cached_task(service, facts.task, facts.task_version)
    return None if facts is None or task is None else offered_data(task, task.profile(facts.profile))


def _own(service: WebService, lease: AttemptLease, told: KeptFileIn) -> StoredFile:
    file = StoredFile(told.name, told.digest, told.size)
    given = evidence.receipt(service.secret, lease.attempt_id, lease.lease_token, file)
    if not hmac.compare_digest(given, told.receipt):
        raise HTTPException(403, f"{told.name} was not brought for this attempt.")
    return file


def _grade(service: WebService, files: list[StoredFile]) -> NewGrade:
    """What its own `grade.json` says, which is the only word for it."""
    found = {one.name: one for one in files}
    if len(found) != len(files) or evidence.GRADE not in found:
        raise HTTPException(422, f"Bring {evidence.GRADE}, and each file once.")
    try:
        document = service.files.get(found[evidence.GRADE].digest).decode("ascii")
        grade = from_json(document)
    except ValueError as error:
        raise HTTPException(422, f"{evidence.GRADE} is no grade: {error}") from None
    possible = math.isfinite(grade.max_points) and 0 <= grade.points <= grade.max_points
    if grade.verdict is Verdict.JUDGE_ERROR or grade.schema != SCHEMA or not possible:
        raise HTTPException(422, f"{evidence.GRADE} is no grade that could be taken.")
    return new_grade(grade, document)


def _count(service: WebService, visitor: Visitor, limit: RateLimit) -> None:
    refused = service.rate_limiter.hit(limit, visitor.token)
    if refused is not None:
        raise too_many_requests(refused)


def _json(document: dict[str, Any]) -> Response:
    # Plain ASCII: what learners hand in may hold halves of characters.
    return Response(json.dumps(document), media_type="application/json")
