"""The outcome of an attempt: verdict, points, and everything a report needs to explain them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grader.model.diagnosis import Diagnosis
from grader.model.finding import EvidenceKind, Finding

SCHEMA = 1


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
    """What the evidence says about one check or rubric item."""

    VERIFIED = "verified"
    CONTRADICTED = "contradicted"
    NOT_OBSERVABLE = "not_observable"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One rule's outcome in this attempt.

    Attributes:
        code: rule code.
        state: verified (looked, and it is right), contradicted (found), or not observable.
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
        points: what it is worth in this attempt (0 when it left the denominator); full_points: in the task.
        earned: points earned.
        state: verified, contradicted or not observable.
        evidence: kinds of evidence that decided it.
        reason: one sentence.
        codes: codes of the findings that cost points here.
    """

    id: str
    title: str
    must: bool
    points: float
    full_points: float
    earned: float
    state: State
    evidence: tuple[EvidenceKind, ...]
    reason: str
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grade:
    """Verdict + points + rubric results + findings, with what they were judged on.

    Attributes:
        task, task_version, submission, digest, profile, dataset, world_size, runtime: what was judged.
        verdict: outcome; verdict_reason: one sentence for the learner.
        points, max_points: earned and possible, unobservable items left out of both.
        rubric: item results in the task's order.
        findings: sorted by severity, then code, then place.
        checks: one result per applicable rule, sorted by code.
        metrics: name → number or None: `accuracy`, `accuracy_target`, `validation_accuracy`, `cpu_s`, `time_target_s`,
            `wall_s`, `images_per_s`, `images_per_s_one_rank`, `speedup`, `efficiency`, ….
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
    diagnosis: Diagnosis | None = None
    """Why the run died or stood still, where that is known; None for runs that ended by themselves."""
