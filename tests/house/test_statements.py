"""What a statement tells a learner is so: targets, codes, commands; points it leaves to the rubric."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.run import get_args_parser

from grader import cli
from grader.catalog.rule_codes import known_codes
from grader.catalog.tasks.task_folders import find_tasks, load_task

TASKS = {name: load_task(name) for name in find_tasks()}
# `<where it says>` is what a reader fills in.
COMMANDS = sorted(
    {
        (name, line.strip())
        for name, task in TASKS.items()
        for line in task.statement.replace("<where it says>", "data").splitlines()
        if re.match(r" {4}(?:export )?(?:[A-Z_]+=\S+ )*(?:grader|torchrun|python|cp|[A-Z_]+=\S+$)", line)
    }
)


@pytest.mark.parametrize("name", TASKS)
def test_points_are_told_by_the_rubric_alone(name: str) -> None:
    """The page scales them to what can show on its machine: another number in the text would contradict it."""
    heads = re.findall(r"^(\|.*\|)\n\|[-:| ]+\|$", TASKS[name].statement, re.MULTILINE)
    assert not [head for head in heads if re.search(r"\b(points|must)\b", head)]
    assert f"`grader tasks {name}`" in TASKS[name].statement


@pytest.mark.parametrize("name", TASKS)
def test_targets_to_be_reached_are_told(name: str) -> None:
    told = {float(number) for number in re.findall(r"\b\d+(?:\.\d+)?", TASKS[name].statement)}
    assert told >= {level for target in TASKS[name].targets for level in (target.levels or {}).values()}


@pytest.mark.parametrize("name", TASKS)
def test_codes_have_pages(name: str) -> None:
    codes = set(re.findall(r"\b[A-Z]{2,5}\d{3}\b", TASKS[name].statement))
    assert codes
    assert codes <= known_codes()


@pytest.mark.parametrize(
    ("name", "language"), [(name, one.language) for name, task in TASKS.items() for one in task.translations]
)
def test_a_translation_tells_the_same(name: str, language: str) -> None:
    """What is typed, the codes and the numbers are nobody's language; and the original is the one of today."""
    task = TASKS[name]
    told = task.told_in([language])
    assert not told.stale, "see `grader course check`"
    for what in (r"^ {4}.*(?:grader|torchrun|python|cp) .*$", r"\b[A-Z]{2,5}\d{3}\b", r"^#+ ", r"`[^`\n]+`"):
        found, there = (sorted(re.findall(what, text, re.MULTILINE)) for text in (told.text, task.statement))
        assert found == there


@pytest.mark.parametrize(("name", "line"), COMMANDS)
def test_a_command_is_understood(name: str, line: str, repository: Path) -> None:
    words = shlex.split(line)
    while words and re.match(r"export$|[A-Z_]+=", words[0]):
        words.pop(0)
    match words:
        case ["grader", *rest]:
            assert callable(cli.build_parser().parse_args(rest).run)
        case ["torchrun", *rest]:
            assert get_args_parser().parse_args(rest).training_script == "train.py"
        case ["cp", start, "."]:
            assert (repository / start).samefile(TASKS[name].skeleton / TASKS[name].entry_point)
        case ["python", script, *_]:
            assert script == "train.py"
        case _:
            assert line.startswith("export ")


def test_each_task_is_handed_in_and_started_as_its_statement_says() -> None:
    for name in TASKS:
        lines = [line for of, line in COMMANDS if of == name]
        for words in (
            "/train.py .",
            f"grader lint --task {name} train.py",
            f"grader grade {name} train.py",
        ):
            assert any(words in line for line in lines), (name, words)
        assert any("torchrun " in line for line in lines) or TASKS[name].profiles[0].nproc_per_node == 1, name


class Given(torch.nn.Module):
    """A network that keeps what it was given."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.values = (float(images.min()), float(images.max()))
        return torch.zeros(len(images), 10)


def scorer(name: str) -> Any:
    """The `evaluate` of a task."""
    spec = importlib.util.spec_from_file_location("scoring", TASKS[name].folder / "evaluate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.evaluate


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.scored and task.has_images])
def test_how_the_scorer_prepares_images_is_told_and_done_in_the_skeleton(name: str) -> None:
    evaluate, network = scorer(name), Given()
    images = torch.stack([torch.zeros(28, 28), torch.full((28, 28), 255)]).to(torch.uint8)
    evaluate(network, images, torch.tensor([0, 1]))
    lowest, highest = network.values
    task = TASKS[name]
    (row,) = [line for line in task.statement.splitlines() if "scored on" in line and "ToTensor" in line]
    assert f"from {lowest:g} to {highest:g}" in row
    skeleton = (task.skeleton / task.entry_point).read_text()
    for step, done in (("ToTensor", True), ("Normalize((0.5,), (0.5,))", lowest < 0)):
        assert (step in skeleton) == (step in row) == done
