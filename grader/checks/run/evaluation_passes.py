"""Forward passes outside training, as the probe told them: during which validation, through what, in which mode.

Facts for the rules about evaluation; none of them is right or wrong here.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.model.call_site import Site
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
        end = next(iter(rank.events("end")), None)
        forwards = end.fields.get("forwards") if end is not None else None
        if not isinstance(forwards, int) or rank.events("evaluation"):
            continue
        trained = [s for stream in evidence.ledger.training for s in stream.shards(rank.rank)]
        validated = [s for stream in evidence.ledger.validation for s in stream.shards(rank.rank)]
        drawn = sum(s.num_batches for s in (*trained, *validated))
        if trained and validated and forwards >= drawn:
            found[rank.rank] = sum(s.num_batches for s in validated)
            site = site or validated[0].site
    return found, site
