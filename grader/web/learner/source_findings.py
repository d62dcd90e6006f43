"""What a script's text gives away, ready to be shown: findings as cards, and the source with them in its margin.

Runs nothing of the script; the same files are checked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from markupsafe import Markup

from grader.checks.lint import lint
from grader.model.submission import Submission
from grader.report import cards, wording
from grader.report.highlight import highlighted
from grader.report.pages import rule_pages

_MOST_LINES = 3000


@dataclass(frozen=True, slots=True)
class MarginNote:
    """A finding at its line: its code, how grave it is, and the address of its card."""

    code: str
    tone: str
    url: str


@dataclass(frozen=True, slots=True)
class SourceListing:
    """One file with findings beside its lines: (number, highlighted text, notes)."""

    path: str
    lines: tuple[tuple[int, Markup, tuple[MarginNote, ...]], ...]
    num_left_out: int


@dataclass(frozen=True, slots=True)
class SourceFindings:
    """All of it; `summary` is such as `1 error and 2 hints`."""

    summary: str
    num_findings: int
    groups: tuple[cards.CardGroup, ...]
    files: tuple[SourceListing, ...]


@lru_cache(maxsize=64)
def source_findings(submission: Submission) -> SourceFindings:
    """Findings of the source halves of all rules."""
    findings = lint(submission)
    groups = cards.group_cards(findings, submission, titles=_titles())
    notes: dict[tuple[str, int], list[MarginNote]] = {}
    for group in groups:
        for card in group.cards:
            tone = wording.SEVERITY_TONES[card.finding.severity]
            for place in dict.fromkeys((one.path, one.line) for one in card.finding.where):
                note = MarginNote(card.finding.code, tone, f"#finding-{card.number}")
                notes.setdefault(place, []).append(note)
    files = tuple(_listing(submission, file.path, notes) for file in submission.files)
    return SourceFindings(wording.findings_text(findings), len(findings), groups, files)


def _listing(
    submission: Submission, path: str, notes: dict[tuple[str, int], list[MarginNote]]
) -> SourceListing:
    source = submission.lines(path)
    lines = tuple(
        (number, text, tuple(notes.get((path, number), ())))
        for number, text in enumerate(highlighted(source[:_MOST_LINES]), start=1)
    )
    return SourceListing(path, lines, max(0, len(source) - _MOST_LINES))


@cache
def _titles() -> dict[str, str]:
    return {code: cards.title_of(code, text) for code, text in rule_pages().items()}
