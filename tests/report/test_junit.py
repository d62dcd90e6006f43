"""JUnit XML of `grader verify` and of one attempt, as a CI server reads it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from grader.model.grade import Verdict
from grader.model.verify_case import VerifyCase
from grader.report.audience import Audience
from grader.report.exports import junit
from tests.report import factory
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
    root = ElementTree.fromstring(junit.of_verification([other, _BROKEN, _KEPT]))
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
    root = ElementTree.fromstring(junit.of_verification([_KEPT, _BROKEN]))
    (failure,) = root.iter("failure")
    assert failure.get("message") == _BROKEN.message
    assert failure.text is not None
    assert "rejected with DATA001, IO002" in failure.text
    assert "accepted with IO002" in failure.text


def test_no_cases_and_hostile_names_are_still_xml() -> None:
    assert ElementTree.fromstring(junit.of_verification([])).get("tests") == "0"
    hostile = VerifyCase(HOSTILE, HOSTILE, "accepted", HOSTILE, (HOSTILE,), (), 0.0, HOSTILE, ok=False)
    (case,) = ElementTree.fromstring(junit.of_verification([hostile])).iter("testcase")
    assert "␛[2J" in str(case.get("name"))


def test_a_cached_case_says_so() -> None:
    (case,) = ElementTree.fromstring(junit.of_verification([replace(_KEPT, cached=True, seconds=0.0)])).iter(
        "testcase"
    )
    assert "not run again" in str(case.findtext("system-out"))
    assert case.get("time") == "0.000"


def test_an_attempt_is_its_verdict_and_its_rubric() -> None:
    root = ElementTree.fromstring(junit.of_grade(factory.rejected().grade, Audience.LEARNER))
    (suite,) = root
    cases = {str(case.get("name")): case for case in suite}
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors")) == (
        "8", "4", "1", "0",
    )  # fmt: skip
    verdict = cases["verdict"].find("failure")
    assert verdict is not None
    assert verdict.get("type") == "rejected"
    assert "DATA001" in str(verdict.text)
    lost = cases["partition: Every sample goes to exactly one rank"].find("failure")
    assert lost is not None
    assert "0 of 25 points: DATA001 was found." in str(lost.get("message"))
    assert cases["devices: Each rank uses its own device"].find("skipped") is not None
    assert len(cases["gradients: Gradients are averaged over the ranks"]) == 0


def test_only_the_judges_own_fault_is_an_error_and_a_held_attempt_neither_passes_nor_fails() -> None:
    for verdict, kind in {
        Verdict.ACCEPTED: None, Verdict.CRASHED: "failure", Verdict.HELD: "skipped", Verdict.JUDGE_ERROR: "error",
    }.items():  # fmt: skip
        root = ElementTree.fromstring(junit.of_grade(factory.grade(verdict, rubric=()), Audience.LEARNER))
        (case,) = root.iter("testcase")
        assert [child.tag for child in case] == ([kind] if kind else [])


def test_learners_do_not_read_staff_findings_and_staff_do() -> None:
    held = factory.grade(
        Verdict.HELD, verdict_reason="Forged.", findings=(factory.TRUST002,), review=("TRUST002: Forged.",)
    )
    assert "TRUST" not in junit.of_grade(held, Audience.LEARNER)
    assert "orged" not in junit.of_grade(held, Audience.LEARNER)
    assert "TRUST002" in junit.of_grade(held, Audience.STAFF)


def test_a_hostile_attempt_is_still_xml() -> None:
    assert ElementTree.fromstring(junit.of_grade(factory.hostile().grade, Audience.STAFF)).tag == "testsuites"
