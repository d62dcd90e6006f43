"""A grade as JSON for machines, and back: fixed key order, the same bytes for the same grade.

The text is plain ASCII (other characters escaped), so that no terminal or log can be fooled by what a learner's
script printed. Numbers that JSON cannot hold (NaN, infinities) become null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from grader.model.diagnosis import Diagnosis
from grader.model.finding import EvidenceKind, Finding, Location, Severity
from grader.model.fix import Edit, Fix
from grader.model.grade import SCHEMA, CheckResult, Grade, ItemState, RubricResult, State, Verdict
from grader.model.metric import ACCURACY, Metric, target_of
from grader.report.audience import Audience, for_audience

_RENAMED = {"images_per_s": "samples_per_s", "images_per_s_one_rank": "samples_per_s_one_rank"}
"""Metrics by the names that they were stored under when every sample was an image."""


def to_json(grade: Grade, audience: Audience = Audience.LEARNER) -> str:
    """The grade as indented JSON with a newline at its end.

    Learners do not get review findings; store and pass on grades with `Audience.STAFF`, which loses nothing.
    """
    grade = for_audience(grade, audience)
    document = {
        "schema": grade.schema,
        "verdict": grade.verdict.value,
        "verdict_reason": grade.verdict_reason,
        "points": _number_out(grade.points),
        "max_points": _number_out(grade.max_points),
        "task": grade.task,
        "task_version": grade.task_version,
        "submission": grade.submission,
        "digest": grade.digest,
        "profile": grade.profile,
        "dataset": grade.dataset,
        "world_size": grade.world_size,
        "runtime": grade.runtime,
        "diagnosis": _diagnosis_out(grade.diagnosis) if grade.diagnosis is not None else None,
        "rubric": [_rubric_out(item) for item in grade.rubric],
        "findings": [finding_out(finding) for finding in grade.findings],
        "checks": [_check_out(check) for check in grade.checks],
        "metrics": _facts(grade.metrics),
        "measures": [asdict(metric) for metric in grade.measures],
        "phases": _facts(grade.phases),
        "environment": _facts(grade.environment),
        "gating": grade.gating,
        "notes": grade.notes,
        "review": grade.review,
        "review_subjects": grade.review_subjects,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def from_json(text: str) -> Grade:
    """The grade that `to_json` wrote, of this schema or an earlier one.

    Raises:
        ValueError: not JSON, another schema, or a field is missing or of an unknown kind.
    """
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema") not in range(1, SCHEMA + 1):
        raise ValueError(f'this is not a grade of schema 1 to {SCHEMA}: "schema" is missing or different')
    try:
        return _grade_in(document)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is not a whole grade: {type(error).__name__}: {error}") from error


def finding_out(finding: Finding) -> dict[str, Any]:
    """One finding; `path`, `line`, `column`, `end_line` are those of the first place, null where there is none.

    A place in a notebook has a `cell`, too: how its author knows the line.
    `fix` is there only where there is one: what it does, and edits as `grader.model.fix` counts their places.
    """
    first = finding.location
    out: dict[str, Any] = {
        "code": finding.code,
        "severity": finding.severity.value,
        "evidence": finding.evidence.value,
        "path": first.path if first else None,
        "line": first.line if first else None,
        "column": first.column if first else None,
        "end_line": first.end_line if first else None,
        "ranks": finding.ranks,
        "message": finding.message,
        "hint": finding.hint,
        "where": [_place_out(place) for place in finding.where],
        "confirmed": finding.confirmed,
        "refuted": finding.refuted,
        "details": _facts(finding.details),
    }
    if finding.fix is not None:
        out["fix"] = _fix_out(finding.fix)
    return out


def _fix_out(fix: Fix) -> dict[str, Any]:
    return {"summary": fix.summary, "edits": [asdict(edit) for edit in fix.edits]}


def _fix_in(item: dict[str, Any]) -> Fix:
    edits = (
        Edit(e["path"], e["line"], e["column"], e["end_line"], e["end_column"], e["text"])
        for e in item["edits"]
    )
    return Fix(item["summary"], tuple(edits))


def _place_out(place: Location) -> dict[str, Any]:
    out = {"path": place.path, "line": place.line, "column": place.column, "end_line": place.end_line}
    return out | ({"cell": place.cell} if place.cell else {})


def _place_in(item: dict[str, Any]) -> Location:
    return Location(item["path"], item["line"], item["column"], item["end_line"], item.get("cell", ""))


def _diagnosis_out(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "id": diagnosis.id,
        "title": diagnosis.title,
        "explanation": diagnosis.explanation,
        "hint": diagnosis.hint,
        "where": [_place_out(place) for place in diagnosis.where],
        "ranks": diagnosis.ranks,
        "details": _facts(diagnosis.details),
    }


def _diagnosis_in(item: dict[str, Any]) -> Diagnosis:
    return Diagnosis(
        id=item["id"],
        title=item["title"],
        explanation=item["explanation"],
        hint=item["hint"],
        where=tuple(_place_in(place) for place in item["where"]),
        ranks=tuple(item["ranks"]),
        details=dict(item["details"]),
    )


def _rubric_out(item: RubricResult) -> dict[str, Any]:
    return {
        "id": item.id,
        "title": item.title,
        "must": item.must,
        "points": _number_out(item.points),
        "full_points": _number_out(item.full_points),
        "earned": _number_out(item.earned),
        "state": item.state.value,
        "evidence": [kind.value for kind in item.evidence],
        "reason": item.reason,
        "codes": item.codes,
        "not_seen": _number_out(item.not_seen),
    }


def _check_out(check: CheckResult) -> dict[str, Any]:
    return {
        "code": check.code,
        "state": check.state.value,
        "evidence": [kind.value for kind in check.evidence],
        "reason": check.reason,
    }


def _grade_in(document: dict[str, Any]) -> Grade:
    return Grade(
        task=document["task"],
        task_version=document["task_version"],
        submission=document["submission"],
        digest=document["digest"],
        profile=document["profile"],
        dataset=document["dataset"],
        world_size=document["world_size"],
        runtime=document["runtime"],
        verdict=Verdict(document["verdict"]),
        verdict_reason=document["verdict_reason"],
        points=_number_in(document["points"]),
        max_points=_number_in(document["max_points"]),
        rubric=tuple(_rubric_in(item) for item in document["rubric"]),
        findings=tuple(_finding_in(item) for item in document["findings"]),
        checks=tuple(_check_in(item) for item in document["checks"]),
        metrics={_RENAMED.get(name, name): value for name, value in document["metrics"].items()},
        phases={name: _number_in(value) for name, value in document["phases"].items()},
        environment=dict(document["environment"]),
        notes=tuple(document["notes"]),
        review=tuple(document["review"]),
        review_subjects=tuple(document.get("review_subjects", ())),
        # Grades stored before runs were diagnosed have none.
        diagnosis=_diagnosis_in(found) if (found := document.get("diagnosis")) is not None else None,
        gating=tuple(document.get("gating", ())),
        schema=document["schema"],
        measures=_measures_in(document),
    )


def _measures_in(document: dict[str, Any]) -> tuple[Metric, ...]:
    """What it says; accuracy, where it was stored when that was all there was."""
    if "measures" in document:
        return tuple(map(Metric.of, document["measures"]))
    known = (document["metrics"].get(name) for name in (ACCURACY.name, target_of(ACCURACY.name)))
    return (ACCURACY,) if any(value is not None for value in known) else ()


def _finding_in(item: dict[str, Any]) -> Finding:
    return Finding(
        code=item["code"],
        severity=Severity(item["severity"]),
        evidence=EvidenceKind(item["evidence"]),
        message=item["message"],
        hint=item["hint"],
        where=tuple(_place_in(place) for place in item["where"]),
        ranks=tuple(item["ranks"]),
        details=dict(item["details"]),
        confirmed=item["confirmed"],
        refuted=item["refuted"],
        fix=_fix_in(found) if (found := item.get("fix")) is not None else None,
    )


def _rubric_in(item: dict[str, Any]) -> RubricResult:
    points, earned = _number_in(item["points"]), _number_in(item["earned"])
    return RubricResult(
        id=item["id"],
        title=item["title"],
        must=item["must"],
        points=points,
        full_points=_number_in(item["full_points"]),
        earned=earned,
        state=_item_state(item["state"], points, earned),
        evidence=tuple(EvidenceKind(kind) for kind in item["evidence"]),
        reason=item["reason"],
        codes=tuple(item["codes"]),
        not_seen=_number_in(item.get("not_seen", 0.0)),
    )


def _item_state(told: str, points: float, earned: float) -> ItemState:
    """An item's state, also as schema 1 told it, by the words of checks."""
    match told:
        case State.VERIFIED:
            return ItemState.EARNED
        case State.CONTRADICTED:
            return ItemState.PARTLY if earned > 0 else ItemState.LOST
        case State.NOT_OBSERVABLE:
            return ItemState.NOT_SEEN if points > 0 else ItemState.NOT_SHOWN
        case _:
            return ItemState(told)


def _check_in(item: dict[str, Any]) -> CheckResult:
    return CheckResult(
        code=item["code"],
        state=State(item["state"]),
        evidence=tuple(EvidenceKind(kind) for kind in item["evidence"]),
        reason=item["reason"],
    )


def _number_in(value: float | None) -> float:
    # null stood for a number that JSON cannot hold; NaN writes the same null again.
    return math.nan if value is None else value


def _number_out(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _facts(value: Any) -> Any:
    """Free-form facts in JSON's own types, mappings sorted by key, so that their origin's order never shows."""
    if isinstance(value, Mapping):
        pairs = sorted(((str(key), item) for key, item in value.items()), key=lambda pair: pair[0])
        return {key: _facts(item) for key, item in pairs}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_facts(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_facts(item) for item in value), key=repr)
    return str(value)
