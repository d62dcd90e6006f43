"""Batches of a loader's one pass that models were given again and again, in the order of that pass.

The loader begins no second pass, so indices tell nothing of it: hashes of what the models were given do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.data.loader_passes import RankPass, passes_of
from grader.checks.source.causes import lines
from grader.checks.source.data.kept_epochs import cycled_loaders
from grader.checks.source.script import Script
from grader.model.call_site import Site
from grader.model.trace import RankTrace

_FEWEST = 4
"""Batches that have to come again: those that were looked at in the first pass, in a run of two epochs."""
_SMALLEST = 4
_REPLAYED = 0.9


@dataclass(frozen=True, slots=True)
class ReplayedBatches:
    """Of one rank: batches that its loader gave, and those that its model was given besides, in whole rounds of them.

    Attributes:
        rank: which one. num_drawn: in the one pass. num_again: given later. site: where the loader was built.
    """

    rank: int
    num_drawn: int
    num_again: int
    site: Site | None


def replayed_batches(evidence: Evidence) -> tuple[ReplayedBatches, ...]:
    """Ranks whose models met the batches of one shuffled pass again, in the same order."""
    found = (_replayed(rank) for rank in evidence.trace.trainers)
    return tuple(one for one in found if one is not None)


def replayed_hit(script: Script, replayed: tuple[ReplayedBatches, ...]) -> Hit:
    """The finding about ranks whose models met one pass again."""
    first = replayed[0]
    cause = next(iter(cycled_loaders(script)), None)
    built = f" of {at(first.site)}" if first.site else ""
    return Hit(
        message=f"{ranks([one.rank for one in replayed])} drew {count(first.num_drawn, 'batch', 'batches')} in one "
        f"pass over the training loader{built}, and met these again, in the same order, for another "
        f"{count(first.num_again, 'batch', 'batches')}. {f'{cause.says} ' if cause else ''}"
        "Every epoch repeats the first one's batches, so shuffling helps only once.",
        hint=cause.hint
        if cause
        else "Go through the loader itself in each epoch, `for batch in loader:`, and call `set_epoch(epoch)` on its "
        "sampler before that. Batches that were kept from its first pass never change.",
        where=(*lines(script, cause.nodes if cause else ()), *place(first.site)),
        ranks=tuple(one.rank for one in replayed),
        details={"drawn": first.num_drawn, "again": first.num_again},
    )


def given_besides(rank: RankTrace) -> int:
    """Training batches that a model was given after the last training pass had ended."""
    passes = _training(rank)
    ends = [p.pass_.ended_t for p in passes if p.pass_ is not None]
    last = max((t for t in ends if t is not None), default=None)
    return 0 if last is None or None in ends else sum(not f.spot and f.t > last for f in rank.feeds)


def _replayed(rank: RankTrace) -> ReplayedBatches | None:
    passes = _training(rank)
    if len(passes) != 1 or len(passes[0].batches) < 2 or not given_besides(rank):
        return None
    drawn = passes[0].batches
    seen: dict[tuple[str, ...], int] = {}
    rounds: list[int] = []
    besides = 0
    for feed in (f for f in rank.feeds if len(f.hashes) >= _SMALLEST):
        if feed.spot:
            place = sum(batch.t <= feed.t for batch in drawn) - 1
        else:
            place = len(drawn) + besides
            besides += 1
        if feed.hashes in seen:
            rounds.append(place - seen[feed.hashes])
        seen.setdefault(feed.hashes, place)
    whole = sum(distance > 0 and distance % len(drawn) == 0 for distance in rounds)
    if whole < _FEWEST or whole < _REPLAYED * len(rounds) or _in_order(passes):
        return None
    return ReplayedBatches(
        rank.rank, len(drawn), besides, passes[0].loader.site if passes[0].loader else None
    )


def _in_order(passes: Iterable[RankPass]) -> bool:
    """Whether nothing is shuffled: then no order is lost."""
    indices = [i for p in passes for b in p.batches for i in b.indices or ()]
    return bool(indices) and indices == sorted(indices)


def _training(rank: RankTrace) -> list[RankPass]:
    return [p for p in passes_of(rank) if p.kind == "training"]
