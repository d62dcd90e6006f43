"""A step of a run that was worked out again: whose samples the gradient came of that all ranks stepped on."""

from __future__ import annotations

from dataclasses import dataclass

FEW = 0.2
"""Of what a rank would have in an average: with less it has no part in it. Ranks of unequal batches have more."""


@dataclass(frozen=True, slots=True)
class CountedSample:
    """What one sample counted for in a step that was taken again.

    Attributes:
        rank: that drew it. index: in the training set; place: in what the rank drew for the step.
        label: as prepared for this attempt.
        weight: of its gradient in what was stepped on, as a multiple of what it has where all samples of its rank count
            alike; next to 0: nothing was learnt of it.
        loss: its cross-entropy before the step.
    """

    rank: int
    index: int
    place: int
    label: int
    weight: float
    loss: float


@dataclass(frozen=True, slots=True)
class AuditedStep:
    """One optimizer step, taken again with the weights that it was taken with and the data set's own samples.

    Attributes:
        n: which step, from 0. by: rank that told its weights and gradients.
        shares: by rank, of what came of the samples that it drew; together 1.
        fair: by rank, what it would be if every sample counted alike.
        unexplained: size of what comes of none of them, as a share of the whole: 0.01 where nothing is changed at
            random; augmentation and dropout leave a third, sometimes more.
        samples: those of which it can be told what they counted for; none where ranks' means explain the step, or
            samples, whatever they count for, do not.
    """

    n: int
    by: int
    shares: tuple[float, ...]
    fair: tuple[float, ...]
    unexplained: float
    samples: tuple[CountedSample, ...] = ()
