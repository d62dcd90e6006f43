"""An author is told everything that is wrong with a task at once, with lines; a whole task loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader import cli
from grader.catalog.tasks.task_folders import find_tasks, load_task, reference
from grader.errors import TaskError, UsageError
from grader.model.task import Expected


def complaint(name: str = "two-ranks") -> list[str]:
    with pytest.raises(TaskError) as caught:
        load_task(name)
    assert caught.value.exit_code == 3
    return str(caught.value).splitlines()


def change(folder: Path, old: str, new: str) -> int:
    """Replace text in task.toml and return the line it stands on."""
    text = (folder / "task.toml").read_text()
    assert text.count(old) == 1
    (folder / "task.toml").write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def test_a_whole_task(task_folder: Path) -> None:
    assert find_tasks() == ("two-ranks",)
    task = load_task("two-ranks")
    cpu, gpu = task.profiles
    assert (cpu.name, cpu.backend, cpu.nproc_per_node, cpu.limits.wall_s) == ("cpu", "gloo", 2, 60)
    assert (gpu.backend, gpu.nproc_per_node, gpu.limits.wall_s) == ("nccl", 4, 600)
    assert gpu.limits.memory_bytes == 1 << 30
    assert sum(item.points for item in task.rubric) == 100
    assert task.rubric[0].steps == ((0.8, 0.25), (0.9, 0.5))
    assert task.rubric[1].requires == ("DATA001", "DATA003")
    assert task.must == ("DATA002",)
    assert reference(task).name == "accepted/plain"


def test_a_profile_may_name_the_size_that_is_trained_there(task_folder: Path) -> None:
    change(task_folder, '"nccl"', '"nccl"\nmodel_size = "large"')
    assert [profile.model_size for profile in load_task("two-ranks").profiles] == ["", "large"]


def test_the_version_changes_with_what_is_judged_and_not_with_submissions(
    task_folder: Path, home: Path
) -> None:
    first = load_task("two-ranks").version
    (task_folder / "submissions" / "accepted" / "more.py").write_text("x = 1\n")
    (task_folder / "__pycache__").mkdir()
    (task_folder / "__pycache__" / "evaluate.pyc").write_bytes(b"\0")
    assert load_task("two-ranks").version == first
    (home / "skeletons" / "two-ranks" / "train.py").write_text("print('other')\n")
    second = load_task("two-ranks").version
    (task_folder / "statement.md").write_text("# Other\n")
    assert len({first, second, load_task("two-ranks").version}) == 3


def test_an_unknown_task_lists_those_there_are(task_folder: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean two-ranks"):
        load_task("two-rank")
    with pytest.raises(UsageError, match="The tasks are: two-ranks"):
        load_task("../two-ranks/../../etc")


def test_three_mistakes_are_three_lines(task_folder: Path) -> None:
    wall = change(task_folder, "wall_s = 60\n", 'wall_s = "a minute"\n')
    points = change(task_folder, "points = 30", "pionts = 30")
    code = change(task_folder, 'must = ["DATA002"]', 'must = ["DATA999"]')
    text = "\n".join(complaint())
    assert (
        f"task.toml:{wall}: limits.wall_s: 'a minute' should be a valid number. Write `wall_s = 120`." in text
    )
    assert f"task.toml:{points}: rubric[1].pionts: there is no such key. Write `points`." in text
    assert f"task.toml:{code}: checks.must: there is no rule 'DATA999'" in text
    # The misspelled key is missing under its right name too; its table's line is given.
    assert f"task.toml:{points - 3}: rubric[1].points: is missing. Write `points = 10`." in text


def test_a_syntax_error_in_toml_has_its_line(task_folder: Path) -> None:
    line = change(task_folder, "wall_s = 60\n", "wall_s = \n")
    lines = complaint()
    assert len(lines) == 2
    assert f"task.toml:{line}: not TOML" in lines[1]
    assert "`wall_s =`" in lines[1]


def test_points_that_do_not_sum_up_and_items_that_nothing_earns(task_folder: Path) -> None:
    change(task_folder, "points = 60", "points = 50")
    line = change(task_folder, '[[rubric]]\nid = "partition"', '[[rubric]]\nid = "accuracy"') + 1
    change(task_folder, '\nrequires = ["DATA001", "DATA003"]', "")
    text = "\n".join(complaint())
    assert "the points sum to 90; make them 100" in text
    assert f"task.toml:{line}: rubric[1].id: 'accuracy' is used twice" in text
    assert "rubric[1]: nothing earns its points" in text


def test_targets_must_fit_data_sets_and_metrics(task_folder: Path) -> None:
    line = change(task_folder, "at_least = { digits = 0.9 }", "at_least = { digit = 0.9 }")
    change(task_folder, "[targets.time]\nfactor = 1.35\n", "")
    text = "\n".join(complaint())
    assert (
        f"task.toml:{line}: targets.accuracy.at_least: says nothing about digits; add `digits = 0.9`." in text
    )
    assert "'digit' is not in data.datasets (did you mean digits?)" in text
    assert "rubric[2].metric: there is no [targets.time]; add the table." in text


def test_partial_credit_in_the_wrong_direction(task_folder: Path) -> None:
    change(task_folder, "of_target = 0.8,", "of_target = 1.2,")
    assert any("for accuracy, of_target lies below 1" in line for line in complaint())


def test_what_the_folder_lacks_is_told_with_the_rest(task_folder: Path, home: Path) -> None:
    (task_folder / "statement.md").write_text(" \n")
    (task_folder / "evaluate.py").write_text("def build_model(: ...\n")
    (home / "skeletons" / "two-ranks" / "train.py").unlink()
    (task_folder / "submissions" / "accepted" / "plain.py").unlink()
    (task_folder / "submissions" / "wrong").mkdir()
    change(task_folder, 'backend = "gloo"', 'backend = "mpi"')
    text = "\n".join(complaint())
    for part in (
        "profiles.cpu.backend: 'mpi' should be 'gloo' or 'nccl'",
        "statement.md: is missing or empty",
        "evaluate.py:1: does not parse",
        "skeletons/two-ranks/train.py: is missing",
        "submissions/accepted: holds nothing",
        "submissions/wrong: not a verdict",
        "there is no submissions/accepted/plain.py",
    ):
        assert part in text
    assert "7 problems" in text


def test_evaluate_without_its_functions(task_folder: Path) -> None:
    (task_folder / "evaluate.py").write_text("def build_model(): ...\n")
    assert complaint()[1:] == ["  evaluate.py: defines no function `evaluate`; add it."]


def test_a_task_that_scores_nothing_builds_a_network_and_sets_no_accuracy(task_folder: Path) -> None:
    (task_folder / "evaluate.py").write_text("def build_model(): ...\n")
    change(task_folder, 'datasets = ["digits"]\n', 'datasets = ["digits"]\nscored = false\n')
    text = "\n".join(complaint())
    assert "targets.accuracy: data.scored is false, so nothing is measured" in text
    assert "1 problem" in text
    change(task_folder, "[targets.accuracy]\nat_least = { digits = 0.9 }\n", "")
    change(
        task_folder,
        'metric = "accuracy"\npartial = [{ of_target = 0.8, share = 0.25 }, { of_target = 0.9, share = 0.5 }]\n',
        'requires = ["GRAD001"]\n',
    )
    assert not load_task("two-ranks").scored


def test_costly_hints_are_codes(task_folder: Path) -> None:
    line = change(task_folder, 'must = ["DATA002"]', 'must = ["DATA002"]\ncostly = ["DIST022"]') + 1
    assert any(f"task.toml:{line}: checks.costly: there is no rule 'DIST022'" in told for told in complaint())
    change(task_folder, "DIST022", "DIST002")
    assert load_task("two-ranks").costly == ("DIST002",)


def test_the_course_task_is_whole() -> None:
    task = load_task("ddp-fashion")
    assert sum(item.points for item in task.rubric) == 100
    assert {item.metric for item in task.rubric if item.metric} == {"accuracy", "time"}
    assert {p.name for p in task.profiles} >= {"cpu", "gpu"}


EXPECTED = """
[expected]
base_learning_rate = 0.06
base_batch_size = 32
scaling = ["linear", "sqrt"]
warmup = true
global_batch_size = 512
"""


def test_what_a_task_asks_of_the_optimisation(task_folder: Path) -> None:
    assert load_task("two-ranks").expected == Expected()
    change(task_folder, '\n[checks]\nmust = ["DATA002"]\n', EXPECTED + '\n[checks]\nmust = ["DATA002"]\n')
    assert load_task("two-ranks").expected == Expected(0.06, 32, ("linear", "sqrt"), True, 512)


def test_scaling_needs_a_start_and_a_start_needs_scaling(task_folder: Path) -> None:
    text = EXPECTED.replace("base_batch_size = 32\n", "").replace('"sqrt"', '"linear"')
    change(task_folder, "\n[checks]\n", text + "\n[checks]\n")
    complaints = "\n".join(complaint())
    assert "expected.scaling: says how the learning rate follows the batch, but not from where" in complaints
    assert "add `base_batch_size`" in complaints
    assert "expected.scaling: names a rule twice" in complaints
    change(task_folder, 'scaling = ["linear", "linear"]\n', "")
    line = change(task_folder, "base_learning_rate = 0.06\n", "base_learning_rate = 0.06 \n")
    assert (
        f"task.toml:{line}: expected.base_learning_rate: nothing is compared with it without `scaling`; "
        'add `scaling = ["linear"]` or remove it.' in "\n".join(complaint())
    )


def test_expectations_of_the_wrong_shape(task_folder: Path) -> None:
    text = EXPECTED.replace('"sqrt"', '"cubic"').replace("512", "0").replace("warmup", "warm_up")
    change(task_folder, "\n[checks]\n", text + "\n[checks]\n")
    complaints = "\n".join(complaint())
    assert "expected.scaling[1]: 'cubic' should be 'linear' or 'sqrt'" in complaints
    assert "expected.global_batch_size: 0 should be greater than or equal to 1" in complaints
    assert "expected.warm_up: there is no such key. Write `warmup`." in complaints


@pytest.mark.usefixtures("task_folder")
def test_a_task_tells_its_targets_with_their_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main(["tasks", "two-ranks"]) == 0
    told = capsys.readouterr().out
    assert "accuracy at least 0.900 on digits" in told
    assert "time at most 1.35 times the slowest accepted solution's" in told
