"""What a rank drew, as the probe told it: loaders, their passes and batches, and samples without indices.

Field meanings and units are those of `grader.probe.trace.events`.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.call_site import Site


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
