"""Which epochs of a report speak for the saved weights, and how far their figures may lie from the measure."""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.metrics.validation_passes import divided_passes
from grader.model.metric import Metric


def claimed_epochs(epochs: list[dict[str, float]], metric: Metric) -> set[int]:
    """Epochs that a report stands for: the last, and the best by what it says of the metric and of the loss."""
    told = [epoch[metric.reported_as] for epoch in epochs]
    found = {len(epochs) - 1, told.index(metric.best(told))}
    if all("val_loss" in epoch for epoch in epochs):
        found.add(min(range(len(epochs)), key=lambda i: epochs[i]["val_loss"]))
    return found


def saved_epochs(evidence: Evidence, num_epochs: int) -> set[int]:
    """Epochs behind which the scored weights were written, by their fingerprint; else behind which any file was."""
    sums = evidence.evaluation.sums if evidence.evaluation is not None else ()
    found: set[int] = set()
    scored: set[int] = set()
    for rank in evidence.trace.ranks:
        begun = [p.batches[0].t for p in passes_of(rank) if p.kind == "training"]
        for save in rank.saves:
            epoch = sum(t < save.t for t in begun) - 1
            if save.out and 0 <= epoch < num_epochs:
                found.add(epoch)
                if sums and save.sums == sums:
                    scored.add(epoch)
    return scored or found


def tolerance(evidence: Evidence, metric: Metric) -> float:
    """The metric's, and three times that where ranks scored their parts with BatchNorm statistics of their own."""
    base = metric.tolerance(evidence.evaluation.num_validation if evidence.evaluation is not None else 0)
    # Statistics of BatchNorm are each rank's own unless the wrapper sends rank 0's around before a forward pass.
    own_statistics = any(
        w.num_batchnorm > w.num_sync_batchnorm for r in evidence.trace.ranks for w in r.wraps
    )
    divided = any(divided_passes(evidence.ledger, s) for s in evidence.ledger.validation)
    return 3 * base if own_statistics and divided else base
