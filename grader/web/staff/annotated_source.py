"""A submission beside what was found in it: every line with the findings and remarks that point at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grader.model.finding import Finding
from grader.model.notebook_lines import shown_number
from grader.model.submission import Submission
from grader.report.html.highlight import highlighted
from grader.report.words.wording import SEVERITY_TONES, mend_order
from grader.store.grading.reviews import StoredComment

MOST_LINES = 3000


@dataclass(frozen=True, slots=True)
class NumberedFinding:
    """A finding with its number on the page; `staff`: learners are not shown it."""

    number: int
    finding: Finding
    tone: str
    title: str
    staff: bool


@dataclass(frozen=True, slots=True)
class AnnotatedLine:
    """One line: its text with colours, the findings and the remarks that point at it; `shown`: its number beside it."""

    number: int
    shown: int
    text: Markup
    findings: tuple[NumberedFinding, ...]
    remarks: tuple[StoredComment, ...]


@dataclass(frozen=True, slots=True)
class AnnotatedFile:
    """One file; `num_left_out` lines at its end are not shown."""

    path: str
    lines: tuple[AnnotatedLine, ...]
    num_left_out: int


def numbered_findings(
    findings: Sequence[Finding], shown_to_learners: Sequence[Finding], titles: Mapping[str, str]
) -> tuple[NumberedFinding, ...]:
    """Findings in the order of what to mend first, those that only staff see at the end."""
    shown = set(map(id, shown_to_learners))
    ordered = sorted(findings, key=lambda one: (id(one) not in shown, mend_order(one)))
    return tuple(
        NumberedFinding(
            number, one, SEVERITY_TONES[one.severity], titles.get(one.code, ""), staff=id(one) not in shown
        )
        for number, one in enumerate(ordered, start=1)
    )


def annotated_files(
    submission: Submission, found: Sequence[NumberedFinding], remarks: Sequence[StoredComment]
) -> tuple[AnnotatedFile, ...]:
    """Every file of a submission, line by line."""
    pointing: dict[tuple[str, int], list[NumberedFinding]] = {}
    for one in found:
        for place in dict.fromkeys((place.path, place.line) for place in one.finding.where):
            pointing.setdefault(place, []).append(one)
    remarked: dict[tuple[str, int], list[StoredComment]] = {}
    for remark in remarks:
        if remark.path is not None and remark.line is not None:
            remarked.setdefault((remark.path, remark.line), []).append(remark)
    files = []
    for file in submission.files:
        source = submission.lines(file.path)
        lines = tuple(
            AnnotatedLine(
                number,
                shown_number(submission, file.path, number),
                text,
                tuple(pointing.get((file.path, number), ())),
                tuple(remarked.get((file.path, number), ())),
            )
            for number, text in enumerate(highlighted(source[:MOST_LINES]), start=1)
        )
        files.append(AnnotatedFile(file.path, lines, max(0, len(source) - MOST_LINES)))
    return tuple(files)
