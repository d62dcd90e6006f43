"""What `grader verify` found, as JUnit XML for CI: one suite per task, one case per submission."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from xml.etree import ElementTree

from grader.model.verify_case import VerifyCase
from grader.report.safe_text import visible


def to_junit(cases: Iterable[VerifyCase]) -> str:
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
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(cases: list[VerifyCase], name: str) -> dict[str, str]:
    return {
        "name": visible(name),
        "tests": str(len(cases)),
        "failures": str(sum(not case.ok for case in cases)),
        "errors": "0",
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _case(case: VerifyCase) -> ElementTree.Element:
    element = ElementTree.Element(
        "testcase",
        {"classname": visible(case.task), "name": visible(case.submission), "time": f"{case.seconds:.3f}"},
    )
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
