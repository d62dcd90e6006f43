"""What is measured for a reference time, and when a stored one still holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from grader.errors import InfraError, TaskError
from grader.evaluate import calibration
from grader.evaluate.calibration import Measured
from grader.evaluate.measurement_files import read_stored
from grader.model.calibration import Calibration
from grader.model.dataset import PreparedDataset
from grader.model.run_options import Setting
from grader.model.submission import Submission
from grader.model.task import Profile, Task
from grader.settings import settings
from tests.evaluate.tiny import CPU, GPU, make_task


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task with two clean styles, one with a hint and one flawed submission."""
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path / "state"))
    settings.cache_clear()
    for name, text in {
        "accepted/fast.py": "fast = 1\n",
        "accepted/slow.py": "slow = 1\n",
        "accepted/hinted.py": "# expect: DATA002\nhinted = 1\n",
        "rejected/flawed.py": "# expect: DATA001\nflawed = 1\n",
    }.items():
        path = tmp_path / "task" / "submissions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "skeleton").mkdir()
    (tmp_path / "skeleton" / "train.py").write_text("single = 1\n")
    return replace(make_task(tmp_path / "task"), skeleton=tmp_path / "skeleton", reference="accepted/slow.py")


class Runs:
    """Answers as a runtime would and remembers the order of what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, submission: Submission, num_ranks: int) -> Measured:
        name = submission.files[0].text.split()[0]
        self.asked.append((name, num_ranks))
        cpu_s = {"fast": 2.0, "slow": 4.0, "single": 7.0}[name] + 0.1 * (len(self.asked) % 3)
        return Measured(cpu_s, cpu_s / 2, 0.95, 1000.0 * num_ranks)


def setting(task: Task, dataset: PreparedDataset, profile: Profile) -> Setting:
    return Setting(task, profile, dataset, profile.nproc_per_node, 1, "fork", seed=0, timed=True)


def test_a_full_calibration_measures_every_clean_style_in_turns(
    task: Task, noise_data: PreparedDataset
) -> None:
    runs, told = Runs(), []
    made = calibration.make(setting(task, noise_data, CPU), runs, on_progress=lambda *now: told.append(now))
    assert Counter(runs.asked) == {("fast", 2): 5, ("slow", 2): 5, ("single", 1): 3}
    styles = [name for name, _ in runs.asked if name != "single"]
    assert styles == ["fast", "slow"] * 5
    assert runs.asked[0] != ("single", 1) != runs.asked[-1]
    assert [n for _, n, _ in told] == list(range(1, 14))
    assert made.slowest is not None
    assert made.slowest.submission == "accepted/slow"
    assert 4.0 <= made.slowest.median_s <= 4.2
    assert made.slowest.accuracies == (0.95,) * 5
    assert 0 < made.spread < 0.1
    assert made.one_rank_images_per_s == 1000.0
    assert not made.provisional


def test_a_provisional_one_runs_the_reference_and_the_skeleton_once(
    task: Task, noise_data: PreparedDataset
) -> None:
    runs = Runs()
    made = calibration.make(setting(task, noise_data, CPU), runs, provisional=True)
    assert sorted(runs.asked) == [("single", 1), ("slow", 2)]
    assert made.provisional
    assert made.spread == 0.15


def test_gpus_are_measured_by_the_wall_clock(task: Task, noise_data: PreparedDataset) -> None:
    made = calibration.make(setting(task, noise_data, GPU), Runs(), provisional=True)
    assert made.styles[0].seconds[0] < 3.0


def test_a_stored_calibration_holds_for_what_it_was_made_on(task: Task, noise_data: PreparedDataset) -> None:
    made = calibration.make(setting(task, noise_data, CPU), Runs())
    path = calibration.save(made, task, noise_data)
    assert calibration.load(task, "cpu", noise_data, 2) == made
    assert read_stored(path, Calibration) == made
    assert calibration.load(replace(task, version="2" * 64), "cpu", noise_data, 2) is None
    assert calibration.load(task, "gpu", noise_data, 2) is None
    assert calibration.load(task, "cpu", noise_data, 4) is None
    assert calibration.load(task, "cpu", replace(noise_data, version="2"), 2) is None


def test_a_provisional_one_never_replaces_a_full_one(task: Task, noise_data: PreparedDataset) -> None:
    full = calibration.make(setting(task, noise_data, CPU), Runs())
    quick = calibration.make(setting(task, noise_data, CPU), Runs(), provisional=True)
    calibration.save(quick, task, noise_data)
    assert calibration.load(task, "cpu", noise_data, 2) == quick
    calibration.save(full, task, noise_data)
    calibration.save(quick, task, noise_data)
    assert calibration.load(task, "cpu", noise_data, 2) == full
    newer = replace(task, version="2" * 64)
    calibration.save(replace(quick, task_version=newer.version), newer, noise_data)
    assert calibration.load(newer, "cpu", noise_data, 2) is not None


def test_a_damaged_file_says_what_to_do(task: Task, noise_data: PreparedDataset) -> None:
    made = calibration.make(setting(task, noise_data, CPU), Runs(), provisional=True)
    path = calibration.save(made, task, noise_data)
    path.write_text("{}")
    with pytest.raises(InfraError, match=r"damaged.*Remove it"):
        calibration.load(task, "cpu", noise_data, 2)


def test_nothing_to_calibrate_with_is_the_authors_fault(task: Task, noise_data: PreparedDataset) -> None:
    for name in ("fast", "slow"):
        path = task.folder / "submissions" / "accepted" / f"{name}.py"
        path.write_text("# expect: DATA002\n" + path.read_text())
    with pytest.raises(TaskError, match="no accepted submission without findings"):
        calibration.make(setting(task, noise_data, CPU), Runs())
