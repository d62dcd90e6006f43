"""Whether an index means the same sample on every rank, by looks at what came for it.

In training only samples whose bits are always the same can tell that it does: rows of whole numbers, such as a text's.
Random transforms make two views of one image differ, but not its label, which can tell that it does not. In evaluation
nobody draws, so that equal samples have equal bits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.checks.run.loader_passes import passes_of
from grader.model.trace import Batch, RankTrace, Trace

_FEWEST = 8
_MOSTLY = 0.5
_FEWEST_LABELS = 48
_EQUAL_LABELS = 0.7
"""Of the labels of equal samples: some are made noisy, to teach robustness. Of two classes half are equal by chance."""
_MOST_HASHED = 256
"""Samples of a batch that the probe looks at."""


def numbered_alike(trace: Trace) -> bool | None:
    """True where ranks that looked at one index found the same, False where one found another; None: nothing tells."""
    known: dict[int, str] = {}
    alike = None
    for rank in trace.ranks:
        own = _contents(rank)
        for index in own.keys() & known.keys():
            if own[index] != known[index]:
                return False
            alike = True
        known |= own
    return False if alike is None and _other_labels(trace) else alike


def _other_labels(trace: Trace) -> bool:
    """Whether what came for an index in the same pass mostly had another label on another rank."""
    compared = equal = 0
    known: dict[tuple[str, str | None, int, int], int] = {}
    for rank in trace.ranks:
        own = {
            (*one.root, batch.pass_, index): label
            for one in passes_of(rank)
            for batch in (one.batches if one.kind == "training" else ())
            if batch.indices and batch.labels and len(batch.indices) == len(batch.labels)
            for index, label in zip(batch.indices, batch.labels, strict=True)
        }
        common = own.keys() & known.keys()
        compared += len(common)
        equal += sum(own[key] == known[key] for key in common)
        known |= own
    return compared >= _FEWEST_LABELS and equal < _EQUAL_LABELS * compared


@dataclass(frozen=True, slots=True)
class ScoredLook:
    """What was seen of a data set that models were evaluated on.

    Attributes:
        alike: whether an index meant the same sample on all ranks; None where too few looks tell.
        num_twice: how many different samples two ranks or more were seen to score.
    """

    alike: bool | None
    num_twice: int


def scored_looks(ranks: Iterable[RankTrace]) -> Mapping[tuple[str, str | None], ScoredLook]:
    """By class and split of the data set."""
    looks = [_scored(rank) for rank in ranks]
    found: dict[tuple[str, str | None], ScoredLook] = {}
    for root in dict.fromkeys(root for one in looks for root in one):
        known = [one[root] for one in looks if root in one]
        met = Counter(sample for one in known for sample in set[str]().union(*one.values()))
        found[root] = ScoredLook(_alike(known), sum(number > 1 for number in met.values()))
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


def _contents(rank: RankTrace) -> dict[int, str]:
    """Hashes of what came for indices in steps with one batch and one look at it."""
    batches: dict[int, list[Batch]] = defaultdict(list)
    for batch in rank.batches:
        batches[batch.step].append(batch)
    found: dict[int, str] = {}
    for feed in rank.feeds:
        drawn = batches[feed.step]
        if feed.spot and feed.anchors and len(drawn) == 1 and len(drawn[0].indices or ()) == len(feed.hashes):
            found.update(zip(drawn[0].indices or (), feed.hashes, strict=True))
    return found
