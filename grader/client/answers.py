"""What the service answers, as far as a client shows it. Fields that are not known are passed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grader.checks.rubric_step import RubricStep, Sight
from grader.model.attempt_result import AttemptResult
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.grade import Verdict
from grader.model.task import RubricItem

_ENDED = ("judged", "failed", "cancelled")


def findings_of(told: Sequence[Mapping[str, Any]]) -> tuple[Finding, ...]:
    """What reading the source showed."""
    # Here and not above: most commands show no finding, and cards bring all that rules are read with.
    from grader.report.findings.cards import COSTS

    return tuple(
        Finding(
            code=str(one["code"]),
            severity=Severity(one["severity"]),
            evidence=EvidenceKind.SOURCE,
            message=str(one["message"]),
            hint=str(one.get("hint") or ""),
            details={COSTS: tuple(map(str, one["costs"]))} if one.get("costs") else {},
            where=(Location(str(one["path"]), int(one.get("line") or 1), int(one.get("column") or 0)),)
            if one.get("path")
            else (),
        )
        for one in told
    )


def steps_of(told: Sequence[Mapping[str, Any]]) -> tuple[RubricStep, ...]:
    """The task's items, in the order in which the service tells them."""
    return tuple(
        RubricStep(
            RubricItem(str(one["id"]), str(one["title"]), float(one["points"]), bool(one["must"]), (), None),
            Sight(one["sight"]),
            (("", str(one["says"])),) if one.get("says") else (),
        )
        for one in told
    )


@dataclass(frozen=True, slots=True)
class SignInAnswer:
    """How people sign in: with passwords of the service or not, and by these others, in a browser."""

    passwords: bool
    providers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadingAnswer:
    """What reading a submission shows for a task, before it is handed in."""

    findings: tuple[Finding, ...]
    steps: tuple[RubricStep, ...]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> ReadingAnswer:
        """From the service's answer."""
        return cls(findings_of(answer["findings"]), steps_of(answer["steps"]))


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
        findings: what the source checks saw; None: the service is busy, and tells them by `Service.findings`.
        repeated: the service had this very request already.
        late_days: days begun after the due date.
        attempts_left: such as `2 of 3 left today`; "" where none are counted, or it is not told.
    """

    attempt_id: int
    state: str
    position: int | None
    starts_in_s: float | None
    findings: tuple[Finding, ...] | None
    repeated: bool
    late_days: int
    attempts_left: str

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
            str(answer.get("attempts_left") or ""),
        )


@dataclass(frozen=True, slots=True)
class AttemptAnswer:
    """An attempt as the service tells it now.

    Attributes:
        verdict: what counts; None where there is no grade, or it is not told yet.
        result: what it counts as, and how it was judged; None where there is no verdict.
        outcome: verdict, points, lateness and an instructor's decision in one sentence, "" where there is no verdict.
        hidden_until: when the grade is told, where it is not yet.
        question: what an instructor asked before deciding and nobody has answered, "" where there is nothing.
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
    result: AttemptResult | None
    outcome: str
    hidden_until: str | None
    question: str
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
            None if answer.get("verdict") is None else _result_of(answer),
            str(answer.get("outcome") or ""),
            answer.get("hidden_until"),
            str(answer.get("question") or ""),
            answer,
        )


def _result_of(answer: Mapping[str, Any]) -> AttemptResult:
    points, held_since = float(answer.get("points") or 0.0), answer.get("held_since")
    judged = answer.get("judged_points")
    return AttemptResult(
        verdict=Verdict(answer["verdict"]),
        points=points,
        max_points=float(answer.get("max_points") or 0.0),
        judged_verdict=Verdict(answer.get("judged_verdict") or answer["verdict"]),
        judged_points=points if judged is None else float(judged),
        late_days=int(answer.get("late_days") or 0),
        late_loss=float(answer.get("late_loss") or 0.0),
        decided=bool(answer.get("overridden")),
        held_since=datetime.fromisoformat(held_since) if held_since else None,
        earlier_scale=bool(answer.get("earlier_scale")),
        free_days=int(answer.get("free_days") or 0),
        comment_points=float(answer.get("comment_points") or 0.0),
    )


@dataclass(frozen=True, slots=True)
class FindingChangeAnswer:
    """A finding that only one of two attempts has; `place` such as `train.py:23`, "" where no line is to blame."""

    code: str
    title: str
    severity: Severity
    place: str
    doubt: str

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> FindingChangeAnswer:
        """From the service's answer."""
        place = f"{answer['path']}:{answer.get('line') or 1}" if answer.get("path") else ""
        place = str(answer.get("cell") or place)
        return cls(
            str(answer["code"]),
            str(answer.get("title") or ""),
            Severity(answer["severity"]),
            place,
            str(answer.get("doubt") or ""),
        )


@dataclass(frozen=True, slots=True)
class FileChangeAnswer:
    """A file that is not as it was; `diff`: a unified diff that lacks `num_left_out` lines."""

    kind: str
    path: str
    old_path: str
    diff: str
    num_left_out: int

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> FileChangeAnswer:
        """From the service's answer."""
        return cls(
            str(answer["kind"]),
            str(answer["path"]),
            str(answer.get("old_path") or ""),
            str(answer.get("diff") or ""),
            int(answer.get("num_left_out") or 0),
        )


@dataclass(frozen=True, slots=True)
class ChangesAnswer:
    """What changed since an earlier attempt; `since` None: there is none to compare with."""

    attempt_id: int
    since: int | None
    outcome_before: str
    outcome: str
    went: tuple[FindingChangeAnswer, ...]
    came: tuple[FindingChangeAnswer, ...]
    num_stayed: int
    files: tuple[FileChangeAnswer, ...]
    notes: tuple[str, ...]
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> ChangesAnswer:
        """From the service's answer."""
        return cls(
            int(answer["attempt_id"]),
            answer.get("since"),
            str(answer.get("outcome_before") or ""),
            str(answer.get("outcome") or ""),
            tuple(FindingChangeAnswer.of(one) for one in answer.get("went") or ()),
            tuple(FindingChangeAnswer.of(one) for one in answer.get("came") or ()),
            int(answer.get("num_stayed") or 0),
            tuple(FileChangeAnswer.of(one) for one in answer.get("files") or ()),
            tuple(str(one) for one in answer.get("notes") or ()),
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
