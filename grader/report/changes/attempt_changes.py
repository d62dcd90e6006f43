"""Two attempts at one task compared: which findings went and came, what both come to, what changed in the text.

Takes grades as their reader may see them, and shows nothing that is not in them; its own words are in the present
language, while what grades say is in English.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.model.attempt_result import AttemptResult
from grader.model.finding import Finding, Location, Severity
from grader.model.grade import Grade, State, Verdict
from grader.model.submission import Submission
from grader.report.changes.source_changes import FileChange, Place, SourceChanges
from grader.report.safe_text import one_line
from grader.report.words.banner import sentence
from grader.report.words.wording import points_text
from grader.translation import N_, gettext

_UNSEEN = (State.NOT_OBSERVABLE, State.NOT_REACHED)
_TASK_CHANGED = N_("The task itself was changed between the two; that alone may make a difference.")
_SAME_TEXT = N_("The same text was handed in.")


@dataclass(frozen=True, slots=True)
class JudgedSubmission:
    """A submission with its grade as the reader may see it, and what that counts as."""

    submission: Submission
    grade: Grade
    result: AttemptResult


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that only one of two attempts has.

    Attributes:
        title: the rule's name for people, or what was seen where that is not known.
        place: in the text that has it; None where no line is to blame.
        doubt: why it may be there in the other attempt as well, "" where nothing speaks for that.
    """

    code: str
    title: str
    severity: Severity
    place: Location | None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class AttemptChanges:
    """What became of an attempt in the next one.

    Attributes:
        before, now: what both count as.
        went, came: findings that only the earlier, only the later attempt has; the gravest first.
        num_stayed: findings that both have.
        files: what changed in the text.
        notes: what else to know before comparing, sentences.
    """

    before: AttemptResult
    now: AttemptResult
    went: tuple[FindingChange, ...]
    came: tuple[FindingChange, ...]
    num_stayed: int
    files: tuple[FileChange, ...]
    notes: tuple[str, ...]

    @property
    def anything(self) -> bool:
        """Whether findings, outcome or text are not what they were."""
        return bool(self.went or self.came or self.files or sentence(self.before) != sentence(self.now))

    @property
    def summary(self) -> str:
        """Points then and now, and what became of the findings, as part of a sentence."""
        if not self.anything:
            return gettext("nothing changed")
        told = (
            (sum(not one.doubt for one in self.went), gettext("{number} mended")),
            (sum(bool(one.doubt) for one in self.went), gettext("{number} not to be seen this time")),
            (sum(not one.doubt for one in self.came), gettext("{number} new")),
            (sum(bool(one.doubt) for one in self.came), gettext("{number} to be seen only now")),
        )
        found = ", ".join(text.format(number=number) for number, text in told if number)
        findings = found or gettext("the same findings")
        then, now = _counts(self.before), _counts(self.now)
        if then == now or self.before.verdict is self.now.verdict is Verdict.HELD:
            return findings
        points = (
            gettext("{before} points → {now}")
            if self.now.verdict is Verdict.HELD
            else gettext("{before} → {now} points")
        )
        return f"{points.format(before=then, now=now)}; {findings}"


def _counts(result: AttemptResult) -> str:
    """Points that count; a held attempt has none until it is decided, and is told as held and not as 0."""
    if result.verdict is Verdict.HELD:
        points = points_text(result.judged_points)
        return gettext("held (judged {points}, not counted)").format(points=points)
    return points_text(result.points)


def attempt_changes(
    before: JudgedSubmission, now: JudgedSubmission, titles: Mapping[str, str]
) -> AttemptChanges:
    """Compare two attempts of one learner at one task; `titles`: of the rules, by code."""
    source = SourceChanges.between(before.submission, now.submission)
    old, new = _known(before.grade), _known(now.grade)
    went, came = _unmatched(old, new, source)
    files = source.files()
    notes = [] if files else [gettext(_SAME_TEXT)]
    if before.grade.task_version != now.grade.task_version:
        notes.append(gettext(_TASK_CHANGED))
    return AttemptChanges(
        before.result,
        now.result,
        tuple(
            _change(
                one,
                titles,
                _doubt(
                    one.code,
                    now.grade,
                    gettext("follows from {code} now"),
                    gettext("could not be seen this time"),
                ),
            )
            for one in went
        ),
        tuple(
            _change(
                one,
                titles,
                _doubt(
                    one.code,
                    before.grade,
                    gettext("followed from {code} then"),
                    gettext("could not be seen then"),
                ),
            )
            for one in came
        ),
        len(new) - len(came),
        files,
        tuple(notes),
    )


def _known(grade: Grade) -> tuple[Finding, ...]:
    """What a run has refuted is no finding of that attempt."""
    return tuple(one for one in grade.findings if not one.refuted)


def _unmatched(
    old: Iterable[Finding], new: Iterable[Finding], source: SourceChanges
) -> tuple[list[Finding], list[Finding]]:
    by_code: dict[str, tuple[list[Finding], list[Finding]]] = defaultdict(lambda: ([], []))
    for one in old:
        by_code[one.code][0].append(one)
    for one in new:
        by_code[one.code][1].append(one)
    went, came = [], []
    for olds, news in by_code.values():
        if len(olds) == len(news) == 1:
            continue
        left: dict[Place | None, list[Finding]] = defaultdict(list)
        for one in olds:
            left[source.place_of_old(one.location) if one.location else None].append(one)
        for one in news:
            same = left[source.place_of_new(one.location) if one.location else None]
            if same:
                same.pop(0)
            else:
                came.append(one)
        went += [one for rest in left.values() for one in rest]
    return _gravest_first(went), _gravest_first(came)


def _gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(
        findings, key=lambda one: (one.severity.rank, one.code, one.location.line if one.location else 0)
    )


def _change(finding: Finding, titles: Mapping[str, str], doubt: str) -> FindingChange:
    title = titles.get(finding.code) or one_line(finding.message)
    return FindingChange(finding.code, title, finding.severity, finding.location, doubt)


def _doubt(code: str, other: Grade, followed: str, unseen: str) -> str:
    """Why an attempt that lacks this finding may have its fault all the same."""
    cause = next((one.code for one in other.findings if code in (one.details.get("explains") or ())), "")
    if cause:
        return followed.format(code=cause)
    state = next((check.state for check in other.checks if check.code == code), None)
    return unseen if state in _UNSEEN else ""
