"""The plot of who saw which sample: every rank's share of the set, and a close-up over the epochs.

It makes three mistakes visible at a glance: ranks that draw the same samples, samples that nobody draws, and a split
that is the same in every epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from grader.judging.attempt import Attempt
from grader.report.plots.canvas import band, blocks, colour, draw_many, headline, rank_colour
from grader.report.plots.curves import Drawing
from grader.report.words.wording import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Epoch: TypeAlias = tuple[tuple[int, ...], ...]
"""Sample indices by rank."""

_WIDTH = 900
_SLICES = 150
_CLOSE_UP = 60
_MAX_EPOCHS = 6
_ROW = 24
_GAP, _FOOT = 72, 46
_HEAD = 26
_LEFT, _RIGHT = 76, 12


def coverage(attempt: Attempt) -> Drawing:
    """Rank × sample for the first epoch, and epoch × sample for the first samples of the set."""
    epochs = [tuple(tuple(i for i in shard if i >= 0) for shard in epoch) for epoch in attempt.coverage]
    epochs = [epoch for epoch in epochs if any(epoch)]
    if not epochs:
        return "", "Not drawn: the probe could not tell which samples the ranks trained on.", ()
    num_samples = _num_samples(attempt, epochs)
    num_ranks = len(epochs[0])
    shown = epochs[:_MAX_EPOCHS]
    top, bottom = num_ranks * _ROW, len(shown) * _ROW
    height = _HEAD + top + _GAP + bottom + _FOOT

    def paint(figure: Figure) -> None:
        width = (_WIDTH - _LEFT - _RIGHT) / _WIDTH
        upper = figure.add_axes((_LEFT / _WIDTH, (bottom + _FOOT + _GAP) / height, width, top / height))
        _paint_ranks(upper, epochs[0], num_samples)
        lower = figure.add_axes((_LEFT / _WIDTH, _FOOT / height, width, bottom / height))
        _paint_close_up(lower, shown, min(_CLOSE_UP, num_samples))

    summary = _summary(epochs, num_samples)
    legend = (
        *((f"rank-{rank % 8}", f"only rank {rank}") for rank in range(num_ranks)),
        *((("overlap", "several ranks"),) if num_ranks > 1 else ()),
        ("unseen", "no rank"),
    )
    svg = draw_many("plot-coverage", "Which rank saw which sample", summary, (_WIDTH, height), paint)
    return svg, summary, legend


def _num_samples(attempt: Attempt, epochs: Sequence[Epoch]) -> int:
    largest = max((max(shard) + 1 for epoch in epochs for shard in epoch if shard), default=1)
    loaders = [loader for rank in attempt.trace.ranks for loader in rank.loaders] if attempt.trace else []
    sizes = [loader.root_size for loader in loaders if loader.split == "train" and loader.root_size]
    return max([largest, *sizes])


def _owners(epoch: Epoch) -> dict[int, int]:
    """Sample → the rank that saw it, or −1 where several did."""
    owners: dict[int, int] = {}
    for rank, shard in enumerate(epoch):
        for index in set(shard):
            owners[index] = -1 if index in owners else rank
    return owners


def _paint_ranks(axes: Axes, epoch: Epoch, num_samples: int) -> None:
    owners = _owners(epoch)
    slices = min(_SLICES, num_samples)
    edges = [slices_edge * num_samples / slices for slices_edge in range(slices + 1)]
    # How many samples fall into each slice, by arithmetic: a forged trace may claim any size.
    starts = [-(-edge * num_samples // slices) for edge in range(slices + 1)]
    sizes = [after - before for before, after in pairwise(starts)]
    for rank, shard in enumerate(epoch):
        alone, shared = Counter[int](), Counter[int]()
        for index in set(shard):
            (shared if owners[index] < 0 else alone)[index * slices // num_samples] += 1
        base = len(epoch) - 1 - rank + 0.08
        both = [base + 0.84 * shared[i] / sizes[i] for i in range(slices)]
        top = [level + 0.84 * alone[i] / sizes[i] for i, level in enumerate(both)]
        band(axes, edges, [base] * slices, [base + 0.84] * slices, colour("unseen"))
        band(axes, edges, [base] * slices, both, colour("overlap"))
        band(axes, edges, both, top, rank_colour(rank))
    axes.set_xlim(0, num_samples)
    axes.set_ylim(0, len(epoch))
    axes.set_yticks(
        [len(epoch) - 0.5 - rank for rank in range(len(epoch))], [f"rank {r}" for r in range(len(epoch))]
    )
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("sample; where a row is filled to its top, the rank saw every sample there")
    headline(axes, "First epoch, whole training set")


def _paint_close_up(axes: Axes, epochs: Sequence[Epoch], num_samples: int) -> None:
    cells: dict[str, list[tuple[float, float]]] = {}
    for row, epoch in enumerate(epochs):
        owners = _owners(epoch)
        for index in range(num_samples):
            owner = owners.get(index)
            shade = (
                colour("unseen") if owner is None else colour("overlap") if owner < 0 else rank_colour(owner)
            )
            cells.setdefault(shade, []).append((index, len(epochs) - 1 - row))
    for shade, corners in cells.items():
        blocks(axes, ((x + 0.08, y + 0.1, x + 0.92, y + 0.9) for x, y in corners), shade)
    axes.set_xlim(0, num_samples)
    axes.set_ylim(0, len(epochs))
    rows = [len(epochs) - 0.5 - row for row in range(len(epochs))]
    axes.set_yticks(rows, [f"epoch {row}" for row in range(len(epochs))])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("sample; with reshuffling, each epoch looks different")
    headline(axes, f"Close-up: the first {num_samples} samples, epoch by epoch")


def _summary(epochs: Sequence[Epoch], num_samples: int) -> str:
    owners = _owners(epochs[0])
    num_shared = sum(owner < 0 for owner in owners.values())
    num_unseen = num_samples - len(owners)
    text = (
        f"In the first epoch {plural(len(owners) - num_shared, 'sample')} of {num_samples:,} went to exactly one rank, "
        f"{num_shared:,} to several and {num_unseen:,} to none."
    )
    if len(epochs) > 1 and len(epochs[0]) > 1 and num_shared < len(owners):
        same = all(
            [set(shard) for shard in epoch] == [set(shard) for shard in epochs[0]] for epoch in epochs[1:]
        )
        text += " The split is the same in every epoch." if same else " The split changes between epochs."
    return text
