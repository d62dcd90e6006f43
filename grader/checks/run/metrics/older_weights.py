"""Saved weights that are those of an earlier epoch than the report speaks for: of which, how bad, and what chose it."""

from __future__ import annotations

from collections.abc import Collection

from grader.checks.evidence import Evidence
from grader.checks.phrases import told_once
from grader.checks.rule import Hit
from grader.checks.run.metrics.metric_claims import MetricClaim
from grader.checks.run.metrics.score_reasons import WHAT_TO_WRITE
from grader.checks.source.causes import CauseInText, lines, stands_at, weight_saves
from grader.checks.source.files.save_conditions import round_chosen
from grader.checks.source.files.worst_kept import worst_kept
from grader.model.evaluation import Change
from grader.model.finding import EvidenceKind, Severity
from grader.model.metric import Metric

_STEPS = 10
"""Steps of a metric by which an older checkpoint may be worse than the report before it is more than a hint."""
_EQUAL = 1e-6
_LOSS = 0.01
"""How far the loss of one network may lie from itself: of a sum of other batches, in other precision."""


def epoch_of_same_figures(claim: MetricClaim, saved: Collection[int]) -> int | None:
    """The one epoch that was reported with just what the saved weights score, loss included where both are known.

    `saved`: epochs behind which the file may have been written; what came later can't be in it.
    """
    measured = claim.evaluation.validation.get("loss")
    alike = [
        number
        for number, (value, epoch) in enumerate(zip(claim.values, claim.epochs, strict=True))
        if number <= max(saved, default=number)
        and abs(value - claim.measured) <= _EQUAL
        and (measured is None or abs(epoch.get("val_loss", measured) - measured) <= _LOSS * abs(measured))
    ]
    return alike[0] if len(alike) == 1 else None


def older_weights(evidence: Evidence, claim: MetricClaim, epoch: int, allowed: float, also: str) -> Hit:
    """The finding; `allowed`: how far a right report may be off, `also`: what else the scorer found."""
    metric, values, script = claim.metric, claim.values, evidence.script
    written = evidence.written(claim.evaluation.artifact)
    cause = _chosen(evidence, claim, epoch)
    if epoch_of_same_figures(claim, [epoch]) == epoch:
        also = ""  # what another change of the scoring comes near to, the figures themselves have explained
    rank = f", the worst of {len(values)} by the report" if _is_worst(claim, epoch) else ""
    said = (
        f"`{claim.evaluation.artifact}` holds the weights of epoch {epoch}{rank}: they score {claim.exactly}, as was "
        f"reported of that epoch, and `metrics.json` goes on to {claim.said}. The curve ends with weights that were "
        "not saved."
    )
    slightly = metric.gain(metric.best(values), claim.measured) < _STEPS * metric.readable_step
    return Hit(
        message=" ".join(s for s in (said, also, cause.says if cause is not None else "") if s),
        hint=cause.hint if cause is not None else WHAT_TO_WRITE[Change.WEIGHTS],
        where=told_once((*lines(script, cause.nodes if cause is not None else ()), *written)),
        details={
            "reported": list(values),
            "measured": claim.measured,
            "tolerance": allowed,
            "metric": metric.name,
            "saved_epoch": epoch,
        },
        severity=Severity.HINT if slightly and not _missed_by_that(evidence, claim) else None,
        evidence=EvidenceKind.EVALUATION,
    )


def _is_worst(claim: MetricClaim, epoch: int) -> bool:
    """Whether an epoch was reported with the worst value of all, by that metric or by its loss."""
    losses = [e["val_loss"] for e in claim.epochs if "val_loss" in e]
    by_loss = len(losses) == len(claim.values) > 1 and losses[epoch] == max(losses)
    return by_loss or all(claim.metric.gain(v, claim.values[epoch]) > 0 for v in _others(claim, epoch))


def _others(claim: MetricClaim, epoch: int) -> list[float]:
    return [v for number, v in enumerate(claim.values) if number != epoch] or [claim.values[epoch]]


def _chosen(evidence: Evidence, claim: MetricClaim, epoch: int) -> CauseInText | None:
    """What in the text kept the weights of that epoch: a comparison the wrong way round, a test of the epoch."""
    worst = worst_kept(evidence.script) if _is_worst(claim, epoch) else None
    sites = [s.site for rank in evidence.trace.ranks for s in rank.saves if s.out and s.path.endswith(".pt")]
    saves = [n for n in weight_saves(evidence.script) if any(stands_at(evidence.script, n, s) for s in sites)]
    return worst or round_chosen(evidence.script, saves)


def _missed_by_that(evidence: Evidence, claim: MetricClaim) -> bool:
    """Whether what is asked for was missed, and reached by the report with the weights that were not saved."""
    metric: Metric = claim.metric
    asked, hidden = evidence.levels.get(metric.name), claim.evaluation.hidden.get(metric.name)
    best = metric.best(claim.values)
    if asked is None or hidden is None or metric.gain(best, claim.measured) <= 0:
        return False
    return metric.reached(best, asked) and not metric.reached(hidden, asked)
