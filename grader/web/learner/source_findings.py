"""What a script's text gives away, ready to be shown: what a task asks for beyond it, findings as cards, the source.

Runs nothing of the script, and reads it within limits; the same files are read once for each version of a task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from grader.catalog.tasks.kept_tasks import tasks_folder
from grader.checks.limited_reading import WAITED_FOR, lint_within, read_within
from grader.checks.lint import lint
from grader.checks.rubric_step import RubricStep
from grader.model.finding import Finding
from grader.model.notebook_lines import shown_number
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.report.findings import cards
from grader.report.findings.readiness import ReadinessView, readiness_view
from grader.report.findings.reading import Reading, read_for, read_within_limits
from grader.report.html.explanation_pages import rule_titles
from grader.report.html.highlight import highlighted
from grader.report.words import wording
from grader.settings import in_course
from grader.store.attempts.attempts import StoredAttempt
from grader.web.lookups.catalog import cached_task, task_here
from grader.web.service import WebService

_MOST_LINES = 3000


@dataclass(frozen=True, slots=True)
class MarginNote:
    """A finding at its line: its code, how grave it is, and the address of its card."""

    code: str
    tone: str
    url: str


@dataclass(frozen=True, slots=True)
class SourceListing:
    """One file with findings beside its lines: (number, number shown, highlighted text, notes)."""

    path: str
    lines: tuple[tuple[int, int, Markup, tuple[MarginNote, ...]], ...]
    num_left_out: int


@dataclass(frozen=True, slots=True)
class SourceFindings:
    """All of it.

    Attributes:
        findings: of the text; steps: what of a task is in it, empty where no task is known, or nothing parses.
        groups: findings as cards; files: the source with findings in its margin.
    """

    findings: tuple[Finding, ...]
    steps: tuple[RubricStep, ...]
    groups: tuple[cards.CardGroup, ...]
    files: tuple[SourceListing, ...]

    # In the language of who looks at it now: the rest is read once for all.
    @property
    def summary(self) -> str:
        """Such as `1 error and 2 hints`."""
        return wording.findings_text(self.findings)

    @property
    def readiness(self) -> ReadinessView | None:
        """The steps as they are shown; None where there are none."""
        return readiness_view(self.steps, self.findings) if self.steps else None


def source_findings(submission: Submission, task: Task | None = None, profile: str = "") -> SourceFindings:
    """What the text gives away, and what of a task is in it; `profile`: where it is judged."""
    return _read(submission, "", "") if task is None else _read(submission, task.name, task.version, profile)


def findings_of_attempt(
    service: WebService, submission: Submission, facts: StoredAttempt
) -> tuple[Finding, ...]:
    """What an attempt's text gives away, as grave as what it comes to in its task."""
    task = cached_task(service, facts.task, facts.task_version)
    if task is None:
        return findings_of(submission)
    return _read_for(submission, task.name, task.version, facts.profile).findings


@lru_cache(maxsize=64)
def findings_of(submission: Submission) -> tuple[Finding, ...]:
    """What a text gives away, whatever task it is for."""
    return lint_within(WAITED_FOR, submission)


@lru_cache(maxsize=64)
def _read(submission: Submission, task_name: str, version: str, profile: str = "") -> SourceFindings:
    # By its name, as a task is nothing that a cache could know again.
    task = task_here(task_name, version) if task_name else None
    return read_within(
        WAITED_FOR,
        submission,
        _look,
        submission,
        task,
        profile,
        otherwise=lambda problem: _shown(submission, (problem.finding(),), ()),
    )


@lru_cache(maxsize=64)
def _read_for(submission: Submission, task_name: str, version: str, profile: str) -> Reading:
    task = task_here(task_name, version)
    assert task is not None
    return read_within_limits(WAITED_FOR, task, submission, profile)


def _look(submission: Submission, task: Task | None, profile: str) -> SourceFindings:
    if task is None:
        return _shown(submission, lint(submission), ())
    with in_course(tasks_folder(task)):
        reading = read_for(task, submission, profile)
        return _shown(submission, reading.findings, reading.steps)


def warm_reader() -> None:
    """Import and load what a reader needs for a script."""
    _look(Submission("warm", (SourceFile("train.py", "import torch\n"),)), None, "")


def _shown(
    submission: Submission, findings: tuple[Finding, ...], steps: tuple[RubricStep, ...]
) -> SourceFindings:
    groups = cards.group_cards(findings, submission, titles=rule_titles())
    notes: dict[tuple[str, int], list[MarginNote]] = {}
    for group in groups:
        for card in group.cards:
            tone = wording.SEVERITY_TONES[card.finding.severity]
            for place in dict.fromkeys((one.path, one.line) for one in card.finding.where):
                note = MarginNote(card.finding.code, tone, f"#finding-{card.number}")
                notes.setdefault(place, []).append(note)
    files = tuple(_listing(submission, file.path, notes) for file in submission.files)
    return SourceFindings(findings, steps, groups, files)


def _listing(
    submission: Submission, path: str, notes: dict[tuple[str, int], list[MarginNote]]
) -> SourceListing:
    source = submission.lines(path)
    lines = tuple(
        (number, shown_number(submission, path, number), text, tuple(notes.get((path, number), ())))
        for number, text in enumerate(highlighted(source[:_MOST_LINES]), start=1)
    )
    return SourceListing(path, lines, max(0, len(source) - _MOST_LINES))
