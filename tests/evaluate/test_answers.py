"""Points for what a task says about files: whole, in part, none, or out of the total."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.evaluate.score import score
from grader.model.evaluation import Answer, Evaluation
from grader.model.grade import RubricResult, State, Verdict
from grader.model.run import Ending, RunRecord
from grader.model.task import RubricItem, Task
from tests.evaluate.test_score import evidence, rank
from tests.evaluate.tiny import CPU, make_task

ITEM = RubricItem("table", "The table is right", 40, True, (), None, (), "table")
TASK = replace(make_task(Path("nowhere"), (ITEM,)), targets=())


def judged(
    evaluation: Evaluation, task: Task = TASK, ending: Ending = Ending.COMPLETED, nproc: int = 1
) -> tuple[Verdict, RubricResult, tuple[str, ...]]:
    task = replace(task, profiles=(replace(CPU, nproc_per_node=nproc),))
    record = RunRecord("process", "fork", False, 1, ending, f"It {ending}.", 2.0, 60.0, (rank(0, 1.0),), ())
    outcome = score(evidence(record=record, evaluation=evaluation), task, (), ())
    return outcome.verdict, outcome.rubric[0], outcome.notes


def answered(share: float | None) -> Evaluation:
    return Evaluation(None, answers={"table": Answer(share, "3 of 4 rows are right.", "table.csv")})


@pytest.mark.parametrize(
    ("share", "earned", "state", "verdict"),
    [
        (1.0, 40, State.VERIFIED, Verdict.ACCEPTED),
        (0.75, 30, State.CONTRADICTED, Verdict.REJECTED),
        (0.0, 0, State.CONTRADICTED, Verdict.REJECTED),
    ],
)
def test_an_answer_earns_its_share_and_gates(
    share: float, earned: float, state: State, verdict: Verdict
) -> None:
    found, item, _ = judged(answered(share))
    assert (found, item.earned, item.points, item.state) == (verdict, earned, 40, state)
    assert "3 of 4 rows are right." in item.reason


def test_what_cannot_be_told_here_leaves_the_total() -> None:
    verdict, item, _ = judged(answered(None))
    assert (verdict, item.earned, item.points) == (Verdict.ACCEPTED, 0, 0)
    assert item.state is State.NOT_OBSERVABLE


def test_a_missing_file_loses_its_points_and_says_why() -> None:
    verdict, item, _ = judged(Evaluation(None, unread={"table.csv": "The run left no table.csv."}))
    assert (verdict, item.earned, item.points, item.codes) == (Verdict.REJECTED, 0, 40, ("EVAL009",))
    assert item.reason == "The run left no table.csv."


def test_a_run_that_ended_early_earns_nothing_for_it() -> None:
    verdict, item, _ = judged(Evaluation(None), ending=Ending.CRASHED)
    assert (verdict, item.earned, item.points) == (Verdict.CRASHED, 0, 40)


def test_one_rank_is_remarked_on_only_where_several_are_meant() -> None:
    assert not any("one rank" in note for note in judged(answered(1.0), nproc=1)[2])
    assert any("Run on one rank" in note for note in judged(answered(1.0), nproc=2)[2])
