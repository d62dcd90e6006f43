"""The reference time of a task on this kind of machine: measured, stored with its spread, found again.

The caller runs submissions; here runs are planned, kept and looked up. A calibration is valid for one task version,
profile, data set version, world size, launcher and node class, and says whether it is provisional.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import reference
from grader.errors import TaskError
from grader.evaluate.files.measurement_files import read_stored, write_stored
from grader.evaluate.time.measured_run import MeasuredRun
from grader.model.calibration import Calibration, StyleTiming
from grader.model.run_options import Setting
from grader.model.submission import Submission
from grader.model.task import Task
from grader.run.devices.need import check_one_model
from grader.run.host_devices import host_devices
from grader.settings import settings

NUM_RUNS, NUM_ONE_RANK_RUNS = 5, 3
"""Runs of each accepted style and of the skeleton on one rank in a full calibration; at most, of the reference in a
provisional one."""
_ALONE = "skeleton"
_GPUS = Path("/proc/driver/nvidia/gpus")
_FIRST = "first run"
"""Loads gigabytes of libraries and wakes devices that slept. Only a wall clock minds, so only there is it made."""


RunOnce = Callable[[Submission, int], MeasuredRun]
"""Runs a submission on that many ranks and measures it; raises InfraError where it cannot."""
OnRun = Callable[[str, int, int], None]
"""Told the name of the next run, its number from 1 and how many there are."""


def make(
    setting: Setting, run_once: RunOnce, *, num_runs: int = NUM_RUNS, on_run: OnRun | None = None
) -> Calibration:
    """Measure all accepted styles; nothing is stored.

    Args:
        setting: task, profile, data, ranks and launcher that the calibration will be valid for.
        run_once: runs one submission and measures it.
        num_runs: runs of each accepted style; the styles take turns, so that a slow minute meets all of them.
        on_run: told of every run before it starts.

    Raises:
        TaskError: the task has no accepted submission without findings to be measured.
        UsageError: the runs could meet GPUs of several models.
    """
    task = setting.task
    if setting.profile.backend == "nccl":
        check_one_model(host_devices().inventory())
    # What promises findings is a flaw that is let through, not a style to measure others by.
    promises = tuple(p for p in submissions_of(task) if p.verdict == "accepted" and not p.codes)
    if not promises:
        raise TaskError(
            f"The task {task.name} has no accepted submission without findings to calibrate with."
        )
    styles = [(p.name, p.submission, setting.world_size) for p in promises]
    plan = [style for _ in range(num_runs) for style in styles]
    # One rank in between, not at the end, for the same reason as the turns.
    for n in range(NUM_ONE_RANK_RUNS):
        plan.insert((n + 1) * len(plan) // (NUM_ONE_RANK_RUNS + 1), _alone(task))
    plan = [*_warm_up(setting, styles[0][1]), *plan]
    load = os.getloadavg()[0]
    runs: dict[str, list[MeasuredRun]] = {}
    for number, (name, submission, num_ranks) in enumerate(plan, start=1):
        if on_run is not None:
            on_run(name, number, len(plan))
        runs.setdefault(name, []).append(run_once(submission, num_ranks))
    disturbed = [run.disturbed for name, some in runs.items() if name != _FIRST for run in some]
    return _calibration(setting, runs, load, provisional=False, busy=2 * sum(disturbed) > len(disturbed))


def make_provisional(
    setting: Setting, run_once: RunOnce, *, num_tries: int | None = None, on_run: OnRun | None = None
) -> Calibration:
    """Measure the reference, and the skeleton on one rank, once; nothing is stored.

    The reference is run again while its run is disturbed, `num_tries` times at most (None: as the settings say); else
    the quickest is taken. The skeleton is not: points depend on the reference alone.

    Args: as `make`.
    """
    chosen, most = reference(setting.task), num_tries or settings().reference_tries
    plan = [_alone(setting.task), (chosen.name, chosen.submission, setting.world_size)]
    plan = [*_warm_up(setting, chosen.submission), *plan]
    load = os.getloadavg()[0]
    runs: dict[str, list[MeasuredRun]] = {}
    for number, (name, submission, num_ranks) in enumerate(plan, start=1):
        tries: list[MeasuredRun] = []
        while not tries or (name == chosen.name and tries[-1].disturbed and len(tries) < most):
            if on_run is not None:
                on_run(f"{name}, again" if tries else name, number, len(plan))
            tries.append(run_once(submission, num_ranks))
        quiet = [run for run in tries if not run.disturbed]
        runs[name] = quiet or [min(tries, key=lambda run: run.seconds(setting.profile))]
    return _calibration(setting, runs, load, provisional=True, busy=runs[chosen.name][0].disturbed)


def stored_or_provisional(
    setting: Setting, run_once: RunOnce, *, quiet_now: Callable[[], bool], on_run: OnRun | None = None
) -> Calibration:
    """The stored calibration; where there is none, a provisional one that is made and stored now.

    A provisional one that was measured while the machine was busy is made again once `quiet_now` says that it is quiet.
    """
    stored = load(setting)
    if stored is None:
        made = make_provisional(setting, run_once, on_run=on_run)
        save(made, setting)
        return made
    again = stored.provisional and stored.busy and settings().reference_tries > 1
    if not (again and quiet_now()):
        return stored
    # Once: a machine that is busy again must not hold up every attempt for three runs.
    made = make_provisional(setting, run_once, num_tries=1, on_run=on_run)
    if made.busy:
        return stored
    save(made, setting)
    return made


def _alone(task: Task) -> tuple[str, Submission, int]:
    return _ALONE, read_submission(task.skeleton), 1


def _warm_up(setting: Setting, submission: Submission) -> list[tuple[str, Submission, int]]:
    return [(_FIRST, submission, setting.world_size)] if setting.profile.backend != "gloo" else []


def _calibration(
    setting: Setting, runs: Mapping[str, Sequence[MeasuredRun]], load: float, *, provisional: bool, busy: bool
) -> Calibration:
    profile, single = setting.profile, runs[_ALONE]
    speeds = sorted(m.samples_per_s for m in single if m.samples_per_s)
    return Calibration(
        task=setting.task.name,
        task_version=setting.task.version,
        profile=profile.name,
        dataset=setting.dataset.name,
        world_size=setting.world_size,
        node_class=node_class(),
        styles=tuple(
            StyleTiming(
                name,
                tuple(m.seconds(profile) for m in measured),
                _scores(setting.task, measured),
            )
            for name, measured in sorted(runs.items())
            if name not in (_ALONE, _FIRST)
        ),
        one_rank_samples_per_s=speeds[len(speeds) // 2] if speeds else None,
        one_rank_s=StyleTiming(_ALONE, tuple(m.seconds(profile) for m in single)).median_s,
        provisional=provisional,
        load=load,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        one_rank_samples=max((m.num_samples for m in single), default=0) or None,
        launcher=setting.launcher,
        busy=busy,
        first_run_s=next((run.seconds(profile) for run in runs.get(_FIRST, ())), None),
    )


def _scores(task: Task, measured: Sequence[MeasuredRun]) -> dict[str, tuple[float, ...]]:
    names = [m.name for m in task.metrics if any(m.name in run.scores for run in measured)]
    return {name: tuple(run.scores[name] for run in measured if name in run.scores) for name in names}


def load(setting: Setting) -> Calibration | None:
    """The stored calibration for this machine and launcher; None where there is none for this task version and data."""
    task, launcher = setting.task, setting.launcher
    found = read_stored(_path(setting), Calibration)
    if found is None and launcher == task.launcher:
        # Made before launchers were told apart.
        found = read_stored(_path(setting, any_launcher=True), Calibration)
    if found is None or found.task_version != task.version or not found.like(launcher, task.launcher):
        return None
    return replace(found, launcher=launcher)


def save(calibration: Calibration, setting: Setting) -> Path:
    """Store a calibration and return its file.

    A provisional one never replaces a full one of the same task version, nor a busy one a quiet one.
    """
    there, path = load(setting), _path(setting)
    if calibration.provisional and there is not None:
        worse = calibration.busy and not there.busy
        if not there.provisional or worse:
            return path
    write_stored(path, calibration)
    return path


@cache
def node_class() -> str:
    """What makes two machines comparable: CPU model, cores this process may use, GPUs that are handed out here."""
    cpu = _first(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo")) or os.uname().machine
    gpus = [_first(r"^Model:\s*(.+)$", p) or "GPU" for p in sorted(_GPUS.glob("*/information"))]
    ours = settings().gpu_model.lower()
    return " + ".join(
        [f"{len(os.sched_getaffinity(0))} × {cpu}", *(gpu for gpu in gpus if ours in gpu.lower())]
    )


def _first(pattern: str, path: Path) -> str | None:
    try:
        match = re.search(pattern, path.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return " ".join(match[1].split()) if match else None


def _path(setting: Setting, *, any_launcher: bool = False) -> Path:
    # The words are for people who look into the folder; the hash keeps different machines apart.
    words = re.sub(r"[^A-Za-z0-9]+", "-", node_class()).strip("-")[:60]
    short = hashlib.sha256(f"{node_class()} {setting.dataset.version}".encode()).hexdigest()[:8]
    nodes = "" if setting.nnodes == 1 else f"{setting.nnodes}x"
    ranks = f"{nodes}{setting.nproc_per_node}"
    launcher = "" if any_launcher else f"-{setting.launcher}"
    name = f"{setting.task.name}-{setting.profile.name}-{setting.dataset.name}-{ranks}{launcher}-{words}-{short}.json"
    return settings().state_dir / "calibration" / name
