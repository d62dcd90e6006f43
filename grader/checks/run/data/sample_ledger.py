"""Who saw which sample: rank by epoch by loader, from the batches that were really delivered.

A pass over a loader is a training pass when optimizer steps happen between its batches, and a validation pass when the
model is evaluated during it; nothing here asks how a loader is called or which sampler it has. Where loaders tell no
indices (iterable data sets, hand-made batches), hashes of the samples fed to the model take their place. Ranks that
hold parts of one model have to draw the same, and count as one: the one of them that drew most. Counts and matches
only: what is right or wrong about a division is `checks.run.data.epoch_partition`'s and the rules'.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import cast

from grader.checks.run.data.epoch_cuts import EpochCuts, cut_apart, cut_at_samples, cut_exactly, cut_together
from grader.checks.run.data.epoch_parts import whole_epochs
from grader.checks.run.data.epoch_shards import EpochShards, Shard, as_epoch
from grader.checks.run.data.index_contents import numbered_alike
from grader.checks.run.data.loader_passes import RankPass, passes_of, shard_of, with_settling
from grader.checks.run.data.met_samples import meet_within_epoch
from grader.checks.run.data.reopened_passes import shards_of
from grader.checks.run.data.row_overlaps import RowOverlaps, row_overlaps
from grader.checks.run.data.same_loaders import by_loader
from grader.checks.run.metrics.scored_looks import ScoredLook, scored_looks
from grader.checks.run.models.parallel_layout import Layout, Ranks
from grader.model.call_site import Site
from grader.model.drawn_data import Feed, Pass
from grader.model.trace import Trace

_AGAIN = 0.5
"""Share of an epoch's samples that have to be the last one's."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One loader of the script (or the hashed feeds), matched across ranks.

    Attributes:
        kind: `training`, `validation`, `settling` (statistics of BatchNorm) or `other` (nothing of these).
        split, dataset, root_size: of the root data set; root_size None where unknown or not the same on all ranks.
        hashed: True where samples are hashes.
        epochs: in order.
    """

    kind: str
    split: str | None
    dataset: str
    root_size: int | None
    hashed: bool
    epochs: tuple[EpochShards, ...]

    @property
    def root(self) -> tuple[str, str | None, int | None]:
        """The data set that it draws from."""
        return self.dataset, self.split, self.root_size

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks that took part in any epoch."""
        return tuple(sorted({r for e in self.epochs for r in e.ranks}))

    def shards(self, rank: int) -> tuple[Shard, ...]:
        """One rank's shards, epoch by epoch."""
        return tuple(s for e in self.epochs for s in e.shards if s.rank == rank)

    @property
    def exact(self) -> bool:
        """Whether it is known where its epochs begin, and so how many there are and how long."""
        return all(e.exact for e in self.epochs)

    @property
    def counts_epochs(self) -> bool:
        """Whether its epochs can be counted: fed samples none of which came up twice may be of any number of them."""
        return not self.hashed or len(self.epochs) > 1 or any(e.complete for e in self.epochs)

    @property
    def site(self) -> Site | None:
        """Where the loader was built."""
        loaders = (s.loader for e in self.epochs for s in e.shards)
        return next((loader.site for loader in loaders if loader and loader.site), None)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All streams of one run.

    Attributes:
        streams: training first, each kind in order of first use.
        num_ranks: ranks in the trace. layout: which of them hold parts of one model.
        num_train, num_validation: sizes of the mounted splits, None unknown.
        alike: whether an index means the same sample on every rank, as far as looks at samples tell; None unknown.
        rows: what is known of rows that no loader explains.
        scored: looks at samples that models were evaluated on, by class and split of the data set.
    """

    streams: tuple[Stream, ...]
    num_ranks: int
    layout: Layout
    num_train: int | None = None
    num_validation: int | None = None
    alike: bool | None = None
    rows: RowOverlaps = field(default_factory=RowOverlaps)
    scored: Mapping[tuple[str, str | None], ScoredLook] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: Trace, num_train: int | None = None, num_validation: int | None = None) -> Ledger:
        """Build the ledger of a run; takes any trace, however little it tells."""
        layout = Layout.of(trace)
        passes = with_settling(trace, [p for rank in trace.ranks for p in passes_of(rank)])
        streams = [
            stream
            for kind in ("training", "validation", "settling", "other")
            for stream in _streams(trace, kind, _one_of_each(layout, [p for p in passes if p.kind == kind]))
        ]
        if not any(s.kind == "training" and _all_known(s) and not _hides(s) for s in streams):
            streams[:0] = _feed_streams(trace, layout, passes, num_train)
        return cls(
            tuple(streams),
            len(trace.ranks),
            layout,
            num_train,
            num_validation,
            numbered_alike(trace),
            row_overlaps(trace, layout),
            scored_looks(layout.one_each(trace.ranks)),
        )

    @property
    def num_shares(self) -> int:
        """Into how many shares the data go: one for each model, however many ranks hold it."""
        return len(self.layout.models)

    def of_kind(self, kind: str) -> tuple[Stream, ...]:
        """Streams of one kind."""
        return tuple(s for s in self.streams if s.kind == kind)

    @property
    def training(self) -> tuple[Stream, ...]:
        """Streams that were trained on; one whose samples are known stands before one whose samples are not."""
        return tuple(sorted(self.of_kind("training"), key=lambda s: _hides(s) or not _all_known(s)))

    @property
    def validation(self) -> tuple[Stream, ...]:
        """Streams that the model was evaluated on."""
        return self.of_kind("validation")

    def coverage(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per epoch, per rank: indices seen in training, in order; empty when unknown. For the coverage plot."""
        for stream in self.training:
            if stream.hashed or not _all_known(stream):
                continue
            rows = []
            for epoch in stream.epochs:
                # Only hashed streams hold texts, and they were left out above.
                drawn = {self.layout.partners(s.rank): cast(tuple[int, ...], s.samples) for s in epoch.shards}
                rows.append(
                    tuple(drawn.get(self.layout.partners(rank), ()) for rank in range(self.num_ranks))
                )
            return tuple(rows)
        return ()


def _one_of_each(layout: Layout, passes: list[RankPass]) -> list[RankPass]:
    """The passes of one rank of each model: the one that drew most batches, of equal ones the first."""
    drawn: dict[Ranks, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for p in passes:
        drawn[layout.partners(p.rank)][p.rank] += len(p.batches)
    chosen = {min(by_rank, key=lambda r: (-by_rank[r], r)) for by_rank in drawn.values()}
    return [p for p in passes if p.rank in chosen]


def _streams(trace: Trace, kind: str, passes: list[RankPass]) -> list[Stream]:
    by_root: dict[tuple[str, str | None], dict[int, list[Shard]]] = defaultdict(lambda: defaultdict(list))
    for p, shard in shards_of(trace, passes) if kind == "training" else ((p, shard_of(p)) for p in passes):
        by_root[p.root][p.rank].append(shard)
    streams = []
    for (dataset, split), drawn in by_root.items():
        per_rank = whole_epochs(drawn, _root_size(drawn)) if kind == "training" else drawn
        for group in by_loader(per_rank):
            root_size = _root_size(group)
            streams.append(Stream(kind, split, dataset, root_size, False, _epochs(group, root_size)))
    return streams


def _root_size(per_rank: Mapping[int, Sequence[Shard]]) -> int | None:
    sizes = {s.loader.root_size for shards in per_rank.values() for s in shards if s.loader}
    return sizes.pop() if len(sizes) == 1 else None


def _epochs(per_rank: Mapping[int, Sequence[Shard]], root_size: int | None) -> tuple[EpochShards, ...]:
    if all(len(shards) == 1 for shards in per_rank.values()):
        # One endless pass may hold many epochs.
        endless = {rank: shards[0] for rank, shards in per_rank.items()}
        if (cuts := cut_at_samples(endless)).any:
            return _cut_or_replaced(endless, cuts, root_size)
    return _rows(per_rank, own=True)


def _cut_or_replaced(
    endless: Mapping[int, Shard], cuts: EpochCuts, root_size: int | None
) -> tuple[EpochShards, ...]:
    """Epochs of all ranks together where these are of equal length, or as they were cut, or one with replacement."""
    together, meet = cut_together(endless), meet_within_epoch(endless)
    if not meet and together.any and together.exact and not _replaces(together.by_rank, root_size):
        return _rows(together.by_rank, own=False, exact=True)
    apart, again = cut_apart(endless), cuts.any and _replaces(cuts.by_rank, root_size)
    if again and not meet:
        return _rows({rank: [shard] for rank, shard in endless.items()}, own=True, replacement=True)
    cuts = apart if meet and (again or apart.exact) else cut_exactly(endless, cuts)
    return _rows(cuts.by_rank, own=False, exact=cuts.exact)


def _replaces(cuts: dict[int, list[Shard]], root_size: int | None) -> bool:
    """True where samples repeat long before a shard is through.

    By the birthday rule a draw with replacement from n samples repeats after about 1.25 √n draws; half a shard of
    n / k separates the two for every n above a few dozen. Where n is not known, epochs of all ranks bring the same
    samples again, and such draws bring others.
    """
    if root_size is not None:
        complete = [piece.num_samples for pieces in cuts.values() for piece in pieces if piece.exhausted]
        return 2 * len(cuts) * max(complete, default=0) < root_size
    first, second = (
        {s for pieces in cuts.values() for p in pieces[n : n + 1] for s in p.samples or ()} for n in (0, 1)
    )
    return len(first & second) < _AGAIN * len(second)


def _rows(
    per_rank: Mapping[int, Sequence[Shard]], *, own: bool, exact: bool = False, replacement: bool = False
) -> tuple[EpochShards, ...]:
    count = max((len(shards) for shards in per_rank.values()), default=0)
    rows = (tuple(per_rank[r][n] for r in sorted(per_rank) if n < len(per_rank[r])) for n in range(count))
    return tuple(
        as_epoch(n, shards, own, exact=own or exact, replacement=replacement) for n, shards in enumerate(rows)
    )


def _all_known(stream: Stream) -> bool:
    return bool(stream.epochs) and all(e.known for e in stream.epochs)


def _hides(stream: Stream) -> bool:
    """True where a data set of the script's own hides which samples its indices mean."""
    return any(s.loader is not None and s.loader.hides for e in stream.epochs for s in e.shards)


def _feed_streams(
    trace: Trace, layout: Layout, passes: Sequence[RankPass], num_train: int | None
) -> list[Stream]:
    """The one stream of samples that models were fed in training, by their content.

    Where each rank took them from passes over a loader, these are the epochs; else an epoch begins where samples come
    again.
    """
    fed = {rank.rank: [f for f in rank.feeds if f.hashes and not f.spot] for rank in trace.ranks}
    ranks = [rank.rank for rank in layout.one_each([r for r in trace.ranks if fed[r.rank]])]
    own = {
        rank: sorted(
            (p.pass_ for p in passes if p.rank == rank and p.kind == "training" and p.pass_),
            key=attrgetter("t"),
        )
        for rank in ranks
    }
    if ranks and all(len(mine) > 1 or (mine and mine[0].exhausted) for mine in own.values()):
        parts = {rank: _fed_in_passes(rank, fed[rank], own[rank]) for rank in ranks}
        epochs = _rows(whole_epochs(parts, num_train), own=True)
    else:
        endless = {rank: _fed_shard(rank, fed[rank], None) for rank in ranks}
        epochs = _cut_or_replaced(endless, cut_at_samples(endless), num_train)
    return [Stream("training", "train", "", num_train, True, epochs)] if epochs else []


def _fed_in_passes(rank: int, feeds: Sequence[Feed], passes: Sequence[Pass]) -> list[Shard]:
    parts: list[list[Feed]] = [[] for _ in passes]
    for feed in feeds:
        parts[max(0, bisect_right(passes, feed.t, key=attrgetter("t")) - 1)].append(feed)
    return [_fed_shard(rank, part, one.exhausted) for part, one in zip(parts, passes, strict=True) if part]


def _fed_shard(rank: int, feeds: Sequence[Feed], exhausted: bool | None) -> Shard:
    hashes = tuple(chain.from_iterable(f.hashes for f in feeds))
    return Shard(
        rank=rank,
        loader=None,
        samples=hashes,
        sizes=tuple(len(f.hashes) for f in feeds),
        num_distinct=len(set(hashes)),
        exhausted=exhausted,
        sampler_epoch=None,
        site=None,
        start_t=feeds[0].t,
        end_t=feeds[-1].t,
    )
