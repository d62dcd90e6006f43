"""A submission beside what was found in it: every line with the findings and remarks that point at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from grader.model.finding import Finding
from grader.model.submission import Submission
from grader.report.highlight import highlighted
from grader.report.wording import SEVERITY_TONES, mend_order
from grader.store.reviews import Remark

MOST_LINES = 3000


@dataclass(frozen=True, slots=True)
class Numbered:
    """A finding with its number on the page; `staff`: learners are not shown it."""

    number: int
    finding: Finding
    tone: str
    title: str
    staff: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its text with colours, the findings and the remarks that point at it."""

    number: int
    text: Markup
    findings: tuple[Numbered, ...]
    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class File:
    """One file; `num_left_out` lines at its end are not shown."""

    path: str
    lines: tuple[Line, ...]
    num_left_out: int


def numbered(
    findings: Sequence[Finding], shown_to_learners: Sequence[Finding], titles: Mapping[str, str]
) -> tuple[Numbered, ...]:
    """Findings in the order of what to mend first, those that only staff see at the end."""
    open_ = set(map(id, shown_to_learners))
    ordered = sorted(findings, key=lambda one: (id(one) not in open_, mend_order(one)))
    return tuple(
        Numbered(
            number, one, SEVERITY_TONES[one.severity], titles.get(one.code, ""), staff=id(one) not in open_
        )
        for number, one in enumerate(ordered, start=1)
    )


def beside(submission: Submission, found: Sequence[Numbered], remarks: Sequence[Remark]) -> tuple[File, ...]:
    """Every file of a submission, line by line."""
    pointing: dict[tuple[str, int], list[Numbered]] = {}
    for one in found:
        for place in dict.fromkeys((place.path, place.line) for place in one.finding.where):
            pointing.setdefault(place, []).append(one)
    said: dict[tuple[str, int], list[Remark]] = {}
    for remark in remarks:
        if remark.path is not None and remark.line is not None:
            said.setdefault((remark.path, remark.line), []).append(remark)
    files = []
    for file in submission.files:
        source = submission.lines(file.path)
        lines = tuple(
            Line(
                number,
                text,
                tuple(pointing.get((file.path, number), ())),
                tuple(said.get((file.path, number), ())),
            )
            for number, text in enumerate(highlighted(source[:MOST_LINES]), start=1)
        )
        files.append(File(file.path, lines, max(0, len(source) - MOST_LINES)))
    return tuple(files)
