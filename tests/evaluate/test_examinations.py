"""What the course's tasks say about tables and tensors: whatever a file holds, an answer and never a failure."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.catalog import find_tasks, load_task
from grader.evaluate.outcome import TRAINED
from grader.evaluate.run_scoring import _answer
from grader.model.task import Task

TASKS = [task for task in map(load_task, find_tasks()) if task.artifacts]
RUNS = [
    {"world_size": 4.0, "wall_s": 3.0, "cpu_s": 2.0, "steps": 50.0, "samples": 900.0, "device_bytes": 0.0},
    {"world_size": 1.0, "wall_s": 3.0, "cpu_s": 2.0, "steps": 0.0, "samples": 0.0, "device_bytes": 2.0e6},
]
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "count": st.sampled_from([0, 1, 2, 3, 4, 8, 64, 512]) | st.integers(0, 10**300),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, -1.0, 10.0]),
    "text": st.text(max_size=20),
}
NAMES = st.sampled_from(["1/0.weight", "2/0.weight", "2/0.bias", "4/2.weight", "x"])
TENSORS = st.sampled_from(
    [
        torch.zeros(10, 10),
        torch.full((10,), float("nan"), dtype=torch.float64),
        torch.ones(5, 10, dtype=torch.int64),
        torch.zeros(0),
        torch.tensor(1.0),
        torch.full((10, 10), float("inf")),
    ]
)


def module_of(task: Task) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"examined_{task.name.replace('-', '_')}", task.folder / "evaluate.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULES = {task.name: module_of(task) for task in TASKS}


def files(task: Task) -> st.SearchStrategy[dict[str, Any]]:
    """Any subset of a task's files, in the shape that the reader lets through."""
    contents = {}
    for artifact in task.artifacts:
        row = st.fixed_dictionaries({name: KINDS[kind] for name, kind in artifact.columns})
        contents[artifact.name] = (
            st.lists(row, min_size=1, max_size=8)
            if artifact.columns
            else st.dictionaries(NAMES, TENSORS, max_size=4)
        )
    return st.fixed_dictionaries({}, optional=contents)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_file_gets_answers(task: Task, data: st.DataObject) -> None:
    left, run = data.draw(files(task)), data.draw(st.sampled_from(RUNS)) | {"num_train": 1000.0}
    asked = {item.answer for item in task.rubric if item.answer} | {TRAINED}
    for name, given_answer in MODULES[task.name].examine(left, run).items():
        answer = _answer(given_answer)
        assert name in asked, "an answer that no rubric item takes"
        assert answer.said.strip().endswith(".")
        assert not answer.file or answer.file in left


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_without_files_there_is_nothing_to_say(task: Task) -> None:
    assert MODULES[task.name].examine({}, RUNS[0] | {"num_train": 1000.0}) == {}


def test_there_are_such_tasks() -> None:
    assert {"gradient-averaging", "gradient-descent", "single-gpu"} <= {task.name for task in TASKS}
    assert all(Path(task.folder, "evaluate.py").is_file() for task in TASKS)
