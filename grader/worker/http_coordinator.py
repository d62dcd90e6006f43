"""The queue for a worker that reaches nothing but the service: its questions as requests, one each.

`grader.web.api.worker` answers them. What was asked and not answered is asked again by whoever asked; the lease's token
makes that harmless. Nothing is asked before the time that a busy service has named.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

import httpx
import structlog

from grader.catalog.data.transfer import OfferedData
from grader.errors import InfraError, UsageError
from grader.http.connection import is_hopeless, reason_of, retry_after, worker_connection
from grader.json_reader import read_value
from grader.model.grade import SCHEMA
from grader.model.submission import Submission
from grader.settings.schema import Settings
from grader.store.attempts.attempt_endings import AttemptEnding, StoredFile
from grader.store.database import StoreUnavailableError
from grader.store.files import FileTooLargeError
from grader.store.grading.grades import NewGrade
from grader.store.queue.claims import Claimed, HeartbeatAnswer, Idle
from grader.store.queue.queue import WorkerHost
from grader.store.tables.attempt import Lane
from grader.store.tables.base import storable
from grader.worker.coordinator import AttemptLeaseLostError

_API = "/worker"
_TIMEOUT = httpx.Timeout(10.0, connect=5.0, write=30.0)
_LONGEST_WAIT_S = 60.0
_LOOK_S = 1.0
_REASON_LENGTH = 20_000
_log = structlog.get_logger(__name__)


class HttpCoordinator:
    """See `Coordinator`; each process has its own."""

    look_s = 3.0

    def __init__(self, settings: Settings, worker: str, server: str) -> None:
        """Asks nothing yet.

        Raises:
            UsageError: that is no address, its token would be read on the way, or there is none.
        """
        self._url, self._http = worker_connection(server, settings.worker_token, _TIMEOUT)
        self._worker = worker
        self._lease_s = settings.lease_s
        self._not_before = 0.0
        self._receipts: dict[StoredFile, str] = {}

    def wait_until_ready(self) -> None:
        """Wait for a service of this version that lets this worker in."""
        waiting = False
        while True:
            try:
                answer = self._ask("GET", _API)
            except StoreUnavailableError as error:
                if isinstance(error.__cause__, httpx.TransportError) and is_hopeless(error.__cause__):
                    raise InfraError(str(error)) from None
                if not waiting:
                    _log.warning("waiting", reason=str(error))
                waiting = True
                time.sleep(_LOOK_S)
                continue
            if answer.get("grade_schema") != SCHEMA:
                raise InfraError(
                    f"{self._url} is of another version: bring the service and this worker to the same"
                )
            return

    def claim(
        self, needs: Sequence[str], lane: Lane | None, fitting: Sequence[tuple[str, str]] | None
    ) -> Claimed | Idle:
        """The next attempt of those."""
        asked = {
            "worker": self._worker,
            "needs": list(needs),
            "lane": lane,
            "fitting": fitting,
            "lease_s": self._lease_s,
        }
        answer = self._ask("POST", f"{_API}/claims", asked)
        if answer.get("idle") is not None:
            return Idle(answer["idle"])
        self._receipts.clear()
        return read_value(Claimed, answer["claimed"])

    def source_of(self, claimed: Claimed) -> Submission | None:
        """The files that it judges."""
        found = self._ask("GET", _place(claimed, "/source"))["submission"]
        return None if found is None else read_value(Submission, found)

    def packed_task(self, claimed: Claimed) -> bytes | None:
        """The task that it is judged by."""
        return self._fetch(_place(claimed, "/task"))

    def offered_data(self, claimed: Claimed) -> OfferedData | None:
        """The data that it is judged on."""
        offered = self._ask("GET", _place(claimed, "/data"))["offered"]
        return None if offered is None else read_value(OfferedData, offered)

    def data_piece(self, claimed: Claimed, number: int, offset: int) -> bytes:
        """A piece of a file of that data."""
        return self._fetch(f"{_place(claimed, f'/data/{number}')}&offset={offset}") or b""

    def time_limits(self) -> tuple[tuple[str, str, float], ...]:
        """What runs may take."""
        return tuple(
            (task, profile, wall_s) for task, profile, wall_s in self._ask("GET", f"{_API}/limits")["limits"]
        )

    def heartbeat(self, claimed: Claimed, phase: str) -> HeartbeatAnswer:
        """Say that it is judged."""
        said = {"phase": phase, "lease_s": self._lease_s}
        return self._answer("POST", _place(claimed, "/heartbeat"), said)

    def look(self, claimed: Claimed) -> HeartbeatAnswer:
        """What a heartbeat would be answered."""
        return self._answer("GET", _place(claimed))

    def add_events(self, claimed: Claimed, events: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Tell those who watch."""
        try:
            self._ask("POST", _place(claimed, "/events"), {"events": list(events)})
        except AttemptLeaseLostError:
            # The next heartbeat hears the same.
            return

    def keep_file(self, claimed: Claimed, name: str, data: bytes) -> StoredFile:
        """Send a file; its receipt is shown when the attempt ends."""
        answer = self._ask("PUT", _place(claimed, f"/files/{name}"), data)
        kept = StoredFile(answer["name"], answer["digest"], answer["size"])
        self._receipts[kept] = answer["receipt"]
        return kept

    def finish(self, claimed: Claimed, judged: NewGrade, files: Sequence[StoredFile]) -> AttemptEnding:
        """Say which files it left; its grade is among them."""
        named = [{**asdict(one), "receipt": self._receipts[one]} for one in files]
        return self._end(claimed, {"how": "finish", "files": named})

    def fail(self, claimed: Claimed, reason: str, *, retry: bool) -> AttemptEnding:
        """Say that it could not be judged."""
        return self._end(
            claimed, {"how": "fail", "reason": storable(reason)[:_REASON_LENGTH], "retry": retry}
        )

    def give_up(self, claimed: Claimed) -> AttemptEnding:
        """Give it back."""
        return self._end(claimed, {"how": "give_up"})

    def report_worker(self, needs: Sequence[str], slots: int, host: WorkerHost | None) -> bool:
        """Say that the worker is there."""
        told = {"needs": list(needs), "slots": slots, "host": None if host is None else asdict(host)}
        return bool(self._ask("PUT", self._place_of_worker, told)["drain"])

    def forget_worker(self) -> None:
        """Say that the worker has ended."""
        self._ask("DELETE", self._place_of_worker)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    @property
    def _place_of_worker(self) -> str:
        return f"{_API}/hosts/{quote(self._worker, safe='')}"

    def _answer(self, method: str, place: str, said: dict[str, Any] | None = None) -> HeartbeatAnswer:
        try:
            return HeartbeatAnswer(self._ask(method, place, said)["answer"])
        except AttemptLeaseLostError:
            return HeartbeatAnswer.STALE

    def _end(self, claimed: Claimed, said: dict[str, Any]) -> AttemptEnding:
        try:
            return AttemptEnding(self._ask("POST", _place(claimed, "/end"), said)["ending"])
        except AttemptLeaseLostError:
            return AttemptEnding.STALE

    def _ask(self, method: str, place: str, body: dict[str, Any] | bytes | None = None) -> dict[str, Any]:
        """The answer to one request.

        Raises:
            StoreUnavailableError: there is none, or not now. AttemptLeaseLostError: it is 409.
            FileTooLargeError: it is 413. UsageError: this worker is not let in.
            InfraError: the service understands it differently.
        """
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        # Plain ASCII: what scripts print may hold halves of characters.
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {} if content is None else {"Content-Type": kind}
        return self._read(self._response(method, place, content=content, headers=headers))

    def _fetch(self, place: str) -> bytes | None:
        """Bytes; None where there are none. Raises what `_ask` raises."""
        response = self._response("GET", place)
        if response.status_code == 204:
            return None
        if not response.is_success:
            self._read(response)
        return response.content

    def _response(self, method: str, place: str, **request: Any) -> httpx.Response:
        if time.monotonic() < self._not_before:
            raise StoreUnavailableError(f"{self._url} asks to wait")
        try:
            return self._http.request(method, place, **request)
        except httpx.TransportError as error:
            raise StoreUnavailableError(f"{self._url} does not answer ({reason_of(error)})") from error

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        status = response.status_code
        if status in (408, 429) or status >= 500:
            self._not_before = time.monotonic() + min(retry_after(response) or 0.0, _LONGEST_WAIT_S)
            raise StoreUnavailableError(f"{self._url} answers {status}: {_said(response)}")
        if status == 409:
            raise AttemptLeaseLostError(_said(response))
        if status == 413:
            raise FileTooLargeError(_said(response))
        if status in (401, 403):
            raise UsageError(f"{self._url} does not let this worker in: {_said(response)}")
        try:
            answer = response.json() if response.is_success else None
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise InfraError(
                f"{self._url} answers {status}, as no grader of this version would: {_said(response)}"
            )
        return answer


def _place(claimed: Claimed, below: str = "") -> str:
    return f"{_API}/attempts/{claimed.attempt_id}{below}?lease={claimed.lease_token}"


def _said(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
