"""What is measured for a reference time, and when a stored one still holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from grader.errors import InfraError, TaskError, UsageError
from grader.evaluate.files.measurement_files import read_stored
from grader.evaluate.time import calibration
from grader.evaluate.time.measured_run import MeasuredRun
from grader.model.calibration import Calibration
from grader.model.dataset import PreparedDataset
from grader.model.run_options import Setting
from grader.model.submission import Submission
from grader.model.task import Profile, Task
from grader.settings import settings
from tests.evaluate.tiny import CPU, GPU, make_task
from tests.run.devices.stub_driver import StubDriver


@pytest.fixture(autouse=True)
def three_tries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As an operator has it; the suite as a whole takes what the first run gives."""
    monkeypatch.setenv("GRADER_REFERENCE_TRIES", "3")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


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

    def __init__(self, disturbed: Sequence[bool] = ()) -> None:
        self.asked: list[tuple[str, int]] = []
        self._disturbed = list(disturbed)

    def __call__(self, submission: Submission, num_ranks: int) -> MeasuredRun:
        name = submission.files[0].text.split()[0]
        self.asked.append((name, num_ranks))
        cpu_s = {"fast": 2.0, "slow": 4.0, "single": 7.0}[name] + 0.1 * (len(self.asked) % 3)
        disturbed = bool(self._disturbed) and num_ranks > 1 and self._disturbed.pop(0)
        return MeasuredRun(
            cpu_s, cpu_s / 2, {"accuracy": 0.95, "loss": 0.1}, 1000.0 * num_ranks, disturbed=disturbed
        )


def setting(task: Task, dataset: PreparedDataset, profile: Profile, launcher: str = "fork") -> Setting:
    return Setting(task, profile, dataset, profile.nproc_per_node, 1, launcher, seed=0, timed=True)


def test_a_full_calibration_measures_every_clean_style_in_turns(
    task: Task, noise_data: PreparedDataset
) -> None:
    runs, told = Runs(), []
    made = calibration.make(setting(task, noise_data, CPU), runs, on_run=lambda *now: told.append(now))
    assert Counter(runs.asked) == {("fast", 2): 5, ("slow", 2): 5, ("single", 1): 3}
    styles = [name for name, _ in runs.asked if name != "single"]
    assert styles == ["fast", "slow"] * 5
    assert runs.asked[0] != ("single", 1) != runs.asked[-1]
    assert [n for _, n, _ in told] == list(range(1, 14))
    assert made.slowest is not None
    assert made.slowest.submission == "accepted/slow"
    assert 4.0 <= made.slowest.median_s <= 4.2
    assert made.slowest.scores == {"accuracy": (0.95,) * 5}
    assert 0 < made.spread < 0.1
    assert made.one_rank_samples_per_s == 1000.0
    assert not made.provisional


def test_a_provisional_one_runs_the_reference_and_the_skeleton_once(
    task: Task, noise_data: PreparedDataset
) -> None:
    runs = Runs()
    made = calibration.make_provisional(setting(task, noise_data, CPU), runs)
    assert sorted(runs.asked) == [("single", 1), ("slow", 2)]
    assert made.provisional
    assert not made.busy
    assert made.spread == 0.15


def test_a_reference_that_neighbours_disturbed_is_run_again(task: Task, noise_data: PreparedDataset) -> None:
    runs, told = Runs([True, False]), []
    made = calibration.make_provisional(
        setting(task, noise_data, CPU), runs, on_run=lambda *now: told.append(now)
    )
    assert runs.asked == [("single", 1), ("slow", 2), ("slow", 2)]
    assert told[1:] == [("accepted/slow", 2, 2), ("accepted/slow, again", 2, 2)]
    # The quiet run, not the quicker of the two.
    assert [style.seconds for style in made.styles] == [(4.0,)]
    assert not made.busy


def test_a_reference_that_was_never_left_alone_says_so_and_is_the_quickest(
    task: Task, noise_data: PreparedDataset
) -> None:
    runs = Runs([True] * 9)
    made = calibration.make_provisional(setting(task, noise_data, CPU), runs)
    assert Counter(runs.asked) == {("single", 1): 1, ("slow", 2): 3}
    assert [style.seconds for style in made.styles] == [(4.0,)]
    assert made.busy
    once = Runs([True] * 9)
    assert calibration.make_provisional(setting(task, noise_data, CPU), once, num_tries=1).busy
    assert len(once.asked) == 2


def test_a_full_one_says_when_most_of_its_runs_were_disturbed(
    task: Task, noise_data: PreparedDataset
) -> None:
    assert calibration.make(setting(task, noise_data, CPU), Runs([True] * 10)).busy
    assert not calibration.make(setting(task, noise_data, CPU), Runs([True] * 5)).busy


def test_gpus_are_measured_by_the_wall_clock(task: Task, noise_data: PreparedDataset) -> None:
    made = calibration.make_provisional(setting(task, noise_data, GPU), Runs())
    assert made.styles[0].seconds[0] < 3.0


def test_on_gpus_the_first_run_is_told_apart_and_counts_for_nothing(
    task: Task, noise_data: PreparedDataset
) -> None:
    here, runs, quick = setting(task, noise_data, GPU), Runs(), Runs()
    made = calibration.make(here, runs)
    assert Counter(runs.asked) == {("fast", 4): 6, ("slow", 4): 5, ("single", 1): 3}
    assert runs.asked[0] == ("fast", 4)
    assert made.first_run_s == pytest.approx(1.05)
    assert [(style.submission, len(style.seconds)) for style in made.styles] == [
        ("accepted/fast", 5),
        ("accepted/slow", 5),
    ]
    calibration.save(made, here)
    assert calibration.load(here) == made
    provisional = calibration.make_provisional(here, quick)
    assert quick.asked == [("slow", 4), ("single", 1), ("slow", 4)]
    assert provisional.first_run_s == pytest.approx(2.05)
    assert len(provisional.styles[0].seconds) == 1
    assert calibration.make_provisional(setting(task, noise_data, CPU), Runs()).first_run_s is None


def test_a_stored_calibration_holds_for_what_it_was_made_on(task: Task, noise_data: PreparedDataset) -> None:
    here = setting(task, noise_data, CPU)
    made = calibration.make(here, Runs())
    path = calibration.save(made, here)
    assert calibration.load(here) == made
    assert read_stored(path, Calibration) == made
    assert calibration.load(replace(here, task=replace(task, version="2" * 64))) is None
    assert calibration.load(setting(task, noise_data, GPU)) is None
    assert calibration.load(replace(here, nproc_per_node=4)) is None
    assert calibration.load(replace(here, dataset=replace(noise_data, version="2"))) is None


def test_warm_and_cold_ones_are_stored_beside_each_other(task: Task, noise_data: PreparedDataset) -> None:
    warm, cold = setting(task, noise_data, CPU), setting(task, noise_data, CPU, "torchrun")
    made = calibration.make(warm, Runs())
    calibration.save(made, warm)
    assert calibration.load(cold) is None
    quick = calibration.make_provisional(cold, Runs())
    calibration.save(quick, cold)
    assert (calibration.load(warm), calibration.load(cold)) == (made, quick)
    assert (made.launcher, quick.launcher) == ("fork", "torchrun")


@pytest.mark.parametrize(("own", "other"), [("fork", "torchrun"), ("torchrun", "fork")])
def test_one_stored_before_launchers_were_told_apart_is_of_the_tasks_own(
    own: str, other: str, task: Task, noise_data: PreparedDataset
) -> None:
    task = replace(task, launcher=own)
    here, elsewhere = setting(task, noise_data, CPU, own), setting(task, noise_data, CPU, other)
    path = calibration.save(calibration.make(here, Runs()), here)
    stored = json.loads(path.read_text())
    del stored["launcher"], stored["busy"]
    path.rename(path.with_name(path.name.replace(f"-{own}-", "-"))).write_text(json.dumps(stored))
    found = calibration.load(here)
    assert found is not None
    assert (found.launcher, found.busy, found.made_at) == (own, False, stored["made_at"])
    assert calibration.load(elsewhere) is None
    # A quick one beside it does not stand in its way.
    calibration.save(calibration.make_provisional(here, Runs()), here)
    assert calibration.load(here) == found


def test_a_worse_one_never_replaces_a_better_one(task: Task, noise_data: PreparedDataset) -> None:
    here = setting(task, noise_data, CPU)
    full = calibration.make(here, Runs())
    quick, busy = (calibration.make_provisional(here, Runs(often)) for often in ([], [True] * 3))
    for made, kept in ((busy, busy), (quick, quick), (busy, quick), (full, full), (quick, full)):
        calibration.save(made, here)
        assert calibration.load(here) == kept
    newer = replace(here, task=replace(task, version="2" * 64))
    calibration.save(replace(quick, task_version=newer.task.version), newer)
    assert calibration.load(newer) is not None


def test_a_busy_one_is_made_again_once_the_machine_is_quiet(task: Task, noise_data: PreparedDataset) -> None:
    here = setting(task, noise_data, CPU)

    def asked(disturbed: Sequence[bool], *, quiet: bool) -> tuple[Calibration, int]:
        runs = Runs(disturbed)
        found = calibration.stored_or_provisional(here, runs, quiet_now=lambda: quiet)
        return found, len(runs.asked)

    first, num_runs = asked([True] * 3, quiet=False)
    assert (first.busy, num_runs) == (True, 4)
    assert asked([], quiet=False) == (first, 0)
    # It only looked quiet: nothing is won, and the attempt does not wait for three runs.
    assert asked([True] * 3, quiet=True) == (first, 2)
    again, num_runs = asked([False], quiet=True)
    assert (again.busy, num_runs) == (False, 2)
    assert asked([], quiet=True) == (again, 0)


def test_a_damaged_file_says_what_to_do(task: Task, noise_data: PreparedDataset) -> None:
    here = setting(task, noise_data, CPU)
    path = calibration.save(calibration.make_provisional(here, Runs()), here)
    path.write_text("{}")
    with pytest.raises(InfraError, match=r"damaged.*Remove it"):
        calibration.load(here)


def test_nothing_to_calibrate_with_is_the_authors_fault(task: Task, noise_data: PreparedDataset) -> None:
    for name in ("fast", "slow"):
        path = task.folder / "submissions" / "accepted" / f"{name}.py"
        path.write_text("# expect: DATA002\n" + path.read_text())
    with pytest.raises(TaskError, match="no accepted submission without findings"):
        calibration.make(setting(task, noise_data, CPU), Runs())


def test_gpus_of_several_models_have_no_reference_times_together(
    task: Task, noise_data: PreparedDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "driver").mkdir()
    driver = StubDriver(tmp_path / "driver")
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    driver.shows("ok,ok,small,mig")
    with pytest.raises(UsageError, match=r"\(1 × Stub 24GB, 2 × Stub 80GB\).* set GRADER_GPU_MODEL"):
        calibration.make(setting(task, noise_data, GPU), Runs())
    monkeypatch.setenv("GRADER_GPU_MODEL", "80GB")
    settings.cache_clear()
    assert calibration.make(setting(task, noise_data, GPU), Runs()).world_size == GPU.nproc_per_node


def test_times_on_one_model_of_a_host_are_not_held_against_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, model in enumerate(("NVIDIA H100", "NVIDIA A100")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "information").write_text(f"Model: \t{model}\n")
    monkeypatch.setattr(calibration, "_GPUS", tmp_path)
    monkeypatch.setenv("GRADER_GPU_MODEL", "a100")
    settings.cache_clear()
    calibration.node_class.cache_clear()
    try:
        assert calibration.node_class().endswith("+ NVIDIA A100")
        assert "H100" not in calibration.node_class()
    finally:
        calibration.node_class.cache_clear()
