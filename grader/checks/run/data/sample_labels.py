"""Whether what came for an index is the same sample each time: its label, at least, is.

Images may be augmented beyond recognition, but whoever draws a sample twice gets one label. A data set of the script's
own may hold one rank's share, or deal out samples anew between passes: an index is the same sample on one rank, where
the data set is in the same state. A sentence for staff; "" where nothing is odd or nothing can be said.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.run.data.loader_passes import RankPass, passes_of

_FEWEST = 48
_MOST_OTHER = 0.3
"""Share of samples that may come with another label than before: labels are made noisy, to teach robustness."""


def changing_labels(evidence: Evidence) -> str:
    """Samples that were drawn several times and came with different labels."""
    if evidence.num_train is None:
        return ""
    told: dict[tuple[int, str, int | None, str, int], Counter[int]] = defaultdict(Counter)
    for rank in evidence.trace.ranks:
        for one in passes_of(rank):
            loader = one.loader
            if one.kind != "training" or loader is None:
                continue
            for batch in one.batches:
                if batch.indices and batch.labels and len(batch.indices) == len(batch.labels):
                    for index, label in zip(batch.indices, batch.labels, strict=True):
                        told[rank.rank, loader.dataset, loader.root_size, _state(one), index][label] += 1
    again = {sample: labels for sample, labels in told.items() if labels.total() > 1}
    num_labels = sum(labels.total() for labels in again.values())
    other = num_labels - sum(max(labels.values()) for labels in again.values())
    if len(again) < _FEWEST or other < _MOST_OTHER * num_labels / 2:
        return ""
    changed = sum(len(labels) > 1 for labels in again.values())
    return (
        f"Of {count(len(again), 'training sample')} that were drawn more than once where somebody looked, "
        f"{changed:,} came with another label the next time: what came was not what had been drawn."
    )


def _state(one: RankPass) -> str:
    """That of the data set; "" where nothing tells, or where it changes while samples are drawn."""
    return one.pass_.state or "" if one.pass_ is not None and not one.pass_.changed else ""
