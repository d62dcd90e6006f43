"""The measured reference time of a task on one machine, with its spread."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StyleTiming:
    """One accepted style's measured runs: CPU seconds of the slowest rank (cpu profile) or wall seconds (gpu).

    `scores`: what the runs reached on hidden data, by metric; without metrics that nothing was measured by.
    """

    submission: str
    seconds: tuple[float, ...]
    scores: dict[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def median_s(self) -> float:
        """Median of the runs, seconds."""
        ordered = sorted(self.seconds)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@dataclass(frozen=True, slots=True)
class Calibration:
    """Timings of a task at one version on one node class.

    Attributes:
        task, task_version, profile, dataset, world_size, node_class: what it is valid for.
        styles: timings by accepted style.
        one_rank_samples_per_s: training throughput of the skeleton on one rank, None if not measured.
        one_rank_s: CPU seconds of the skeleton's whole run on one rank; one_rank_samples: samples it trained on.
        provisional: True for the one-run calibration made on the fly.
        load: machine load average when it was made.
        made_at: date and time, ISO 8601, UTC.
        launcher: what started its runs, `fork` or `torchrun`; "" where it was made before they were told apart.
        first_run_s: seconds of a run that went before all others and counts for nothing, where runs are measured by the
            wall clock: it loads libraries and wakes devices; None where there was none.
        busy: whether the machine was busy during the reference's runs, of a full one during most runs.
    """

    task: str
    task_version: str
    profile: str
    dataset: str
    world_size: int
    node_class: str
    styles: tuple[StyleTiming, ...]
    one_rank_samples_per_s: float | None
    one_rank_s: float | None
    provisional: bool
    load: float
    made_at: str
    one_rank_samples: int | None = None
    launcher: str = ""
    busy: bool = False
    first_run_s: float | None = None

    def like(self, launcher: str, task_launcher: str) -> bool:
        """Whether a run that this launcher started may be held against it; `task_launcher`: the task's own."""
        # Before launchers were told apart, nearly all runs were started by the task's own.
        return (self.launcher or task_launcher) == launcher

    @property
    def slowest(self) -> StyleTiming | None:
        """The accepted style with the largest median."""
        return max(self.styles, key=lambda s: s.median_s, default=None)

    @property
    def spread(self) -> float:
        """Relative spread (max − min) / median of the slowest style; 0.15 where one run tells nothing."""
        style = self.slowest
        if style is None or len(style.seconds) < 2:
            return 0.15
        return (max(style.seconds) - min(style.seconds)) / style.median_s
