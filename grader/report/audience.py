"""Who reads a report, and what a learner is not shown: evidence that is for staff to weigh, and scores to the digit.

A held attempt tells the learner what a person will look at, and never accuses. Judging knows no audience.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from grader.checks.phrases import listed
from grader.model.finding import Severity
from grader.model.grade import CheckResult, Grade, RubricResult, Verdict
from grader.report.score_rounding import with_coarse_scores

_HELD = "An instructor looks at this attempt before it gets its verdict: nobody has found you at fault."
_UNTIL = "Until then it counts as nothing, and your best other attempt stands."
_STAFF_FAMILY = "TRUST"


class Audience(StrEnum):
    """Whom a report is written for."""

    LEARNER = "learner"
    STAFF = "staff"


def for_audience(grade: Grade, audience: Audience) -> Grade:
    """The grade as this audience may read it.

    Unchanged for staff; for learners without review findings, and with scores on hidden data in steps.
    """
    if audience == Audience.STAFF:
        return grade
    held = _held_reason(grade)
    grade = with_coarse_scores(grade)
    return replace(
        grade,
        verdict_reason=held if grade.verdict is Verdict.HELD else grade.verdict_reason,
        rubric=tuple(_without_staff_codes(item) for item in grade.rubric),
        findings=tuple(
            f
            for f in grade.findings
            if f.severity is not Severity.REVIEW and not f.code.startswith(_STAFF_FAMILY)
        ),
        checks=tuple(c for c in grade.checks if not staff_only(c)),
        review=(),
    )


def _held_reason(grade: Grade) -> str:
    """Names what a person looks at, or what nobody could watch where that is all; what was seen is staff's."""
    if grade.verdict_reason.endswith(_UNTIL):
        return grade.verdict_reason  # it was written for learners already
    unseen = {item.not_seen_reason: item.title for item in grade.rubric if item.not_seen}
    if not grade.review or not unseen.keys() >= set(grade.review):
        about = f" To be looked at: {listed(grade.review_subjects)}." if grade.review_subjects else ""
        return f"{_HELD}{about} {_UNTIL}"
    named = listed(f"“{unseen[reason]}”" for reason in grade.review)
    return f"The judge could not watch how your script does this: {named}. {_HELD} {_UNTIL}"


def staff_only(check: CheckResult) -> bool:
    """Whether learners are not told of this check: it is about whether the run can be trusted."""
    return check.code.startswith(_STAFF_FAMILY)


def _without_staff_codes(item: RubricResult) -> RubricResult:
    codes = tuple(c for c in item.codes if not c.startswith(_STAFF_FAMILY))
    if codes == item.codes:
        return item
    # With nothing else to point at, the item's own sentence would tell what only staff should read.
    reason = item.reason if codes else "An instructor looks at this item."
    return replace(item, codes=codes, reason=reason)
