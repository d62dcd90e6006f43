"""What models were evaluated on, by looks at it: in evaluation nobody draws, so that equal samples have equal bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.model.trace import RankTrace

_FEWEST = 8
_MOSTLY = 0.5
_MOST_HASHED = 256
"""Samples of a batch that the probe looks at."""


@dataclass(frozen=True, slots=True)
class ScoredLook:
    """What was seen of a data set that models were evaluated on.

    Attributes:
        alike: whether an index meant the same sample on all ranks; None where too few looks tell.
        num_twice: how many different samples two ranks or more were seen to score.
        num_changed: how many indices brought one rank other bits the next time.
    """

    alike: bool | None
    num_twice: int
    num_changed: int = 0


def scored_looks(ranks: Iterable[RankTrace]) -> Mapping[tuple[str, str | None], ScoredLook]:
    """By class and split of the data set."""
    looks = [_scored(rank) for rank in ranks]
    found: dict[tuple[str, str | None], ScoredLook] = {}
    for root in dict.fromkeys(root for one in looks for root in one):
        known = [one[root] for one in looks if root in one]
        met = Counter(sample for one in known for sample in set[str]().union(*one.values()))
        twice = sum(number > 1 for number in met.values())
        changed = {index for one in known for index, bits in one.items() if len(bits) > 1}
        found[root] = ScoredLook(_alike(known), twice, len(changed))
    return found


def _alike(looks: list[dict[int, set[str]]]) -> bool | None:
    known, equal, compared = dict(looks[0]), 0, 0
    for own in looks[1:]:
        common = own.keys() & known.keys()
        if any(len(one[index]) > 1 for one in (own, known) for index in common):
            return None  # the same index brought one rank other bits the next time
        compared += len(common)
        equal += sum(own[index] == known[index] for index in common)
        known |= own
    # A few samples stand in a data set twice.
    return equal > _MOSTLY * compared if compared >= _FEWEST else None


def _scored(rank: RankTrace) -> dict[tuple[str, str | None], dict[int, set[str]]]:
    """Hashes of what came for the indices of batches that went into a model as they were."""
    loaders = {loader.id: loader for loader in rank.loaders}
    batches = {f"{b.loader},{b.pass_},{b.n}": b for b in rank.batches}
    found: dict[tuple[str, str | None], dict[int, set[str]]] = {}
    met = set[str]()
    for event in rank.events("evaluated"):
        # "loader,pass,n": what other fields hold nobody has looked at.
        key = ",".join(str(event.fields.get(name)) for name in ("loader", "pass", "n"))
        batch = batches.get(key) if key not in met else None
        met.add(key)
        loader = loaders.get(batch.loader) if batch is not None else None
        hashes = event.fields.get("hashes")
        if batch is None or loader is None or not batch.indices or not isinstance(hashes, list):
            continue
        if len(hashes) == min(len(batch.indices), _MOST_HASHED):
            own = found.setdefault((loader.dataset, loader.split), {})
            for index, one in zip(batch.indices, hashes, strict=False):
                own.setdefault(index, set()).add(str(one))
    return found
