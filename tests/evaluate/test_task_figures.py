"""What a task gives the report to draw: computed by its own code on what is not hidden, harmless where it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grader.evaluate.evaluator import Evaluator
from grader.evaluate.scorer.task_figures import checked
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Evaluation
from grader.model.task import Task
from grader.model.task_figure import Panel, Series, Surface, TaskFigure
from grader.run.workspace import Workspace
from tests.evaluate.test_evaluator import perfect_state
from tests.evaluate.tiny import EVALUATE, NUM_TRAIN, make_task, write_split

SAID = """
from grader.model.task_figure import Series, Panel, TaskFigure


def figures(seen):
    if seen.model is None:
        return []
    largest = float(seen.model[1].weight.max())
    curve = Series("weights", (0.0, 1.0, 2.0), (largest, float("nan"), 1e300))
    return [TaskFigure("one", "One", f"{len(seen.images)} images.", (Panel("", "x", "y", (curve,)),))]
"""


@pytest.fixture(scope="module")
def data(noise_data: PreparedDataset) -> PreparedDataset:
    write_split(noise_data.visible_dir / "FashionMNIST" / "raw", NUM_TRAIN, 3, "train")
    return noise_data


def evaluated(
    text: str, evaluator: Evaluator, workspace: Workspace, data: PreparedDataset, folder: Path
) -> Evaluation:
    folder.mkdir()
    (folder / "evaluate.py").write_text(EVALUATE + text)
    task: Task = replace(make_task(folder), name="drawn")
    return evaluator.evaluate(task, workspace, data)


def test_a_task_draws_the_weights_that_a_run_left(
    evaluator: Evaluator, workspace: Workspace, data: PreparedDataset, tmp_path: Path
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    found = evaluated(SAID, evaluator, workspace, data, tmp_path / "task")
    (figure,) = found.figures
    assert figure.summary == f"{NUM_TRAIN} images.", "of the training split"
    assert figure.panels[0].series[0].ys == (1.0, None, None), (
        "what is no number, or a huge one, leaves a gap"
    )
    assert (found.hidden["accuracy"], found.undrawn) == (1.0, "")


def test_without_weights_there_is_nothing_to_draw(
    evaluator: Evaluator, workspace: Workspace, data: PreparedDataset, tmp_path: Path
) -> None:
    found = evaluated(SAID, evaluator, workspace, data, tmp_path / "task")
    assert (found.figures, found.undrawn) == ((), "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def figures(seen):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def figures(seen):\n    return {'a': 1}\n", "at most 4 `TaskFigure`s"),
        ("def figures(seen):\n    import os\n    os._exit(0)\n", "was given up"),
    ],
)
def test_a_figure_that_fails_costs_nothing_and_says_why(
    text: str, why: str, evaluator: Evaluator, workspace: Workspace, data: PreparedDataset, tmp_path: Path
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    found = evaluated(f"\n\n{text}", evaluator, workspace, data, tmp_path / "task")
    assert (found.hidden["accuracy"], found.figures) == (1.0, ())
    assert why in found.undrawn


LINE = Series("a", (0.0, 1.0), (0.0, 1.0))
GRID = Surface((0.0, 1.0), (0.0, 1.0), ((0.0, 1.0), (1.0, 2.0)), (0.5,))


@pytest.mark.parametrize(
    ("panel", "why"),
    [
        (Panel("", "x", "y", (replace(LINE, ys=(0.0,)),)), "other ys than xs"),
        (Panel("", "x", "y", (LINE,) * 17), "more than 16 series"),
        (Panel("", "x", "y", surface=replace(GRID, heights=((0.0,), (1.0,)))), "a row of 2 heights"),
        (Panel("", "x", "y", surface=replace(GRID, levels=())), "1 to 16 levels"),
        (Panel("long " * 400, "x", "y"), "words of bounded length"),
    ],
)
def test_figures_have_bounds(panel: Panel, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked([TaskFigure("one", "One", "Said.", (panel,))])
