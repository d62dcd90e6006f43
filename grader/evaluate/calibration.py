"""The reference time of a task on this kind of machine: measured, stored with its spread, found again.

The caller runs submissions; here runs are planned, kept and looked up. A calibration is valid for one task version,
profile, data set version, world size and node class, and says whether it is provisional.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from grader.catalog import read_submission, reference, submissions_of
from grader.errors import TaskError
from grader.evaluate.measurement_files import read_stored, write_stored
from grader.model.calibration import Calibration, StyleTiming
from grader.model.dataset import PreparedDataset
from grader.model.promise import PromisedSubmission
from grader.model.run_options import Setting
from grader.model.submission import Submission
from grader.model.task import Profile, Task
from grader.settings import settings

NUM_RUNS, NUM_ONE_RANK_RUNS = 5, 3
"""Runs of each accepted style, and of the skeleton on one rank, in a full calibration."""


class Measured(NamedTuple):
    """One completed run: CPU seconds of the slowest rank, wall seconds, accuracy 0–1 on the hidden split, images/s.

    `accuracy` is None where the task scores no network; `num_samples` counts what all ranks trained on.
    """

    cpu_s: float
    wall_s: float
    accuracy: float | None
    images_per_s: float | None
    num_samples: int = 0


RunOnce = Callable[[Submission, int], Measured]
"""Runs a submission on that many ranks and measures it; raises InfraError where it cannot."""


def make(
    setting: Setting,
    run_once: RunOnce,
    *,
    num_runs: int = NUM_RUNS,
    provisional: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Calibration:
    """Measure; nothing is stored.

    Args:
        setting: task, profile, data and ranks that the calibration will be valid for.
        run_once: runs one submission and measures it.
        num_runs: runs of each accepted style; the styles take turns, so that a slow minute meets all of them.
        provisional: one run of the reference and one of the skeleton instead.
        on_progress: told the name of the next run, its number from 1 and how many there are.

    Raises:
        TaskError: the task has no accepted submission without findings to be measured.
    """
    task, profile = setting.task, setting.profile
    skeleton = read_submission(task.skeleton)
    promises: tuple[PromisedSubmission, ...]
    if provisional:
        promises, num_runs, num_single = (reference(task),), 1, 1
    else:
        # What promises findings is a flaw that is let through, not a style to measure others by.
        promises = tuple(p for p in submissions_of(task) if p.verdict == "accepted" and not p.codes)
        num_single = NUM_ONE_RANK_RUNS
    if not promises:
        raise TaskError(
            f"The task {task.name} has no accepted submission without findings to calibrate with."
        )
    styles = [(p.name, p.submission, setting.world_size) for p in promises]
    plan = [style for _ in range(num_runs) for style in styles]
    # One rank in between, not at the end, for the same reason as the turns.
    for n in range(num_single):
        plan.insert((n + 1) * len(plan) // (num_single + 1), ("skeleton", skeleton, 1))
    load = os.getloadavg()[0]
    runs: dict[str, list[Measured]] = {}
    for number, (name, submission, num_ranks) in enumerate(plan, start=1):
        if on_progress is not None:
            on_progress(name, number, len(plan))
        runs.setdefault(name, []).append(run_once(submission, num_ranks))
    single = runs.pop("skeleton")
    speeds = sorted(m.images_per_s for m in single if m.images_per_s)
    return Calibration(
        task=task.name,
        task_version=task.version,
        profile=profile.name,
        dataset=setting.dataset.name,
        world_size=setting.world_size,
        node_class=node_class(),
        styles=tuple(
            StyleTiming(
                name,
                tuple(_seconds(m, profile) for m in measured),
                tuple(m.accuracy for m in measured if m.accuracy is not None),
            )
            for name, measured in sorted(runs.items())
        ),
        one_rank_images_per_s=speeds[len(speeds) // 2] if speeds else None,
        one_rank_s=StyleTiming("skeleton", tuple(_seconds(m, profile) for m in single), ()).median_s
        if single
        else None,
        provisional=provisional,
        load=load,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        one_rank_samples=max((m.num_samples for m in single), default=0) or None,
    )


def _seconds(measured: Measured, profile: Profile) -> float:
    # As `timing.measured_s` does for the runs that are held against it.
    return measured.cpu_s if profile.backend == "gloo" else measured.wall_s


def load(
    task: Task, profile: str, dataset: PreparedDataset, world_size: int, nnodes: int = 1
) -> Calibration | None:
    """The stored calibration for this machine; None where there is none for this version of the task and the data."""
    found = read_stored(_path(task, profile, dataset, world_size, nnodes), Calibration)
    return found if found is not None and found.task_version == task.version else None


def save(calibration: Calibration, task: Task, dataset: PreparedDataset, nnodes: int = 1) -> Path:
    """Store a calibration and return its file. A provisional one never replaces a full one of the same task version."""
    path = _path(task, calibration.profile, dataset, calibration.world_size, nnodes)
    if calibration.provisional:
        there = read_stored(path, Calibration)
        if there is not None and not there.provisional and there.task_version == calibration.task_version:
            return path
    write_stored(path, calibration)
    return path


@cache
def node_class() -> str:
    """What makes two machines comparable: CPU model, cores this process may use, GPUs."""
    cpu = _first(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo")) or os.uname().machine
    folder = Path("/proc/driver/nvidia/gpus")
    gpus = [_first(r"^Model:\s*(.+)$", p) or "GPU" for p in sorted(folder.glob("*/information"))]
    return " + ".join([f"{len(os.sched_getaffinity(0))} × {cpu}", *gpus])


def _first(pattern: str, path: Path) -> str | None:
    try:
        match = re.search(pattern, path.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return " ".join(match[1].split()) if match else None


def _path(task: Task, profile: str, dataset: PreparedDataset, world_size: int, nnodes: int) -> Path:
    # The words are for people who look into the folder; the hash keeps different machines apart.
    words = re.sub(r"[^A-Za-z0-9]+", "-", node_class()).strip("-")[:60]
    short = hashlib.sha256(f"{node_class()} {dataset.version}".encode()).hexdigest()[:8]
    ranks = f"{world_size}" if nnodes == 1 else f"{nnodes}x{world_size // nnodes}"
    name = f"{task.name}-{profile}-{dataset.name}-{ranks}-{words}-{short}.json"
    return settings().state_dir / "calibration" / name
