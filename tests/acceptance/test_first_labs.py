"""The labs before DDP: what their skeletons lack is said in plain words, and gradients add up at every world size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.judging.attempt import Attempt
from grader.model.grade import ItemState, Verdict
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.pipeline import Pipeline
from grader.report.html.attempt_page import to_html
from tests import promised
from tests.acceptance.conftest import CHECKOUT

Grade = Callable[..., Attempt]


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline() as warm:
        yield warm


@pytest.fixture
def grade(pipeline: Pipeline, tmp_path: Path) -> Grade:
    def judged(task: str, submission: Submission, nproc_per_node: int | None = None) -> Attempt:
        options = Options(dataset="digits", nproc_per_node=nproc_per_node)
        out = tmp_path / f"ranks-{nproc_per_node}"
        return pipeline.grade(load_task(task), submission, options=options, out=out)[0]

    return judged


@pytest.mark.parametrize(
    ("task", "codes", "told"),
    [
        ("gradient-descent", {"EVAL010"}, "table.csv has no row for batch size 1."),
        ("single-gpu", {"DEV006", "EVAL009"}, "The run left no memory.csv in $OUTPUT_DIR."),
        ("gradient-averaging", {"DIST001", "EVAL010", "IO001"}, "Rank 0 of 2 has no row in shares.csv."),
    ],
)
def test_the_unchanged_skeleton_runs_and_is_told_what_is_missing(
    grade: Grade, task: str, codes: set[str], told: str
) -> None:
    attempt = grade(task, read_submission(CHECKOUT / "skeletons" / task))
    assert attempt.grade.verdict is Verdict.REJECTED
    assert {f.code for f in attempt.grade.findings} == codes
    assert told in {f.message for f in attempt.grade.findings}
    assert told in to_html(attempt)
    assert attempt.grade.points <= 45


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
def test_gradients_add_up_however_many_ranks_are_started(grade: Grade, num_ranks: int) -> None:
    submission = promised.submission("gradient-averaging", "accepted/groups_of_each_size")
    right = grade("gradient-averaging", submission, num_ranks)
    assert right.grade.verdict is Verdict.ACCEPTED
    item = next(i for i in right.grade.rubric if i.id == "gradient")
    assert (item.state, item.earned) == (ItemState.EARNED, item.points)
    assert ("world size 1 " if num_ranks == 1 else "world sizes 1") in item.reason


def test_the_plain_mean_of_unequal_shares_is_named_for_what_it_is(grade: Grade) -> None:
    submission = promised.submission("gradient-averaging", "rejected/unweighted_average")
    attempt = grade("gradient-averaging", submission, 2)
    assert attempt.grade.verdict is Verdict.REJECTED
    (finding,) = attempt.grade.findings
    assert "it is the plain mean of the ranks' gradients" in finding.message
    assert "parameter.grad / world_size" in submission.line("train.py", finding.where[0].line)
    assert "torch.save" in submission.line("train.py", finding.where[-1].line)
    item = next(i for i in attempt.grade.rubric if i.id == "gradient")
    assert item.earned == item.full_points / 2, "world size 1 is right"


def test_one_rank_is_no_lack_where_one_is_meant(grade: Grade) -> None:
    attempt = grade("gradient-descent", promised.submission("gradient-descent", "accepted/by_hand"))
    assert (attempt.grade.verdict, attempt.grade.points) == (Verdict.ACCEPTED, 100)
    assert not any("one rank" in note for note in attempt.grade.notes)
