"""What was right, grouped by what it is about, so that a long list reads as a short one.

Says only what the checks say; a check that was not observable praises nobody, and nor does one that found no fault in
a script that did nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.model.finding import EvidenceKind, family_of
from grader.model.grade import CheckResult, Grade, State
from grader.report.audience import staff_only
from grader.report.words.wording import FAMILIES


@dataclass(frozen=True, slots=True)
class Praise:
    """One family.

    Attributes:
        heading: what it is about.
        seen: checks that saw in the run, or in the scorer, that it is right.
        read: (code, title of the fault) of checks that read the text alone and found nothing.
    """

    heading: str
    seen: tuple[CheckResult, ...]
    read: tuple[tuple[str, str], ...]


def verified_checks(grade: Grade) -> tuple[CheckResult, ...]:
    """Checks that saw that it is right; none of an attempt that earned nothing, where there was nothing to see."""
    if not grade.points:
        return ()
    return tuple(check for check in grade.checks if check.state is State.VERIFIED)


def praise(checks: Iterable[CheckResult], titles: Mapping[str, str]) -> tuple[Praise, ...]:
    """Verified checks by family, in the order in which one refactors a script; other families last."""
    by_family: dict[str, list[CheckResult]] = {family: [] for family in FAMILIES}
    for check in checks:
        by_family.setdefault(family_of(check.code), []).append(check)
    return tuple(
        Praise(
            "Whether the run can be trusted (only staff see this)"
            if staff_only(members[0])
            else FAMILIES.get(family, "Everything else"),
            tuple(check for check in members if not _only_read(check)),
            tuple((check.code, titles.get(check.code, "")) for check in members if _only_read(check)),
        )
        for family, members in by_family.items()
        if members
    )


def _only_read(check: CheckResult) -> bool:
    return check.evidence == (EvidenceKind.SOURCE,)
