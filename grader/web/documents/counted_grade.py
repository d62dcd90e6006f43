"""A grade's document with what the attempt counts as beside what was judged: a program that reads it needs no other."""

from __future__ import annotations

import json
from typing import Any

from grader.model.attempt_result import AttemptResult
from grader.report.words.banner import sentence


def counts_out(result: AttemptResult) -> dict[str, Any]:
    """Verdict, points and possible points that count, and the sentence that says how they came about."""
    return {
        "verdict": result.verdict.value,
        "points": result.points,
        "max_points": result.max_points,
        "outcome": sentence(result),
    }


def with_counts(document: str, result: AttemptResult | None) -> str:
    """The document with `counts` added, and nothing else changed; as it is where the attempt has no grade."""
    if result is None:
        return document
    fields = {**json.loads(document), "counts": counts_out(result)}
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"
