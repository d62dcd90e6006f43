"""Points for what a task says about files: whole, in part, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.evaluate.points.rubric import charges
from grader.evaluate.points.scale import ScaledItem
from grader.evaluate.points.score import score
from grader.model.evaluation import Answer, Evaluation
from grader.model.finding import EvidenceKind, Finding, Severity
from grader.model.grade import ItemState, RubricResult, Verdict
from grader.model.precondition import Precondition
from grader.model.run import Ending, RunRecord
from grader.model.task import RubricItem, Task
from grader.model.trace import Trace
from tests.evaluate.test_score import evidence, rank
from tests.evaluate.tiny import CPU, make_task

ITEM = RubricItem("table", "The table is right", 100, True, (), None, (), "table")
TASK = replace(make_task(Path("nowhere"), (ITEM,)), targets=())


def judged(
    evaluation: Evaluation, task: Task = TASK, ending: Ending = Ending.COMPLETED, nproc: int = 1
) -> tuple[Verdict, RubricResult, tuple[str, ...]]:
    task = replace(task, profiles=(replace(CPU, nproc_per_node=nproc),))
    record = RunRecord("process", "fork", False, 1, ending, f"It {ending}.", 2.0, 60.0, (rank(0, 1.0),), ())
    outcome = score(evidence(record=record, evaluation=evaluation, trace=Trace(())), task, (), ())
    return outcome.verdict, outcome.rubric[0], outcome.notes


def answered(share: float | None) -> Evaluation:
    return Evaluation(None, answers={"table": Answer(share, "3 of 4 rows are right.", "table.csv")})


@pytest.mark.parametrize(
    ("share", "earned", "state", "verdict"),
    [
        (1.0, 100, ItemState.EARNED, Verdict.ACCEPTED),
        (0.75, 75, ItemState.PARTLY, Verdict.REJECTED),
        (0.0, 0, ItemState.LOST, Verdict.REJECTED),
    ],
)
def test_an_answer_earns_its_share_and_gates(
    share: float, earned: float, state: ItemState, verdict: Verdict
) -> None:
    found, item, _ = judged(answered(share))
    assert (found, item.earned, item.points, item.state) == (verdict, earned, 100, state)
    assert "3 of 4 rows are right." in item.reason


def test_a_result_that_only_the_text_shows_to_be_invented_earns_nothing() -> None:
    found = Finding(
        code="EVAL010",
        severity=Severity.WARNING,
        evidence=EvidenceKind.EVALUATION,
        message="Its rows are worked out of this run's times.",
        details={"answers": {"table": 0.0}},
    )
    record = RunRecord(
        "process", "fork", False, 1, Ending.COMPLETED, "It ended.", 2.0, 60.0, (rank(0, 1.0),), ()
    )
    run = evidence(record=record, evaluation=answered(1.0), trace=Trace(()))
    task = replace(TASK, profiles=(replace(CPU, nproc_per_node=1),))
    item = score(run, task, (found,), ()).rubric[0]
    assert (item.earned, item.state, item.codes) == (0, ItemState.LOST, ("EVAL010",))
    assert item.reason.startswith(found.message)


def test_what_the_task_cannot_tell_is_a_persons_to_decide() -> None:
    verdict, item, _ = judged(answered(None))
    assert (verdict, item.earned, item.points, item.not_seen) == (Verdict.HELD, 0, 100, 100)
    assert item.state is ItemState.NOT_SEEN


def test_what_needs_a_gpu_is_left_out_without_one() -> None:
    items = (replace(ITEM, points=60), replace(ITEM, id="peak", points=40, needs=Precondition.GPUS))
    both = Evaluation(None, answers={"table": Answer(1.0, "All rows are right.")})
    verdict, item, _ = judged(both, task=replace(TASK, rubric=items))
    assert (verdict, item.earned, item.points, item.full_points) == (Verdict.ACCEPTED, 100, 100, 60)


def test_made_up_files_are_no_training() -> None:
    """The task says that nothing was computed: what else is right in the files earns next to nothing."""
    told = {"table": Answer(0.75, "3 of 4 rows are right."), "trained": Answer(0.0, "Nothing was computed.")}
    verdict, item, _ = judged(Evaluation(None, answers=told))
    assert (verdict, item.earned, item.state) == (Verdict.REJECTED, 10, ItemState.PARTLY)
    assert item.reason.startswith("Nothing was trained: ")


def test_a_missing_file_loses_its_points_and_says_why() -> None:
    verdict, item, _ = judged(Evaluation(None, unread={"table.csv": "The run left no table.csv."}))
    assert (verdict, item.earned, item.points, item.codes) == (Verdict.REJECTED, 0, 100, ("EVAL009",))
    assert item.reason == "The run left no table.csv."


def test_a_wrong_answer_costs_its_own_points_and_those_of_no_other_item_about_the_same_family() -> None:
    """What is found wrong in the file is an EVAL finding, and so is what another item asks for."""
    other = RubricItem("metrics", "Metrics are reduced", 40, False, ("EVAL001",), None)
    items = [ScaledItem(replace(ITEM, points=60), 60), ScaledItem(other, 40)]
    wrong = Finding("EVAL010", Severity.WARNING, EvidenceKind.EVALUATION, "Row 2 is wrong.", "")
    assert charges(items, [wrong]) == {}
    assert charges(items[1:], [wrong]) == {"metrics": ("EVAL010",)}


@pytest.mark.parametrize("task", ["assessment", "ddp-fashion", "fsdp", "multi-node", "tiny-lm"])
@pytest.mark.parametrize("code", ["IO008", "IO010"])
def test_weights_that_are_not_those_meant_cost_where_a_title_says_so(task: str, code: str) -> None:
    items = [ScaledItem(item, item.points) for item in load_task(task).rubric]
    (charged,) = charges(items, [Finding(code, Severity.WARNING, EvidenceKind.SOURCE, "Not a copy.", "")])
    title = next(one.item.title for one in items if one.item.id == charged)
    assert "the weights that are meant, whole before they are read" in title


def test_a_run_that_ended_early_earns_nothing_for_it() -> None:
    verdict, item, _ = judged(Evaluation(None), ending=Ending.CRASHED)
    assert (verdict, item.earned, item.points) == (Verdict.CRASHED, 0, 100)
    assert item.state is ItemState.NOT_REACHED


def test_one_rank_is_remarked_on_only_where_several_are_meant() -> None:
    assert not any("one rank" in note for note in judged(answered(1.0), nproc=1)[2])
    assert any("Run on one rank" in note for note in judged(answered(1.0), nproc=2)[2])
