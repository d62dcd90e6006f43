"""Outcomes as JUnit XML for CI: a verification's cases by task, or one attempt's rubric, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from grader.model.grade import Grade, ItemState, RubricResult, Verdict
from grader.report.safe_text import visible
from grader.report.words.wording import ITEM_STATES, VERDICTS, points_text

if TYPE_CHECKING:
    from grader.model.verify_case import VerifyCase
    from grader.report.audience import Audience

HELP = "write the outcome as JUnit XML, too"


def of_verification(cases: Sequence[VerifyCase]) -> str:
    """The cases as one XML document, sorted by task and submission, with a newline at its end.

    A broken promise is a `failure` (the outcome differs); it never is an `error`, which would mean that nothing ran.
    """
    ordered = sorted(cases, key=lambda case: (case.task, case.submission))
    root = ElementTree.Element("testsuites", _counts(ordered, name="grader verify"))
    for task, group in groupby(ordered, key=lambda case: case.task):
        members = list(group)
        suite = ElementTree.SubElement(root, "testsuite", _counts(members, name=task))
        for case in members:
            suite.append(_case(case))
    return _document(root)


def of_grade(grade: Grade, audience: Audience) -> str:
    """One attempt: a case for its verdict, then one per rubric item.

    What was lost or not reached is a `failure`, what could not be seen is `skipped`; only the judge's own fault is an
    `error`.
    """
    from grader.report.audience import for_audience

    grade = for_audience(grade, audience)
    seconds = sum(grade.phases.values())
    cases = [_verdict_case(grade, seconds), *(_item_case(grade, item) for item in grade.rubric)]
    counts = {
        "name": visible(f"{grade.task} {grade.submission}"),
        "tests": str(len(cases)),
        **{
            f"{kind}s" if kind != "skipped" else kind: str(sum(case.find(kind) is not None for case in cases))
            for kind in ("failure", "error", "skipped")
        },
        "time": f"{seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", {**counts, "name": "grader grade"})
    ElementTree.SubElement(root, "testsuite", counts).extend(cases)
    return _document(root)


def _document(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _verdict_case(grade: Grade, seconds: float) -> ElementTree.Element:
    case = _named(grade, "verdict", seconds)
    if grade.verdict is not Verdict.ACCEPTED:
        kind = {Verdict.JUDGE_ERROR: "error", Verdict.HELD: "skipped"}.get(grade.verdict, "failure")
        facts = {"message": visible(f"{VERDICTS[grade.verdict]}: {grade.verdict_reason}")}
        if kind != "skipped":
            facts["type"] = grade.verdict.value
        told = ElementTree.SubElement(case, kind, facts)
        told.text = visible("\n".join(f"{f.code}: {f.message}" for f in grade.findings))
    return case


def _item_case(grade: Grade, item: RubricResult) -> ElementTree.Element:
    case = _named(grade, f"{item.id}: {item.title}", 0.0)
    if item.state in (ItemState.NOT_SHOWN, ItemState.NOT_SEEN):
        words, _ = ITEM_STATES[item.state]
        ElementTree.SubElement(case, "skipped", {"message": visible(f"{words}: {item.reason}")})
    elif item.state is not ItemState.EARNED:
        points = f"{points_text(item.earned)} of {points_text(item.points)} points"
        told = {"message": visible(f"{points}: {item.reason}"), "type": "rubric"}
        ElementTree.SubElement(case, "failure", told)
    return case


def _named(grade: Grade, name: str, seconds: float) -> ElementTree.Element:
    where = {"classname": visible(f"{grade.task}.{grade.submission}"), "name": visible(name)}
    return ElementTree.Element("testcase", {**where, "time": f"{seconds:.3f}"})


def _counts(cases: list[VerifyCase], name: str) -> dict[str, str]:
    return {
        "name": visible(name),
        "tests": str(len(cases)),
        "failures": str(sum(not case.ok for case in cases)),
        "errors": "0",
        "skipped": str(sum(bool(case.skipped) for case in cases)),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _case(case: VerifyCase) -> ElementTree.Element:
    element = ElementTree.Element(
        "testcase",
        {"classname": visible(case.task), "name": visible(case.place), "time": f"{case.seconds:.3f}"},
    )
    if case.skipped:
        ElementTree.SubElement(element, "skipped", {"message": visible(case.skipped)})
    if case.cached:
        note = ElementTree.SubElement(element, "system-out")
        note.text = "Kept in an earlier run of `grader verify`; not run again."
    if not case.ok:
        failure = ElementTree.SubElement(
            element, "failure", {"message": visible(case.message), "type": "promise"}
        )
        failure.text = visible(
            f"promised: {_outcome(case.expected_verdict, case.expected_codes)}\n"
            f"given:    {_outcome(case.verdict, case.codes)}"
        )
    return element


def _outcome(verdict: str, codes: tuple[str, ...]) -> str:
    return f"{verdict} with {', '.join(codes) if codes else 'no findings'}"
