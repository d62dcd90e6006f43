"""The outcome of an attempt: verdict, points, and everything a report needs to explain them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grader.model.diagnosis import Diagnosis
from grader.model.finding import EvidenceKind, Finding
from grader.model.metric import Metric

SCHEMA = 2
"""Of stored grades. Those of schema 1 had a scale of their own: what was not observable left their total."""


class Verdict(StrEnum):
    """The one-word outcome, strongest first."""

    JUDGE_ERROR = "judge_error"
    HELD = "held"
    TIMED_OUT = "timed_out"
    DEADLOCKED = "deadlocked"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    REJECTED = "rejected"
    ACCEPTED = "accepted"


class State(StrEnum):
    """What the evidence says about one check."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    NOT_OBSERVABLE = "not_observable"
    NOT_REACHED = "not_reached"
    """The run never came to what the check asks about."""


class ItemState(StrEnum):
    """How a rubric item ended."""

    EARNED = "earned"
    PARTLY = "partly"
    LOST = "lost"
    """The run contradicts it."""
    NOT_REACHED = "not_reached"
    """The run ended before it, or never began it."""
    NOT_SHOWN = "not_shown"
    """It cannot show here, whoever hands in: it is left out of the 100 points."""
    NOT_SEEN = "not_seen"
    """The script did it in a way that the judge cannot watch."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One rule's outcome in this attempt.

    Attributes:
        code: rule code.
        state: verified (looked, and it is right), contradicted (found), not observable, or not reached.
        evidence: kinds that spoke.
        reason: one sentence: what was seen to be right, or why nothing could be seen.
    """

    code: str
    state: State
    evidence: tuple[EvidenceKind, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RubricResult:
    """One rubric item, judged.

    Attributes:
        id, title, must: as in the task.
        points: what it is worth here, of 100 (0 where it cannot be shown); full_points: in the task.
        earned: points earned.
        state: how it ended.
        evidence: kinds of evidence that decided it.
        reason: one sentence.
        codes: codes of the findings that cost points here.
        not_seen: of `points`, what the judge could not watch, paid or not.
    """

    id: str
    title: str
    must: bool
    points: float
    full_points: float
    earned: float
    state: ItemState
    evidence: tuple[EvidenceKind, ...]
    reason: str
    codes: tuple[str, ...] = ()
    not_seen: float = 0.0

    @property
    def not_seen_reason(self) -> str:
        """Why an attempt is held because of what nobody could watch here, as `Grade.review` has it."""
        return f"{self.not_seen:g} of {self.points:g} points of “{self.title}” were not seen: {self.reason}"


@dataclass(frozen=True, slots=True)
class Grade:
    """Verdict + points + rubric results + findings, with what they were judged on.

    Attributes:
        task, task_version, submission, digest, profile, dataset, world_size, runtime: what was judged.
        verdict: outcome; verdict_reason: one sentence for the learner.
        points, max_points: earned, and 100; those of schema 1 could have another total.
        rubric: item results in the task's order.
        findings: sorted by severity, then code, then place.
        checks: one result per applicable rule, sorted by code.
        metrics: name → number or None: of each of `measures` its value on hidden data, `<name>_target` and
            `validation_<name>`; `cpu_s`, `time_target_s`, `wall_s`, `samples_per_s`, `samples_per_s_one_rank`,
            `speedup`, `efficiency`, ….
        phases: name → seconds.
        environment: versions and machine facts.
    """

    task: str
    task_version: str
    submission: str
    digest: str
    profile: str
    dataset: str
    world_size: int
    runtime: str
    verdict: Verdict
    verdict_reason: str
    points: float
    max_points: float
    rubric: tuple[RubricResult, ...]
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    metrics: dict[str, float | None]
    phases: dict[str, float]
    environment: dict[str, Any]
    notes: tuple[str, ...] = field(default=())
    """Plain sentences about the judging itself: provisional calibration, no isolation, …."""
    review: tuple[str, ...] = field(default=())
    """Why a held attempt is held, for staff only; empty otherwise."""
    review_subjects: tuple[str, ...] = field(default=())
    """What a person looks at in a held attempt, in words that learners may read; none in those of earlier judges."""
    diagnosis: Diagnosis | None = None
    """Why the run died or stood still, where that is known; None for runs that ended by themselves."""
    gating: tuple[str, ...] = ()
    """Codes of the findings that stand between this attempt and acceptance."""
    schema: int = SCHEMA
    """Of the judge that made it; what was stored by an earlier one keeps its own scale."""
    measures: tuple[Metric, ...] = ()
    """What the task measures networks by: how the numbers of `metrics` are called, written and told to learners."""

    @property
    def earlier_scale(self) -> bool:
        """Whether it was judged when what could not be observed left the total."""
        return self.schema < SCHEMA
