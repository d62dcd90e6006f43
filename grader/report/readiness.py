"""What a text still lacks, as reports tell it: in the order in which one refactors a script, nothing said twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from grader.checks.rubric_step import RubricStep, Sight
from grader.model.finding import Finding, Severity, family_of
from grader.report.safe_text import one_line
from grader.report.terminal_writer import STYLES, TerminalWriter, worded
from grader.report.wording import FAMILIES, plural

LABELS = {
    Sight.NOT_FOUND: "not found in the text",
    Sight.NOT_RIGHT: "not right in the text",
    Sight.SEEN: "seen in the text",
    Sight.RUN: "only a run can tell",
}
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
    if num_open:
        missing, wrong = (any(step.sight is sight for step in musts) for sight in _OPEN)
        what = "not in the text yet" if missing else "not right in the text yet"
        what += ", or not right there" if missing and wrong else ""
        are = "is" if num_open == 1 else "are"
        return f"{num_open} of {plural(len(musts), 'thing')} that must be right {are} {what}."
    if grave := sum(finding.severity is Severity.ERROR for finding in findings):
        return f"{plural(grave, 'finding')} above must be fixed before this can be accepted."
    seen = sum(step.sight is Sight.SEEN for step in musts)
    lesser = sum(step.sight in _OPEN for step in steps)
    costly = sum(finding.severity is Severity.WARNING for finding in findings)
    if lesser or costly:
        noun, num = ("item", lesser) if lesser else ("finding", costly)
        costs = f"{plural(num, noun)} above {'costs' if num == 1 else 'cost'} points as the text stands"
        return f"Nothing that must be right is missing as far as a text can show, but {costs}."
    return (
        f"Nothing is missing that a text can show: {seen} of {plural(len(musts), 'thing')} that must be right "
        f"{'is' if seen == 1 else 'are'} there, the rest only a run can tell."
    )
