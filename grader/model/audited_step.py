"""A step of a run that was worked out again: whose samples the gradient came of that all ranks stepped on."""

from __future__ import annotations

from dataclasses import dataclass

FEW = 0.2
"""Of what a rank would have in an average: with less it has no part in it. Ranks of unequal batches have more."""


@dataclass(frozen=True, slots=True)
class AuditedStep:
    """One optimizer step, taken again with the weights that it was taken with and the data set's own samples.

    Attributes:
        n: which step, from 0. by: rank that told its weights and gradients.
        shares: by rank, of what came of the samples that it drew; together 1.
        fair: by rank, what it would be if every sample counted alike.
        unexplained: size of what comes of none of them, as a share of the whole: 0.01 where nothing is changed at
            random; augmentation and dropout leave a third, sometimes more.
    """

    n: int
    by: int
    shares: tuple[float, ...]
    fair: tuple[float, ...]
    unexplained: float
