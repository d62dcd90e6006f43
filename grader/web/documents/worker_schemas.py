"""What workers send that reach nothing but the service. Everything has a bound: a token of theirs may be stolen."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from grader.store.tables.attempt import Lane
from grader.web.documents.document import Received

EVENTS_BYTES = 256 << 10
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
"""Of a worker."""
Count = Annotated[int, Field(ge=0, le=10_000)]
Need = Annotated[str, Field(pattern=r"^(cpu|gpu[1-9]\d{0,2})$")]
Name = Annotated[str, Field(max_length=120)]
WorkerName = Annotated[str, Field(pattern=NAME)]
LeaseSeconds = Annotated[float, Field(ge=3, le=300)]


class HostIn(Received):
    """See `grader.store.queue.queue.WorkerHost`."""

    num_gpus: Count | None
    num_leases: Count | None
    num_waiting: Count | None
    num_containers: Count | None


class WorkerIn(Received):
    """A worker that says what it can take, and how many at once."""

    needs: Annotated[list[Need], Field(max_length=256)]
    slots: Annotated[int, Field(ge=1, le=256)]
    host: HostIn | None


class ClaimIn(Received):
    """A worker that asks for an attempt; see `grader.store.queue.claims.claim`."""

    worker: WorkerName
    needs: Annotated[list[Need], Field(max_length=256)]
    lane: Lane | None
    fitting: Annotated[list[tuple[Name, Name]], Field(max_length=2000)] | None
    lease_s: LeaseSeconds


class HeartbeatIn(Received):
    """That an attempt is judged, and how far that is."""

    phase: Annotated[str, Field(max_length=40)]
    lease_s: LeaseSeconds


class EventsIn(Received):
    """What happened in an attempt, in order."""

    events: Annotated[list[tuple[Literal["phase", "epoch", "log"], dict[str, Any]]], Field(max_length=5000)]

    @model_validator(mode="after")
    def _within_bounds(self) -> Self:
        for kind, data in self.events:
            phase = data.get("phase")
            if kind == "phase" and not (isinstance(phase, str) and len(phase) <= 40):
                raise ValueError("a phase has a name")
        if len(json.dumps(self.events)) > EVENTS_BYTES:
            raise ValueError(f"more than {EVENTS_BYTES} bytes")
        return self


class KeptFileIn(Received):
    """A file that was brought before, with what was answered then."""

    name: Annotated[str, Field(max_length=40)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    receipt: Annotated[str, Field(max_length=64)]


class EndIn(Received):
    """How an attempt ended: `finish` names what it left, `fail` says why it could not be judged."""

    how: Literal["finish", "fail", "give_up"]
    files: Annotated[tuple[KeptFileIn, ...], Field(max_length=8)] = ()
    reason: Annotated[str, Field(max_length=20_000)] = ""
    retry: bool = True
