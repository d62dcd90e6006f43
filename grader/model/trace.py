"""What the ranks told: the probe's events of one run, parsed, rank by rank.

Field meanings and units are those of `grader.probe.trace.events`. All was said inside the learner's own process and can
be forged with effort; `record` (from outside) is what it is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
from grader.model.drawn_data import Batch, Feed, Loader, Pass
from grader.model.file_write import FileWrite
from grader.model.line_change import LineChange, Sums
from grader.model.traffic import Traffic

NAMELESS = "parameter "
"""What the names begin with of tensors that an optimizer holds and no module is known to have; a number follows."""


@dataclass(frozen=True, slots=True)
class Start:
    """The first event of a rank."""

    torch: str
    python: str
    rank: int
    local_rank: int
    world_size: int
    pid: int
    seed: int


@dataclass(frozen=True, slots=True)
class Group:
    """Creation (`init`) or end (`destroy`) of the default process group."""

    op: str
    backend: str
    rank: int
    world_size: int
    timeout_s: float | None
    sequence: int | None
    site: Site | None
    t: float


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective, or a call of the store; `n` counts calls at its site.

    `named`: a function of `torch.distributed` was called for it; otherwise it was seen at the process group alone.
    `numel`: of what the rank put in, or received. `ranks`: among which, None: all. `forward`, `backward`: called within
    such a pass of a trained model. `differentiated`: gradients come back through it.
    """

    name: str
    site: Site | None
    n: int
    numel: int | None
    reduce_op: str
    t: float
    seconds: float | None = None
    named: bool = True
    ranks: tuple[int, ...] | None = None
    forward: bool = False
    backward: bool = False
    differentiated: bool = False


@dataclass(frozen=True, slots=True)
class Wrap:
    """A module wrapped for data parallelism."""

    id: int
    kind: str
    site: Site | None
    module: str
    num_params: int
    num_tensors: int
    gradient_bytes: int
    num_buffers: int
    num_batchnorm: int
    num_sync_batchnorm: int
    param_devices: tuple[str, ...]
    device_ids: tuple[int, ...] | None
    broadcast_buffers: bool | None
    find_unused_parameters: bool | None
    t: float
    replicas: tuple[int, ...] | None = None
    """Ranks that average gradients of equal parts by it; `parts`: ranks that parameters are split among."""
    parts: tuple[int, ...] | None = None
    ignored: tuple[str, ...] = ()
    """Parameters with a gradient that it was told to leave alone."""


@dataclass(frozen=True, slots=True)
class Step:
    """One optimizer step."""

    n: int
    optimizer: int
    kind: str
    lr: tuple[float, ...]
    samples: int
    data_s: float
    compute_s: float
    optimizer_s: float | None
    loss: float | None
    grads: Sums | None
    grad_names: tuple[str, ...]
    synced: bool | None
    rss_bytes: int | None
    device_bytes: int | None
    site: Site | None
    t: float
    backwards: int | None = None
    """Backward passes since the last step of any optimizer; `unsynced` of them without gradient averaging."""
    unsynced: int | None = None
    num_params: int | None = None
    """Tensors of the optimizer that require gradients; `num_missing` of them had none, `missing` names some."""
    num_missing: int | None = None
    missing: tuple[str, ...] = ()
    own: Sums | None = None
    """What the rank's own backward passes gave to the parameters of `grads`, before it was averaged; None unknown."""
    own_last: Sums | None = None
    """The last of what they gave, where it came in several parts."""
    empty: int | None = None
    """Backward passes since its last step that found all chosen gradients cleared; None: nobody looked."""
    kept: tuple[str, ...] = ()
    """Those of `grad_names` that each of these passes found as they were stepped on: nobody had cleared them."""
    lost: int = 0
    """Of these passes, those whose gradients the next one found cleared, though no weight had changed in between."""
    exchanges: int | None = None
    """Collectives of the default group since the last step; None where there was no group."""
    device_s: float | None = None
    """What a device took from the step's first forward pass to its end; None where there is none, or it isn't known."""
    numbers: int = 0
    """In the rows that models were given, where a batch is nothing else; 0 where it is, or nobody told."""
    evaluation_mode: bool = False
    """The whole network was in evaluation mode when it was trained."""
    wraps: tuple[int, ...] | None = None
    """Wrappers around what the optimizer steps; None unknown. `modules`: classes of the models that it steps."""
    modules: tuple[str, ...] = ()
    within: bool = False
    """A backward pass was on its way, as in a hook on a gradient."""


@dataclass(frozen=True, slots=True)
class Params:
    """Parameter sums as found by the first forward pass after step `n`: of the same few at every look, and of others.

    Attributes:
        drawn: parameters, or parts of them, that were drawn for this look, the same on all ranks; drawn_sums: theirs.
    """

    n: int
    names: tuple[str, ...]
    sums: Sums
    t: float
    drawn: tuple[str, ...] = ()
    drawn_sums: Sums = ()


@dataclass(frozen=True, slots=True)
class Final:
    """All trained parameters of one wrapped (or the trained) model when the script ended."""

    names: tuple[str, ...]
    sums: Sums
    sharded: bool
    touched: bool = False
    """Changed after the last optimizer step (weights loaded again, say): ranks may then differ honestly."""


@dataclass(frozen=True, slots=True)
class Event:
    """Any other event, kept as written (fields validated by nobody: use `.get`)."""

    kind: str
    t: float
    site: Site | None
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RankTrace:
    """All that one rank told.

    Attributes:
        rank: whose pipe it came through (outside knowledge, not the event's own claim).
        start: None where the probe never started.
        ended: True when the END event arrived: the script ran to its end (or raised) with the probe alive.
        problems: sentences about garbage, truncation or impossible order found while reading.
        suspicions: sentences about what honest code cannot produce (times that receipt contradicts, …); staff only.
        num_lines: lines received; num_bytes: of these lines; last_t: receipt of the last one, seconds.
    """

    rank: int
    start: Start | None
    ended: bool
    groups: tuple[Group, ...] = ()
    collectives: tuple[Collective, ...] = ()
    wraps: tuple[Wrap, ...] = ()
    loaders: tuple[Loader, ...] = ()
    passes: tuple[Pass, ...] = ()
    batches: tuple[Batch, ...] = ()
    feeds: tuple[Feed, ...] = ()
    steps: tuple[Step, ...] = ()
    params: tuple[Params, ...] = ()
    finals: tuple[Final, ...] = ()
    saves: tuple[Save, ...] = ()
    files: tuple[FileWrite, ...] = ()
    line_changes: tuple[LineChange, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    others: tuple[Event, ...] = ()
    problems: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = ()
    num_lines: int = 0
    num_bytes: int = 0
    last_t: float = 0.0

    def events(self, kind: str) -> tuple[Event, ...]:
        """Events of one of the kinds that have no class of their own."""
        return tuple(e for e in self.others if e.kind == kind)


@dataclass(frozen=True, slots=True)
class Trace:
    """One run's trace: one entry per started rank, sorted by rank, also for ranks that told nothing."""

    ranks: tuple[RankTrace, ...]
    problems: tuple[str, ...] = field(default=())

    @property
    def world_size(self) -> int:
        """Number of ranks that were started."""
        return len(self.ranks)

    @property
    def trainers(self) -> tuple[RankTrace, ...]:
        """Ranks that took optimizer steps; a rank that only serves takes none."""
        return tuple(rank for rank in self.ranks if rank.steps)
