"""Forward passes outside training, as the probe told them: during which validation, through what, in which mode.

Facts for the rules about evaluation; none of them is right or wrong here.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.rule import Observation, not_observable, not_reached
from grader.checks.run.endings.end_counts import end_count
from grader.model.call_site import Site
from grader.model.run import Ending
from grader.model.trace import Event, RankTrace


def begun_evaluations(rank: RankTrace) -> list[Event]:
    """The beginning of each run of evaluating forward passes."""
    return [e for e in rank.events("evaluation") if e.fields.get("op") == "begin"]


def through_wrapper(rank: RankTrace) -> list[Event]:
    """Those that went through the DistributedDataParallel wrapper."""
    return [e for e in begun_evaluations(rank) if e.fields.get("through_wrapper") is True]


def during_validation(evidence: Evidence, rank: RankTrace) -> list[Event]:
    """Those that began while a validation set was being drawn from."""
    windows = [
        (s.start_t, s.end_t) for stream in evidence.ledger.validation for s in stream.shards(rank.rank)
    ]
    return [e for e in begun_evaluations(rank) if any(start <= e.t <= end for start, end in windows)]


def of_validations_size(evidence: Evidence, rank: RankTrace) -> list[Event]:
    """Those that took as many samples as the validation split has, or a rank's share of it, where no loader drew it."""
    total, shares = evidence.num_validation, evidence.world_size
    if not total or evidence.ledger.validation or evidence.num_train == total:
        return []
    sizes = {total, total // shares, -(-total // shares)}
    found: list[Event] = []
    begun: Event | None = None
    for event in rank.events("evaluation"):
        if event.fields.get("op") == "begin":
            begun = event
        elif begun is not None and event.fields.get("num_samples") in sizes:
            found.append(begun)
    return found


def validated_as_training(evidence: Evidence) -> tuple[dict[int, int], Site | None]:
    """Ranks that ran validation batches through the network in training mode with gradients on.

    Such passes look like training without steps, so no event tells of them; but a rank whose network ran at least once
    per batch of both kinds, and never in evaluation, can have done it in no other way.

    Returns:
        Rank → validation batches, and the line that draws them.
    """
    found: dict[int, int] = {}
    site: Site | None = None
    for rank in evidence.trace.ranks:
        forwards = end_count(rank, "forwards")
        if forwards is None or rank.events("evaluation"):
            continue
        trained = [s for stream in evidence.ledger.training for s in stream.shards(rank.rank)]
        validated = [s for stream in evidence.ledger.validation for s in stream.shards(rank.rank)]
        drawn = sum(s.num_batches for s in (*trained, *validated))
        if trained and validated and forwards >= drawn:
            found[rank.rank] = sum(s.num_batches for s in validated)
            site = site or validated[0].site
    return found, site


def unseen(evidence: Evidence, reason: str) -> Observation:
    """What is said where no validation could be looked at: that nobody could, or that there was none."""
    if _none(evidence):
        return not_reached(
            "Nothing was validated: no sample of the validation set was drawn, and the network ran in training alone. "
            "First let the ranks score the network on the validation set."
        )
    return not_observable(reason)


def _none(evidence: Evidence) -> bool:
    """Whether each forward pass of every rank was one of training, and no reported figure says otherwise."""
    ranks = evidence.trace.trainers
    if not ranks or evidence.record.ending is not Ending.COMPLETED or evidence.ledger.validation:
        return False
    evaluation = evidence.evaluation
    if evaluation is not None and evaluation.reported is not None:
        for metric in evidence.metrics:
            scored = evaluation.validation.get(metric.name)
            told = evaluation.reported.values(metric)
            if any(scored is None or abs(value - scored) <= metric.tolerance(0) for value in told):
                return False
    return all(map(_trained_alone, ranks))


def _trained_alone(rank: RankTrace) -> bool:
    forwards, backwards = end_count(rank, "forwards") or 0, end_count(rank, "backwards")
    return backwards is not None and 0 < forwards <= backwards and not rank.events("evaluation")
