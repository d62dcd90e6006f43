"""The queue of a service as a feed sees it that reaches nothing else: one question, with the token of its workers."""

from __future__ import annotations

import httpx

from grader.errors import InfraError, UsageError
from grader.http.connection import reason_of, worker_connection
from grader.json_reader import read_value
from grader.store.queue.worker_demand import WorkerDemand

_TIMEOUT = httpx.Timeout(20.0, connect=5.0)


class ServiceQueue:
    """One service."""

    def __init__(self, server: str, token: str) -> None:
        """Asks nothing yet.

        Raises:
            UsageError: that is no address, its token would be read on the way, or there is none.
        """
        self._url, self._http = worker_connection(server, token, _TIMEOUT)

    def demand(self) -> WorkerDemand:
        """What it wants of workers now.

        Raises:
            InfraError: it does not answer, or not in order. UsageError: it does not let us in.
        """
        try:
            response = self._http.get("/worker/demand")
        except httpx.TransportError as error:
            raise InfraError(f"{self._url} does not answer ({reason_of(error)})") from error
        if response.status_code in (401, 403):
            raise UsageError(f"{self._url} does not let this token in: `grader tokens issue` makes one")
        try:
            return read_value(WorkerDemand, response.raise_for_status().json())
        except (httpx.HTTPStatusError, ValueError) as error:
            raise InfraError(f"{self._url} answers {response.status_code}: {reason_of(error)}") from error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()
