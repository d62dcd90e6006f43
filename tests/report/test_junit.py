"""JUnit XML of `grader verify`, as a CI server reads it."""

from __future__ import annotations

from xml.etree import ElementTree

from grader.model.verify_case import VerifyCase
from grader.report.junit import to_junit
from tests.report.factory import HOSTILE

_KEPT = VerifyCase("ddp-fashion", "accepted/a.py", "accepted", "accepted", (), (), 4.25, "", ok=True)
_BROKEN = VerifyCase(
    "ddp-fashion",
    "rejected/b.py",
    "rejected",
    "accepted",
    ("DATA001", "IO002"),
    ("IO002",),
    3.5,
    "promised rejected, given accepted; DATA001 was not found",
    ok=False,
)


def test_one_suite_per_task_with_counts_and_seconds() -> None:
    other = VerifyCase("ddp-toy", "accepted/c.py", "accepted", "accepted", (), (), 1.0, "", ok=True)
    root = ElementTree.fromstring(to_junit([other, _BROKEN, _KEPT]))
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("time")) == (
        "testsuites",
        "3",
        "1",
        "8.750",
    )
    assert [(s.get("name"), s.get("tests"), s.get("failures")) for s in root] == [
        ("ddp-fashion", "2", "1"),
        ("ddp-toy", "1", "0"),
    ]
    assert [case.get("name") for case in root[0]] == ["accepted/a.py", "rejected/b.py"]


def test_a_broken_promise_says_what_was_promised_and_what_was_given() -> None:
    root = ElementTree.fromstring(to_junit([_KEPT, _BROKEN]))
    (failure,) = root.iter("failure")
    assert failure.get("message") == _BROKEN.message
    assert failure.text is not None
    assert "rejected with DATA001, IO002" in failure.text
    assert "accepted with IO002" in failure.text


def test_no_cases_and_hostile_names_are_still_xml() -> None:
    assert ElementTree.fromstring(to_junit([])).get("tests") == "0"
    hostile = VerifyCase(HOSTILE, HOSTILE, "accepted", HOSTILE, (HOSTILE,), (), 0.0, HOSTILE, ok=False)
    (case,) = ElementTree.fromstring(to_junit([hostile])).iter("testcase")
    assert "␛[2J" in str(case.get("name"))
