"""What a runtime is: something that can run a job and fill its workspace. One conformance suite tests them all.

A runtime never judges; a submission that misbehaves is an ending in the record, never an exception.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from grader.launch.ranks.data_folder import files_below
from grader.model.submission import Submission
from grader.model.task import Limits
from grader.run.runtime_scorer import RuntimeScorer
from grader.run.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be done.

    Attributes:
        attempt: unique name, letters, digits, dashes.
        submission: files to lay out; entry_point: script to launch; argv: its arguments.
        data_dir: prepared training and validation splits in the data set's own layout; no rank can write there.
        own_data: contents by path below `data_dir` that this run finds in place of what lies there; what they replace
            is nowhere to be found for it.
        gpus_per_node: devices that ranks of one node get to themselves; 0: none.
        cores_per_rank: cores for each rank; fewer where the host has no more, or no more for each of its GPUs.
        hidden_dir: the hidden split, for a runtime that brings its own scorer; None where nothing is scored.
        nproc_per_node: ranks on one node; nnodes: nodes.
        launcher, shims: as `LaunchSpec` says.
        model_size: becomes $MODEL_SIZE; "": the variable is not there.
        limits: seconds and bytes; seed: base of the ranks' different seeds; probe: False leaves the probe out.
        sampling_seed: of a run on several nodes, decides which steps the probe looks at closely.
        traced_steps: for a second look, see `LaunchSpec`; such a run is never scored.
    """

    attempt: str
    submission: Submission
    entry_point: str
    data_dir: Path
    nproc_per_node: int
    limits: Limits
    nnodes: int = 1
    launcher: str = "fork"
    seed: int = 0
    probe: bool = True
    argv: tuple[str, ...] = ()
    hidden_dir: Path | None = None
    gpus_per_node: int = 0
    cores_per_rank: int = 1
    model_size: str = ""
    sampling_seed: int = field(default_factory=lambda: secrets.randbits(128) | 1)
    traced_steps: tuple[int, int] | None = None
    own_data: Mapping[str, bytes] = field(default_factory=dict)
    shims: tuple[str, ...] = ()

    @property
    def shared_data(self) -> tuple[str, ...]:
        """Paths below `data_dir` of what all runs on these data share."""
        return tuple(name for name in files_below(self.data_dir) if name not in self.own_data)


@dataclass(frozen=True, slots=True)
class PrintedText:
    """The newest of what a rank printed since the last sign, made safe; `stream` is `stdout` or `stderr`."""

    rank: int
    stream: str
    text: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A sign of life for people, a few per second at most; display only.

    Whoever hears it may raise to end the run: that ends every process of the job first, then passes on.

    Attributes:
        phase: `prepare`, `run`, `collect`, `evaluate`, ….
        elapsed_s: seconds in this phase.
        steps: optimizer steps seen so far per rank (as told by the probe).
        line: last line that rank 0 printed, made safe, or "".
        epoch: pass over the data that rank 0 is in, from 1; loss: its last one; None where they cannot be told.
        printed: ends of what the ranks printed since the last sign.
    """

    phase: str
    elapsed_s: float
    steps: tuple[int, ...] = ()
    line: str = ""
    epoch: int | None = None
    loss: float | None = None
    printed: tuple[PrintedText, ...] = ()


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a runtime can be offered on this machine, and why not."""

    usable: bool
    reason: str


class Runtime(Protocol):
    """Runs jobs, one at a time per instance. Use as a context manager: entering warms it, leaving ends every process.

    Attributes:
        name: as given to `--runtime`.
        isolates: False where a submission shares the judge's user and files (said loudly in reports).
        spans_nodes: whether it can run a job on several nodes.
        scorer: the scorer that holds what the last run left, until `release`; None where the runtime has none.
    """

    name: str
    isolates: bool
    spans_nodes: bool

    @property
    def scorer(self) -> RuntimeScorer | None:
        """See above."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def self_test(self) -> Availability:
        """Whether it can run here; quick (under a second), leaves nothing."""
        ...

    def warm(self, like: Job | None = None) -> None:
        """Wait until the next job can start at once, in particular one like `like`; raises InfraError if none will."""
        ...

    def release(self) -> None:
        """The last run was scored or never will be: let go of what was kept of it, get ready for the next."""
        ...

    def run(self, job: Job, workspace: Workspace, on_progress: Callable[[Progress], None]) -> None:
        """Run a job and fill the workspace: submission, record, trace, logs, stacks, outputs.

        Returns within the job's wall limit + 5 s with every process of the job dead. KeyboardInterrupt, or whatever
        `on_progress` raises, ends the job first, then passes on.

        Raises:
            InfraError: the machine or the runtime failed; the submission is not to blame.
        """
        ...
