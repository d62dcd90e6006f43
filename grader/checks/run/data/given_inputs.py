"""Ranks whose loaders bring different samples, and whose models are given the same all the same: one rank's batch.

By looks at what the models were called with, in steps with one batch and one look. Ranks that hold parts of one model
have to be given the same, and count as one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.models.replica_comparison import in_parts_by_hand
from grader.checks.source.causes import lines
from grader.checks.source.data.broadcast_batches import broadcast_batches
from grader.model.drawn_data import Batch
from grader.model.trace import RankTrace

_FEWEST = 4
"""Steps that have to be looked at."""
_SMALLEST = 4
_VARIED = 0.5
"""Share of the samples of all looks that are different ones: a constant input tells nothing of samples."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What one rank drew for a step, and what its model was given then."""

    drawn: tuple[int, ...]
    given: tuple[str, ...]


def given_alike(evidence: Evidence) -> Hit | None:
    """The finding about ranks that trained on one rank's batches in every step looked at."""
    trained = evidence.ledger.layout.one_each(evidence.trace.trainers)
    if len(trained) < 2 or in_parts_by_hand(evidence.trace) or evidence.script.meshes.may_share_batches:
        return None
    first, *others = (_looks(rank) for rank in trained)
    samples = [one for look in first.values() for one in look.given]
    if not samples or len(set(samples)) < _VARIED * len(samples):
        return None
    same = [trained[0].rank]
    steps = len(first)
    for rank, looks in zip(trained[1:], others, strict=True):
        common = first.keys() & looks.keys()
        alike = all(first[n].given == looks[n].given for n in common)
        apart = all(set(first[n].drawn) != set(looks[n].drawn) for n in common)
        if len(common) >= _FEWEST and alike and apart:
            same.append(rank.rank)
            steps = min(steps, len(common))
    return _hit(evidence, tuple(same), steps) if len(same) > 1 else None


def shared_openly(evidence: Evidence) -> bool:
    """Whether the text shows why: a broadcast of the batch, and gradients that were averaged all the same.

    Equal gradients of different indices are then a mistake that a finding tells, and nothing that was made up.
    """
    told = [r.steps for r in evidence.trace.trainers if r.steps]
    synced = all(steps[0].wraps and all(s.synced for s in steps) for steps in told)
    return (
        synced and given_alike(evidence) is not None and any(True for _ in broadcast_batches(evidence.script))
    )


def _looks(rank: RankTrace) -> dict[int, _Look]:
    """By step, where one batch was drawn, one look taken, and both have as many samples."""
    batches: dict[int, list[Batch]] = defaultdict(list)
    for one in passes_of(rank):
        for batch in one.batches if one.kind == "training" else ():
            batches[batch.step].append(batch)
    feeds: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for feed in rank.feeds:
        feeds[feed.step].append(feed.hashes)
    return {
        step: _Look(drawn[0].indices, looks[0])
        for step, looks in feeds.items()
        if len(drawn := batches.get(step, [])) == 1 == len(looks)
        and drawn[0].indices is not None
        and _SMALLEST <= len(drawn[0].indices) == len(looks[0])
    }


def _hit(evidence: Evidence, same: tuple[int, ...], steps: int) -> Hit:
    script = evidence.script
    sent = list(broadcast_batches(script))
    site = evidence.ledger.training[0].site if evidence.ledger.training else None
    cause = (
        f" {script.at(sent[0])}, {script.quote(sent[0])}, puts one rank's batch in its place." if sent else ""
    )
    hint = "Give each rank's model the batch that its own loader brings: ranks have to train on different samples."
    if sent:
        hint = (
            f"Take {script.quote(sent[0])} at {script.at(sent[0])} out: each rank trains on the batch that its own "
            "loader brings, and DDP averages the gradients. Broadcast weights, never batches."
        )
    return Hit(
        message=f"{ranks(same)} drew different samples ({at(site, 'the training loader')}), but their models were "
        f"given the same ones in each of {count(steps, 'step')} looked at.{cause} So {len(same)} ranks do the same "
        f"work {len(same)} times, and the samples of the others' shares are never trained on.",
        hint=hint,
        where=(*lines(script, sent), *place(site)),
        ranks=same,
        details={"steps": steps},
    )
