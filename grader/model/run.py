"""What was seen from outside while a submission ran: exit codes, clocks, sizes, stacks.

Built by the supervisor (`launch`) as JSON and read back here; nothing in it was told by the script,
except texts that are marked as display only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Ending(StrEnum):
    """How the run as a whole ended; the gravest thing that any rank did."""

    COMPLETED = "completed"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    DEADLOCKED = "deadlocked"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    """The judge's own side stopped it (Ctrl-C, cancel); never a verdict."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One stack frame; `path` is relative to the submission's folder, or absolute for a library's."""

    path: str
    line: int
    function: str
    in_submission: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a rank sat when the run was stopped, from its last stack dump.

    Attributes:
        frames: the main thread, innermost first.
        operation: the collective or store operation it waited in (`all_reduce`, `barrier`, `DDP gradient
            all-reduce`, `rendezvous`, …), "" where it was in none.
        site: innermost frame of the submission, None where there is none.
    """

    frames: tuple[Frame, ...]
    operation: str
    site: Frame | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A rank's last words, parsed from its standard error: display and hints only, as the script could forge it.

    Attributes:
        type: exception class name, such as `RuntimeError`.
        message: its text, made safe and capped.
        frames: the traceback, innermost first.
    """

    type: str
    message: str
    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class RankRecord:
    """One rank as the kernel and the supervisor saw it.

    Attributes:
        rank: global rank.
        exit_code: as a shell would show it: 0–255, or negative signal number; None if it had to be killed.
        killed_by_judge: True when the supervisor ended it (deadline, deadlock, another rank's failure).
        started_s, ended_s: seconds after the start of the first rank, monotonic clock.
        cpu_user_s, cpu_system_s: CPU seconds of the rank and its reaped children, from the kernel.
        peak_rss_bytes: largest resident set.
        stdout_bytes, stderr_bytes: bytes written, before the cap.
        stdout_lines: lines written to standard output.
        output_cut: True when output went over the cap and was cut.
        trace_bytes: probe bytes received; trace_cut: True when the trace went over its cap.
        waiting: last stack, where one was taken.
        failure: parsed traceback, where there is one.
        leftovers: number of descendant processes still alive when the rank ended (killed afterwards).
        node: number of the node it ran on.
        foreign_lines: events in its trace that the probe did not write, by their seals; gone_lines: those that the
            probe wrote before others that came, and that did not come.
    """

    rank: int
    exit_code: int | None
    killed_by_judge: bool
    started_s: float
    ended_s: float
    cpu_user_s: float
    cpu_system_s: float
    peak_rss_bytes: int
    stdout_bytes: int
    stderr_bytes: int
    stdout_lines: int
    output_cut: bool
    trace_bytes: int
    trace_cut: bool
    waiting: Waiting | None = None
    failure: Failure | None = None
    leftovers: int = 0
    node: int = 0
    foreign_lines: int = 0
    gone_lines: int = 0

    @property
    def cpu_s(self) -> float:
        """CPU seconds of the rank with its children."""
        return self.cpu_user_s + self.cpu_system_s


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A regular file found in the output folder after the run; mtime_s is seconds after the ranks' start."""

    path: str
    size_bytes: int
    mtime_s: float


@dataclass(frozen=True, slots=True)
class UsedGpu:
    """A GPU that ranks had to themselves, as it was found right before they started.

    Attributes:
        uuid, name: which, and its model.
        driver, cuda, nccl: versions; "" where nobody told.
        total_bytes, free_bytes: its memory.
    """

    uuid: str
    name: str
    total_bytes: int
    free_bytes: int
    driver: str = ""
    cuda: str = ""
    nccl: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything seen from outside about one run.

    Attributes:
        runtime: name of the runtime; launcher: `fork` or `torchrun`.
        isolated: False where the runtime does not isolate (`process`).
        world_size: number of ranks that were started.
        ending: how it ended; ending_reason: one sentence for people.
        wall_s: start of the first rank to the exit of the last.
        deadline_s: the wall-clock limit it ran under.
        ranks: one record per rank, sorted by rank.
        outputs: files of the output folder, sorted by path.
        phases_s: seconds of each phase outside the run (`prepare`, `collect`, …).
        environment: versions and machine facts (python, torch, torchvision, cpu model, cores, load).
        loopback_bytes: bytes between ranks on the attempt's own loopback interface, with several nodes also on its
            own network; None where not observable.
        devices: GPUs that were used and found right before the ranks started, in the ranks' order; () where none
            were asked for.
        disturbed: whether others left its ranks too little of the machine for its time to speak of the script;
            False, too, where nobody knows.
    """

    runtime: str
    launcher: str
    isolated: bool
    world_size: int
    ending: Ending
    ending_reason: str
    wall_s: float
    deadline_s: float
    ranks: tuple[RankRecord, ...]
    outputs: tuple[WrittenFile, ...]
    phases_s: dict[str, float] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    loopback_bytes: int | None = None
    devices: tuple[UsedGpu, ...] = ()
    disturbed: bool = False

    @property
    def num_nodes(self) -> int:
        """Nodes that ranks ran on."""
        return max((rank.node for rank in self.ranks), default=0) + 1

    @property
    def slowest_cpu_s(self) -> float:
        """Largest CPU time of one rank with its children, seconds."""
        return max((r.cpu_s for r in self.ranks), default=0.0)
