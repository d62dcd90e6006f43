"""Whether ranks agree on which samples make up the training and the validation set.

Three proofs that they do not, each of a kind that honest divisions cannot produce; where none holds, nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from grader.checks.run.data.epoch_shards import EpochShards, Samples, first
from grader.checks.run.data.sample_ledger import Ledger, Stream
from grader.model.call_site import Site
from grader.model.drawn_data import Loader

_MIN_LEAKED = 5
_INDEX_SAMPLER = "DistributedSampler"


@dataclass(frozen=True, slots=True)
class Leak:
    """Samples that one rank trained on and another one validated on."""

    trainer: int
    scorer: int
    num_shared: int
    first: Samples
    site: Site | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Ranks whose loaders mean different samples by the same numbers; `first`: shared samples, or digests."""

    ranks: tuple[int, ...]
    epoch: int
    num_shared: int
    first: Samples
    site: Site | None


@dataclass(frozen=True, slots=True)
class Scored:
    """Distinct samples that a validation stream drew on all ranks, and how many of them any rank trained on."""

    stream: Stream
    num_scored: int
    num_trained: int


def scored_samples(ledger: Ledger) -> tuple[Scored, ...]:
    """Of each validation stream whose samples are known by their places in a data set."""
    trained = {root: set().union(*by_rank.values()) for root, by_rank in _by_root(ledger.training).items()}
    found = []
    for stream in ledger.validation:
        for root, by_rank in _by_root((stream,)).items():
            drawn = set().union(*by_rank.values())
            if drawn:
                found.append(Scored(stream, len(drawn), len(drawn & trained.get(root, set()))))
    return tuple(found)


def apart_by_split(ledger: Ledger) -> bool:
    """Whether all data sets say themselves that they are for what they are used for: validation, or training."""
    splits = {kind: {s.split for s in ledger.of_kind(kind)} for kind in ("training", "validation")}
    told = not any(s.hashed for s in ledger.training)
    return told and splits == {"training": {"train"}, "validation": {"validation"}}


def leaks(ledger: Ledger) -> tuple[Leak, ...]:
    """Pairs of ranks with samples in both roles, where no rank for itself has any: a split of one set, drawn anew."""
    trained = _by_root(ledger.training)
    scored = _by_root(ledger.validation)
    found = []
    for root in trained.keys() & scored.keys():
        for trainer, samples in trained[root].items():
            if samples & scored[root].get(trainer, set()):
                return ()  # no split drawn anew: each rank knows what it trains on
            for scorer, others in scored[root].items():
                shared = samples & others
                if scorer != trainer and len(shared) >= max(_MIN_LEAKED, len(others) // 50):
                    site = next((s.site for s in ledger.training if _root_of(s) == root), None)
                    found.append(Leak(trainer, scorer, len(shared), first(shared), site))
    return tuple(sorted(found, key=lambda leak: (leak.trainer, leak.scorer)))


def different_splits(ledger: Ledger) -> tuple[Disagreement, ...]:
    """Epochs in which equal samplers, each with a rank of its own, still deliver the same samples twice."""
    found = []
    for stream in ledger.training:
        for epoch in stream.epochs:
            if stream.hashed or not epoch.known or not epoch.own or not _same_deal(epoch):
                continue
            # One sample of padding per rank is honest.
            if epoch.num_shared > len(epoch.shards):
                found.append(
                    Disagreement(epoch.ranks, epoch.number, epoch.num_shared, epoch.shared, stream.site)
                )
    return tuple(found)


def different_roots(ledger: Ledger) -> tuple[Disagreement, ...]:
    """Training sets of equal size and class that differ in content, though a sampler deals them out by index."""
    found = []
    for stream in ledger.training:
        loaders = {s.rank: s.loader for e in stream.epochs for s in e.shards if s.loader is not None}
        digests = {rank: loader.digest for rank, loader in loaders.items()}
        distinct = {d for d in digests.values() if d is not None}
        if len(loaders) < 2 or None in digests.values() or len(distinct) < 2:
            continue
        sizes = {(loader.root_size, loader.size, loader.num_replicas) for loader in loaders.values()}
        if len(sizes) == 1 and all(_deals(loader) for loader in loaders.values()):
            found.append(Disagreement(tuple(sorted(loaders)), 0, 0, first(distinct), stream.site))
    return tuple(found)


def _deals(loader: Loader) -> bool:
    return loader.sampler == _INDEX_SAMPLER and (loader.num_replicas or 0) > 1


def _same_deal(epoch: EpochShards) -> bool:
    """Samplers that agree on everything but the rank, over equally large data sets: positions can't coincide."""
    loaders = [s.loader for s in epoch.shards if s.loader is not None]
    if len(loaders) < 2 or len(loaders) < len(epoch.shards) or not all(_deals(loader) for loader in loaders):
        return False
    told = [loader.sampler_rank for loader in loaders]
    agreed = {
        (
            loader.sampler_seed,
            loader.size,
            loader.num_replicas,
            loader.shuffle,
            loader.drop_last,
            s.sampler_epoch,
        )
        for loader, s in zip(loaders, epoch.shards, strict=True)
    }
    return None not in told and len(set(told)) == len(told) and len(agreed) == 1


def _root_of(stream: Stream) -> tuple[str, str | None, int | None]:
    return (stream.dataset, stream.split, stream.root_size)


def _by_root(
    streams: tuple[Stream, ...],
) -> dict[tuple[str, str | None, int | None], dict[int, set[int | str]]]:
    """Root → rank → all samples that it drew, where indices mean the same on every rank as far as can be known."""
    found: dict[tuple[str, str | None, int | None], dict[int, set[int | str]]] = {}
    for stream in streams:
        shards = [s for e in stream.epochs for s in e.shards]
        digests = {s.loader.digest for s in shards if s.loader}
        hidden = any(s.loader is None or s.loader.hides for s in shards)
        if stream.hashed or hidden or len(digests) > 1 or stream.root_size is None:
            continue
        drawn = found.setdefault(_root_of(stream), defaultdict(set))
        for shard in shards:
            drawn[shard.rank].update(shard.samples or ())
    return found
