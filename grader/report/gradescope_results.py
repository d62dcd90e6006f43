"""What Gradescope reads of an attempt, its `results.json`: one test per rubric item, each with what was seen.

Gradescope's total per assignment is fixed, as ours is. Learners read this file's texts, so what only staff should know
is never in it.
"""

from __future__ import annotations

import json
import math
from typing import Any

from grader.model.attempt_result import AttemptResult
from grader.model.finding import Finding
from grader.model.grade import Grade, ItemState, RubricResult, Verdict
from grader.model.metric import Direction
from grader.report.audience import Audience, for_audience
from grader.report.safe_text import visible
from grader.report.words.banner import as_judged, sentence
from grader.report.words.wording import ITEM_STATES, points_text, ranks_text

_FULL = 100.0
_ORDER = {Direction.MAX: "desc", Direction.MIN: "asc"}


def gradescope_results(grade: Grade, result: AttemptResult | None = None) -> str:
    """The document as indented JSON with a newline at its end, for the learner, whoever asks.

    `result`: what the attempt counts as; None: as it was judged.
    """
    result = result or AttemptResult.of(grade)
    grade = for_audience(grade, Audience.LEARNER)
    document = {
        "score": _score(result),
        "max_score": _FULL,
        "execution_time": _number(sum(grade.phases.values())),
        "output": _overall(grade, result),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        # What `grader` itself prints while it works is for whoever set it up.
        "stdout_visibility": "hidden",
        "tests": [_test(number, item, grade) for number, item in enumerate(grade.rubric, start=1)],
        # Shown where an instructor turns it on.
        "leaderboard": [
            {"name": visible(metric.heading), "value": value, "order": _ORDER[metric.direction]}
            for metric in grade.measures
            if (value := grade.metrics.get(metric.name)) is not None
        ],
        "extra_data": {
            "schema": 1,
            "verdict": result.verdict.value,
            "task": grade.task,
            "task_version": grade.task_version,
            "digest": grade.digest,
        },
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _score(result: AttemptResult) -> float:
    if result.max_points <= 0 or result.verdict is Verdict.JUDGE_ERROR:
        return 0.0
    # Grades of an earlier schema may have another total.
    return _number(result.points / result.max_points * _FULL)


def _test(number: int, item: RubricResult, grade: Grade) -> dict[str, Any]:
    left_out = item.state is ItemState.NOT_SHOWN
    told = [finding for finding in grade.findings if finding.code in item.codes]
    test: dict[str, Any] = {
        "name": visible(item.title) + (" (cannot be shown here)" if left_out else ""),
        "number": str(number),
        "score": _number(item.earned),
        "max_score": _number(item.points),
    }
    if not left_out:
        # Without it Gradescope would call 0 of 0 points a success.
        test["status"] = "passed" if _full(item) else "failed"
    return {
        **test,
        "output": visible(
            "\n\n".join([f"{ITEM_STATES[item.state][0]}: {item.reason}", *map(_finding, told)])
        ),
        "visibility": "visible",
    }


def _full(item: RubricResult) -> bool:
    return math.isclose(item.earned, item.points, abs_tol=1e-9)


def _overall(grade: Grade, result: AttemptResult) -> str:
    said = f"{sentence(result)}."
    if result.max_points != _FULL:
        said += f" Here they count as {points_text(_score(result))} of {_FULL:g}."
    costing = {code for item in grade.rubric for code in item.codes}
    rest = [finding for finding in grade.findings if finding.code not in costing]
    return visible("\n\n".join([said, as_judged(grade, result), *map(_finding, rest), *grade.notes]))


def _finding(finding: Finding) -> str:
    place = f" at {finding.location}" if finding.location else ""
    ranks = f", {ranks_text(finding.ranks)}" if finding.ranks else ""
    text = f"{finding.code} ({finding.severity.value}){place}{ranks}: {finding.message}"
    return text + (f"\nInstead: {finding.hint}" if finding.hint else "")


def _number(value: float) -> float:
    return round(float(value), 4) if math.isfinite(value) else 0.0
