"""Samples that are drawn and passed through and have next to no weight in what is stepped on, each time anew.

Of steps that the scorer took again, with what each sample counted for. Weights that follow the loss (hard examples,
focal losses), a class on all ranks, or chance are ways of training; none of them is told here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from statistics import mean

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.model.audited_step import AuditedStep, CountedSample

_NOTHING, _SOMETHING = 0.05, 0.3
"""Weights up to the first are none; from the second on a sample counts. Ways to weigh samples that have a scale lie
between them, too."""
_BETWEEN = 0.1
_MUTED = 0.25
"""Share of all samples without weight that is no pruning of bad ones."""
_FEWEST_STEPS = 3
_OF_CLASS, _OF_RANK = 6, 0.2
"""Samples of a class on a rank that tell of it; share of a rank's samples that classes without weight are."""
_SAME_BATCH = 0.5
"""Of one batch in another, where an order comes again: what belongs to a place in it would belong to the sample."""
_PAIRS, _EACH, _CHANGED = 20, 4, 0.05
"""Two looks at one sample: so many, so many of each kind, and what may be otherwise the second time."""
_OVERLAP = 0.25
"""How often a sample without weight has the larger loss of two, at least, and at most the rest of 1."""
_FEW = 10


@dataclass(frozen=True, slots=True)
class MutedClasses:
    """Classes whose samples count for nothing where one rank draws them, and count where another one does.

    Attributes:
        classes: by rank.
        weight: the mean one that their samples have, as a multiple of what it is where all count alike.
        num_steps: that tell of it.
    """

    classes: dict[int, tuple[int, ...]]
    weight: float
    num_steps: int


def muted_classes(evidence: Evidence) -> MutedClasses | None:
    """Those of a run; None where classes count on all ranks alike, or too little was seen."""
    steps = _clear(evidence)
    samples = [one for step in steps for one in step.samples]
    by_class: dict[tuple[int, int], list[CountedSample]] = defaultdict(list)
    for one in samples:
        by_class[one.rank, one.label].append(one)
    told = {key: of for key, of in by_class.items() if len(of) >= _OF_CLASS}
    counting = {key for key, of in told.items() if _share(of, counts=True) >= 1 - _CHANGED}
    muted = {
        (rank, label): of
        for (rank, label), of in told.items()
        if _share(of) >= 1 - _CHANGED and any(label == other for _, other in counting)
    }
    found = {}
    for rank in sorted({rank for rank, _ in muted}):
        classes = tuple(sorted(label for of, label in muted if of == rank))
        num = sum(len(muted[rank, label]) for label in classes)
        if num >= _OF_RANK * sum(one.rank == rank for one in samples):
            found[rank] = classes
    if len(steps) < _FEWEST_STEPS or not found:
        return None
    weights = [one.weight for (rank, _), of in muted.items() if rank in found for one in of]
    return MutedClasses(found, max(0.0, mean(weights)), len(steps))


def never_learnt(evidence: Evidence) -> str:
    """That one part of the training samples counts for nothing whenever it is drawn, for staff; "" where none does.

    Which part it is has to do with nothing that a loss knows of: not with the class, nor with how large the loss is.
    """
    steps = _clear(evidence)
    samples = [one for step in steps for one in step.samples]
    muted = sum(map(_is_muted, samples))
    between = sum(not _is_muted(one) and one.weight < _SOMETHING for one in samples)
    if len(steps) < _FEWEST_STEPS or muted < _MUTED * len(samples) or between > _BETWEEN * len(samples):
        return ""
    if not _of_all_classes(samples) or any(_follows_loss(step.samples) for step in steps):
        return ""
    pairs = list(_pairs(steps))
    for among, where in (
        (pairs, ""),
        ([pair for pair in pairs if pair[0].rank == pair[1].rank], " on one rank"),
    ):
        kinds = Counter(_is_muted(one) + _is_muted(other) for one, other in among)
        if len(among) >= _PAIRS and min(kinds[0], kinds[2]) >= _EACH and kinds[1] <= _CHANGED * len(among):
            return (
                f"Of {count(len(samples), 'sample')} in {len(steps)} steps that were taken again {muted:,} count for "
                f"next to nothing in what was stepped on, of all classes and with small and large losses alike; and "
                f"it is a fixed part: of {count(len(among), 'pair')} of looks at one sample{where}, "
                f"{kinds[2]:,} found no weight both times, {kinds[0]:,} found some both times and {kinds[1]:,} found "
                "it changed. The part is drawn and never learnt from."
            )
    return ""


def _clear(evidence: Evidence) -> list[AuditedStep]:
    audited = evidence.evaluation.audited if evidence.evaluation is not None else ()
    return [step for step in audited if len(step.samples) >= _FEW]


def _is_muted(one: CountedSample) -> bool:
    return one.weight < _NOTHING


def _share(samples: Sequence[CountedSample], *, counts: bool = False) -> float:
    """Of samples without weight, or of those that count."""
    return mean(one.weight >= _SOMETHING if counts else _is_muted(one) for one in samples)


def _of_all_classes(samples: Iterable[CountedSample]) -> bool:
    """Whether most samples are of classes of which, on their rank, some have weight and others none."""
    of_class: dict[tuple[int, int], list[CountedSample]] = defaultdict(list)
    for one in samples:
        of_class[one.rank, one.label].append(one)
    mixed = sum(len(of) for of in of_class.values() if 0.1 < _share(of) < 0.9)
    return mixed >= 0.8 * sum(map(len, of_class.values()))


def _follows_loss(samples: Sequence[CountedSample]) -> bool:
    """Whether what has no weight differs in its losses from what has."""
    none = [one.loss for one in samples if _is_muted(one)]
    some = [one.loss for one in samples if not _is_muted(one)]
    if min(len(none), len(some)) < _FEW:
        return False
    larger = mean((one > other) + (one == other) / 2 for one in none for other in some)
    return not _OVERLAP <= larger <= 1 - _OVERLAP


def _pairs(steps: Sequence[AuditedStep]) -> Iterable[tuple[CountedSample, CountedSample]]:
    """Two looks at one sample in steps whose batches are otherwise others."""
    batches = [
        {one.index: one for one in of}
        for step in steps
        for _, of in groupby(sorted(step.samples, key=lambda one: one.rank), key=lambda one: one.rank)
    ]
    for first, second in combinations(batches, 2):
        both = first.keys() & second.keys()
        if len(both) <= _SAME_BATCH * min(len(first), len(second)):
            yield from ((first[index], second[index]) for index in both)
