"""What the service answers, as far as a client shows it. Fields that are not known are passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.model.finding import EvidenceKind, Finding, Location, Severity

_ENDED = ("judged", "failed", "cancelled")


def findings_of(told: Sequence[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """What reading the source showed."""
    return tuple(
        Finding(
            code=str(one["code"]),
            severity=Severity(one["severity"]),
            evidence=EvidenceKind.SOURCE,
            message=str(one["message"]),
            hint=str(one.get("hint") or ""),
            where=(Location(str(one["path"]), int(one.get("line") or 1), int(one.get("column") or 0)),)
            if one.get("path")
            else (),
        )
        for one in told
    )


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """A task that a course sets."""

    id: int
    name: str
    title: str
    course_id: int
    course: str


@dataclass(frozen=True, slots=True)
class SubmissionAnswer:
    """What became of handing in.

    Attributes:
        findings: what the source checks saw; None: the service is busy, ask for them.
        repeated: the service had this very request already.
        late_days: days begun after the due date.
    """

    attempt_id: int
    state: str
    position: int | None
    starts_in_s: float | None
    findings: tuple[Finding, ...] | None
    repeated: bool
    late_days: int

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> SubmissionAnswer:
        """From the service's answer."""
        place = answer.get("place") or {}
        return cls(
            int(answer["attempt_id"]),
            str(answer.get("state", "queued")),
            place.get("position"),
            place.get("starts_in_s"),
            None if answer.get("findings") is None else findings_of(answer["findings"]),
            bool(answer.get("repeated", False)),
            int(answer.get("late_days") or 0),
        )


@dataclass(frozen=True, slots=True)
class AttemptAnswer:
    """An attempt as the service tells it now.

    Attributes:
        verdict, points, max_points: None where there is no grade, or it is not told yet.
        hidden_until: when the grade is told, where it is not yet.
        failure: why the grader itself failed.
    """

    id: int
    task: str
    submission: str
    state: str
    phase: str | None
    position: int | None
    starts_in_s: float | None
    verdict: str | None
    points: float | None
    max_points: float | None
    hidden_until: str | None
    fields: Mapping[str, Any]

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in _ENDED

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> AttemptAnswer:
        """From the service's answer."""
        place = answer.get("place") or {}
        return cls(
            int(answer["id"]),
            str(answer.get("task", "")),
            str(answer.get("submission", "")),
            str(answer["state"]),
            answer.get("phase"),
            place.get("position"),
            place.get("starts_in_s"),
            answer.get("verdict"),
            answer.get("points"),
            answer.get("max_points"),
            answer.get("hidden_until"),
            answer,
        )


@dataclass(frozen=True, slots=True)
class EventAnswer:
    """Something that happened to an attempt; `kind` and `data` as the worker and the store tell them."""

    seq: int
    kind: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> EventAnswer:
        """From the service's answer."""
        return cls(int(answer["seq"]), str(answer["kind"]), answer.get("data") or {})
