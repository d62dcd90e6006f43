"""Accepted is accepted on one, two and four ranks: a sound script does not depend on how many there are."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.submission_selection import load_selected
from grader.catalog.tasks.task_folders import load_task
from grader.model.finding import Severity
from grader.model.grade import ItemState
from grader.model.run_options import Options
from grader.model.verify_case import VerifyCase
from grader.pipeline import Pipeline
from grader.promises.verification import Verification, verify
from grader.report.exports import junit, markdown

pytestmark = pytest.mark.slow


def verified(task: str, only: str, nproc_per_node: int) -> tuple[VerifyCase, ...]:
    # How fast other numbers of ranks are is nobody's promise: no reference is timed for each of them.
    how = Verification(Options(nproc_per_node=nproc_per_node, dataset="digits", timed=False))
    return verify(load_selected((task,), only=only), how, lambda sign: None, lambda case: None)


@pytest.mark.parametrize("nproc_per_node", [1, 2, 4])
def test_every_accepted_toy_keeps_its_promise(nproc_per_node: int) -> None:
    cases = verified("ddp-toy", "accepted/", nproc_per_node)
    assert len(cases) >= 5
    assert [(case.submission, case.message) for case in cases if not case.ok] == []
    assert {(case.verdict, case.skipped) for case in cases} == {("accepted", "")}


@pytest.mark.parametrize(("style", "nproc_per_node"), [("padded_validation", 1), ("strided_sampler", 4)])
def test_styles_with_data(style: str, nproc_per_node: int) -> None:
    (case,) = verified("ddp-fashion", f"accepted/{style}", nproc_per_node)
    assert case.message == ""
    assert (case.verdict, case.skipped) == ("accepted", "")
    # One rank pads nothing: what only several show may be missing there.
    assert case.codes == (case.expected_codes if nproc_per_node > 1 else ())


def test_one_rank_leaves_out_what_only_several_show(tmp_path: Path) -> None:
    task = load_task("ddp-toy")
    reference = read_submission(task.folder / "submissions" / task.reference)
    with Pipeline() as pipeline:
        options = Options(nproc_per_node=1)
        grade = pipeline.grade(task, reference, options=options, out=tmp_path / "attempt")[0].grade
    assert (grade.verdict, grade.points) == ("accepted", 100)
    assert not [f for f in grade.findings if f.severity is Severity.ERROR]
    unseen = {item.id for item in grade.rubric if item.state is ItemState.NOT_SHOWN}
    assert {"gradients", "one-writer"} <= unseen
    assert any("one rank" in note for note in grade.notes)


def test_flaws_of_several_ranks_are_skipped_on_one_and_found_on_four() -> None:
    (alone,) = verified("ddp-toy", "rejected/bypasses_wrapper", 1)
    assert (alone.ok, alone.verdict, alone.codes) == (True, "", ())
    assert "One rank" in alone.skipped
    suite = ElementTree.fromstring(junit.of_verification([alone]))
    assert (suite.attrib["skipped"], suite.attrib["failures"]) == ("1", "0")
    assert "1 more skipped" in markdown.of_verification([alone])
    (together,) = verified("ddp-toy", "rejected/bypasses_wrapper", 4)
    assert (together.ok, together.verdict, together.codes) == (True, "rejected", ("GRAD002",))
