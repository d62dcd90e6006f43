"""What a text still lacks, as reports tell it: in the order in which one refactors a script, nothing said twice.

Labels and summary are in the present language; titles are the task's, and what a step says is in English.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from grader.checks.rubric_step import RubricStep, Sight
from grader.model.finding import Finding, Severity, family_of
from grader.report.safe_text import one_line
from grader.report.terminal.terminal_writer import STYLES, TerminalWriter, worded
from grader.report.words.wording import FAMILIES
from grader.translation import N_, TranslatedTexts, counted, ngettext

LABELS = TranslatedTexts(
    {
        Sight.NOT_FOUND: N_("not found in the text"),
        Sight.NOT_RIGHT: N_("not right in the text"),
        Sight.SEEN: N_("seen in the text"),
        Sight.RUN: N_("only a run can tell"),
    }
)
TONES = {Sight.NOT_FOUND: "bad", Sight.NOT_RIGHT: "bad", Sight.SEEN: "good", Sight.RUN: "quiet"}
_OPEN = (Sight.NOT_FOUND, Sight.NOT_RIGHT)


@dataclass(frozen=True, slots=True)
class StepView:
    """A step as it is shown: `number` in the order of doing, from 1; `says` is Markdown, "" where there is no more."""

    number: int
    title: str
    label: str
    tone: str
    says: str


@dataclass(frozen=True, slots=True)
class ReadinessView:
    """All steps: those that must be right, the others, and what they come to in a sentence.

    `num_open`: of those that must be right, how many are not in the text, or not right there.
    """

    musts: tuple[StepView, ...]
    others: tuple[StepView, ...]
    num_open: int
    summary: str


def readiness_view(steps: Sequence[RubricStep], findings: Sequence[Finding] = ()) -> ReadinessView:
    """Steps ready to be shown; `findings` are those shown with them, each as grave as what it comes to."""
    ordered = sorted(steps, key=lambda step: (not step.item.must, *_order(step)))
    shown: list[tuple[bool, StepView]] = []
    first_at: dict[tuple[str, str], int] = {}
    for number, step in enumerate(ordered, start=1):
        new = [one for one in step.says if one not in first_at or step.sight not in _OPEN]
        first_at |= dict.fromkeys(new, number)
        says = (" " if step.sight in _OPEN else "; ").join(text for _, text in new)
        if step.sight is Sight.NOT_RIGHT:
            says = (
                f"See {' and '.join(dict.fromkeys(f'`{code}`' for code, _ in step.says))} among the findings."
            )
        elif step.says and not new:
            says = f"The same as in step {first_at[step.says[0]]}."
        elif says and step.sight is Sight.RUN:
            says = f"As far as the text goes: {says}"
        title = one_line(step.item.title)
        shown.append((step.item.must, StepView(number, title, LABELS[step.sight], TONES[step.sight], says)))
    num_open = sum(step.lacking for step in steps)
    return ReadinessView(
        tuple(one for must, one in shown if must),
        tuple(one for must, one in shown if not must),
        num_open,
        _summary(steps, num_open, findings),
    )


def steps_out(steps: Sequence[RubricStep]) -> list[dict[str, Any]]:
    """Steps for programs, in the order of doing."""
    return [
        {
            "id": step.item.id,
            "title": step.item.title,
            "must": step.item.must,
            "points": step.item.points,
            "sight": step.sight.value,
            "says": " ".join(text for _, text in step.says),
        }
        for step in sorted(steps, key=lambda step: (not step.item.must, *_order(step)))
    ]


def print_readiness(steps: Sequence[RubricStep], console: Console, findings: Sequence[Finding] = ()) -> None:
    """Prints every item and what they come to, below the findings."""
    readiness = readiness_view(steps, findings)
    writer = TerminalWriter(console)
    writer.heading("What the task asks for", "in the order in which to do it")
    for one in (*readiness.musts, *readiness.others):
        head = Text(f"{writer.symbol(one.tone)} {one.number}. ", style=STYLES[one.tone])
        head.append_text(worded(one.title))
        head.append(f"  ({one.label})", style="dim not bold")
        writer.write(head, hang=3)
        if one.says:
            writer.write(worded(one.says), 5)
    writer.gap()
    writer.write(worded(readiness.summary, "bold"))


def _order(step: RubricStep) -> tuple[int, int]:
    """What is measured or answered comes last, the rest as one refactors; an item waits for its last part."""
    if step.item.metric or step.item.answer:
        return (2 if step.item.metric else 1), 0
    families = list(FAMILIES)
    parts = (family_of(code) for code in step.item.requires)
    return 0, max((families.index(f) if f in families else len(families) for f in parts), default=0)


def _summary(steps: Sequence[RubricStep], num_open: int, findings: Sequence[Finding]) -> str:
    musts = [step for step in steps if step.item.must]
    things = counted("%(num)s thing that must be right", "%(num)s things that must be right", len(musts))
    if num_open:
        missing, wrong = (any(step.sight is sight for step in musts) for sight in _OPEN)
        if missing and wrong:
            told = ngettext(
                "{number} of {things} is not in the text yet, or not right there.",
                "{number} of {things} are not in the text yet, or not right there.",
                num_open,
            )
        elif missing:
            told = ngettext(
                "{number} of {things} is not in the text yet.",
                "{number} of {things} are not in the text yet.",
                num_open,
            )
        else:
            told = ngettext(
                "{number} of {things} is not right in the text yet.",
                "{number} of {things} are not right in the text yet.",
                num_open,
            )
        return told.format(number=num_open, things=things)
    if grave := sum(finding.severity is Severity.ERROR for finding in findings):
        return counted(
            "%(num)s finding above must be fixed before this can be accepted.",
            "%(num)s findings above must be fixed before this can be accepted.",
            grave,
        )
    if lesser := sum(step.sight in _OPEN for step in steps):
        return counted(
            "Nothing that must be right is missing as far as a text can show, "
            "but %(num)s item above costs points as the text stands.",
            "Nothing that must be right is missing as far as a text can show, "
            "but %(num)s items above cost points as the text stands.",
            lesser,
        )
    if costly := sum(finding.severity is Severity.WARNING for finding in findings):
        return counted(
            "Nothing that must be right is missing as far as a text can show, "
            "but %(num)s finding above costs points as the text stands.",
            "Nothing that must be right is missing as far as a text can show, "
            "but %(num)s findings above cost points as the text stands.",
            costly,
        )
    seen = sum(step.sight is Sight.SEEN for step in musts)
    return ngettext(
        "Nothing is missing that a text can show: {number} of {things} is there, the rest only a run can tell.",
        "Nothing is missing that a text can show: {number} of {things} are there, the rest only a run can tell.",
        seen,
    ).format(number=seen, things=things)
