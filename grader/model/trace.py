"""What the ranks told: the probe's events of one run, parsed, rank by rank.

Field meanings and units are those of `grader.probe.events`. All was said inside the learner's own process and can be
forged with effort; `record` (from outside) is what it is held against.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
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

    `named`: by a function of `torch.distributed`, else seen at the process group; `numel`: of what the rank put in or
    received; `ranks`: among which, None: all; `forward`, `backward`: within such a pass of a trained model;
    `differentiated`: gradients come back through it.
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


@dataclass(frozen=True, slots=True)
class Loader:
    """A DataLoader as built."""

    id: int
    site: Site | None
    dataset: str
    root: int
    root_size: int | None
    size: int | None
    split: str | None
    sampler: str
    num_replicas: int | None
    sampler_rank: int | None
    sampler_seed: int | None
    shuffle: bool | None
    batch_size: int | None
    drop_last: bool
    num_workers: int
    iterable: bool
    resolvable: bool
    t: float
    digest: str | None = None
    """Of the root's own arrays and lists: differs between ranks that built different roots; None unknown."""
    hides: bool = False
    """The root is the script's own class around a `Subset`: indices may mean other samples on another rank."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One delivered batch; `step` is the number of optimizer steps the rank had taken before it."""

    loader: int
    pass_: int
    n: int
    size: int
    indices: tuple[int, ...] | None
    wait_s: float
    step: int
    t: float
    labels: tuple[int, ...] | None = None
    """What came for the indices, where somebody looked: one whole number for each sample."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a loader (an epoch, for a training loader)."""

    loader: int
    n: int
    sampler_epoch: int | None
    site: Site | None
    t: float
    ended_t: float | None
    exhausted: bool | None
    """True when the loader ran dry, False after an early `break`, None where the trace ends first."""
    state: str | None = None
    """Of a data set of the script's own: another one where its indices may mean other samples. None unknown."""
    changed: bool = False
    """Whether that state was another one at the end."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Hashes of samples fed to the model in training without known indices, or, as a `spot`, with; see FEED."""

    step: int
    hashes: tuple[str, ...]
    size: int
    t: float
    spot: bool = False
    anchors: tuple[str, ...] = ()


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
    """What own backward passes gave to the parameters of `grads`, before it was averaged; `own_last`: the last part."""
    own_last: Sums | None = None
    empty: int | None = None
    """Backward passes since its last step that found all chosen gradients cleared; None: nobody looked."""
    kept: tuple[str, ...] = ()
    """Those of `grad_names` that all these passes found uncleared; `lost`: passes that gave what no step has used."""
    lost: int = 0
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


@dataclass(frozen=True, slots=True)
class Params:
    """Parameter sums as found by the first forward pass after step `n`."""

    n: int
    names: tuple[str, ...]
    sums: Sums
    t: float


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
