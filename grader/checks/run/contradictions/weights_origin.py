"""Whether what was scored can have come from the training that was told: its losses, its samples.

Sentences for staff about what honest training cannot look like; "" where nothing is odd or nothing can be said.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.model.trace import RankTrace

UNTRAINED_LOSS = math.log(10)
"""Mean cross entropy of a network that knows nothing of ten classes."""
UNEXPLAINED = 0.5
"""How much less the training loss may have fallen than the scored one, as shares of where they began: augmentation,
dropout and mixed samples keep a training loss up, by 0.3 where they are strong."""
TRAINED = 0.2
"""Share of an untrained network's loss below which no training begins."""
UNCHANGED = 0.85
"""Share of where it began below which a loss falls while a network learns enough to reach any target."""
_FEW = 3
_FEWEST_LOOKS = 6
SAME_SAMPLES = 0.3
"""Share of samples that two ranks may have in common where their indices have none; copies in the data are rarer."""
FEW_SAMPLES = 0.85
"""Share of samples with different indices that must really be different: all are, but for copies in the data."""
_SPOTS_NEEDED = 48
_UNKNOWN = 1 << 30


def unlearned(evidence: Evidence) -> str:
    """Weights that know the task, after steps in which little was learned."""
    curves = [_Learning.of(rank) for rank in evidence.trace.trainers]
    known = [curve for curve in curves if curve is not None]
    hidden = evidence.evaluation.hidden if evidence.evaluation is not None else {}
    if not known or len(known) < len(curves):
        return ""
    left = min(curve.lowest / curve.first for curve in known)
    # Only what tells ten classes apart has a loss of which it is known where it begins.
    if not evidence.has_images or not any(metric.share for metric in evidence.metrics):
        return _known_before(evidence, hidden, left)
    scored = hidden.get("loss")
    if scored is None or scored <= 0:
        return ""
    if all(curve.first < TRAINED * UNTRAINED_LOSS for curve in known):
        return (
            f"The cross entropy was {known[0].first:.2f} at the first steps, where a network that knows nothing has "
            f"one of {UNTRAINED_LOSS:.1f}: training began with weights that had been trained before."
        )
    if left <= scored / UNTRAINED_LOSS + UNEXPLAINED:
        return ""
    return (
        f"The scored weights have a loss of {scored:.2f} on the hidden split, {scored / UNTRAINED_LOSS:.0%} of an "
        f"untrained network's, but in training the cross entropy never fell below {left:.0%} of where it began: these "
        "steps did not make them."
    )


def _known_before(evidence: Evidence, hidden: Mapping[str, float], left: float) -> str:
    """A target that is reached by training that changed hardly anything; `left` is what was left of its loss."""
    reached = [m for m in evidence.asked if m.reached(hidden[m.name], evidence.levels[m.name])]
    if left < UNCHANGED or not reached:
        return ""
    metric = reached[0]
    return (
        f"The scored weights reach {metric.text(hidden[metric.name])} {metric.title}, but in training the cross "
        f"entropy never fell below {left:.0%} of where it began: they knew before the first step what they know now."
    )


@dataclass(frozen=True, slots=True)
class _Learning:
    """Cross entropies with labels that a rank's losses held, as means over its batches.

    What else a loss is made of says nothing of what a network knows: a penalty begins anywhere and may stay there, and
    so may what is left of a teacher's doubts, or of squares.

    Attributes:
        first: of the first steps, the largest of several. lowest: of a few looks in a row, the smallest of several.
    """

    first: float
    lowest: float

    @classmethod
    def of(cls, rank: RankTrace) -> _Learning | None:
        """None where losses held none from the first step on, or too few steps were looked at."""
        looks: dict[int, list[float]] = defaultdict(list)
        for event in rank.events("cross_entropies"):
            means = event.fields.get("means")
            n = event.fields.get("n")
            if isinstance(n, int) and isinstance(means, list):
                looks[n] += [one for one in means if isinstance(one, float) and math.isfinite(one)]
        told = [means for _, means in sorted(looks.items()) if means]
        if len(told) < _FEWEST_LOOKS or not looks.get(0) or any(step.optimizer for step in rank.steps):
            return None
        first, smallest = fmean(map(max, told[:_FEW])), [min(means) for means in told]
        lowest = min(fmean(smallest[n : n + _FEW]) for n in range(len(smallest) - _FEW + 1))
        return cls(first, lowest) if first > 0 else None


def foreign_samples(evidence: Evidence) -> str:
    """A training set that is the training split and more: the validation split is what else there is."""
    if evidence.num_train is None or evidence.num_validation is None:
        return ""
    both = evidence.num_train + evidence.num_validation
    for stream in evidence.ledger.training:
        size = stream.root_size
        if size is not None and evidence.num_train < size <= both:
            return (
                f"The training loader deals out {size:,} samples, and the training split has {evidence.num_train:,}: "
                f"with the validation split it would be {both:,}."
            )
    return ""


def pretended_samples(evidence: Evidence) -> str:
    """Samples that differ by their indices and not in what the models were given."""
    ranks = [_Looks(rank, _training_loaders(evidence, rank.rank)) for rank in evidence.trace.trainers]
    for one, two in combinations(ranks, 2):
        steps = sorted(one.given.keys() & two.given.keys())
        drawn = sum(len(one.drawn[n] & two.drawn[n]) for n in steps)
        given = sum(len(one.given[n] & two.given[n]) for n in steps)
        most = sum(min(len(one.given[n]), len(two.given[n])) for n in steps)
        if most >= _SPOTS_NEEDED and given >= SAME_SAMPLES * most and drawn < 0.1 * most:
            return (
                f"Ranks {one.rank} and {two.rank} drew different indices, but {given:,} of {count(most, 'sample')} "
                "that were looked at are the same."
            )
    # Only of the task's own images is it known that they differ.
    drawn = len({index for rank in ranks for indices in rank.drawn.values() for index in indices})
    given = len({sample for rank in ranks for samples in rank.given.values() for sample in samples})
    if evidence.num_train is not None and drawn >= _SPOTS_NEEDED and given < FEW_SAMPLES * drawn:
        return (
            f"The ranks drew {drawn:,} different indices at the steps that were looked at, and only {given:,} of the "
            "samples that came for them are different."
        )
    return ""


class _Looks:
    """Steps at which a rank's samples were looked at and their indices are known: different ones of each, by step."""

    def __init__(self, rank: RankTrace, loaders: frozenset[int]) -> None:
        self.rank = rank.rank
        hashes: dict[int, list[str]] = defaultdict(list)
        sizes: dict[int, int] = defaultdict(int)
        for feed in rank.feeds:
            hashes[feed.step] += feed.hashes
            sizes[feed.step] += feed.size if feed.spot else _UNKNOWN
        indices: dict[int, list[int]] = defaultdict(list)
        for batch in rank.batches:
            if batch.loader in loaders and batch.indices is not None:
                indices[batch.step] += batch.indices
        # A batch that was not fed as it came, or not hashed to its end, says nothing.
        whole = [n for n in hashes if len(hashes[n]) == sizes[n] == len(indices[n])]
        self.given = {n: frozenset(hashes[n]) for n in whole}
        self.drawn = {n: frozenset(indices[n]) for n in whole}


def _training_loaders(evidence: Evidence, rank: int) -> frozenset[int]:
    shards = [s for stream in evidence.ledger.training for epoch in stream.epochs for s in epoch.shards]
    return frozenset(s.loader.id for s in shards if s.rank == rank and s.loader is not None)
