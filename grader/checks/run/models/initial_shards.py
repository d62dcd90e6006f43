"""Whether ranks drew the weights that they shard from unlike generators, and sent nothing before training."""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.phrases import ranks
from grader.checks.rule import Hit
from grader.checks.run.models.replica_comparison import sharded
from grader.checks.source.causes import stands_at
from grader.checks.source.models.broadcast_shards import broadcast_shards
from grader.checks.source.models.unsent_weights import shards_of_different_models
from grader.model.finding import Severity
from grader.model.trace import RankTrace

_SENDING = ("broadcast", "scatter")
_SENT = Severity.WARNING
"""Such a model trains, too, and most often as well as any other."""


def different_models(evidence: Evidence) -> Hit | None:
    """Shards of different models, where the text says how they came about and the run does not speak against it."""
    active, script = evidence.trace.trainers, evidence.script
    found = shards_of_different_models(script)
    if found is None or len(active) < 2 or not sharded(evidence.trace):
        return None
    states = [_state(rank) for rank in active]
    if not all(states) or len(set(states)) < len(states) or any(map(_sent_before_training, active)):
        return None
    return Hit(
        message=f"{ranks(r.rank for r in active)} came to the first batch with random generators in different states, "
        f"and nothing was sent before: {script.at(found.node)} {found.says}. Sharding sends no weights, so each rank "
        "trains its part of another model, and what is put together was never drawn as one.",
        hint=found.hint,
        fix=found.fix,
        where=(script.location(found.node),),
        ranks=tuple(r.rank for r in active),
        severity=found.severity,
    )


def sent_shards(evidence: Evidence) -> Hit | None:
    """Shards that one rank's took the place of: the text sends them, and the run came to that line on several ranks."""
    if not sharded(evidence.trace):
        return None
    for found in broadcast_shards(evidence.script):
        (call,) = found.nodes
        came = [
            rank.rank
            for rank in evidence.trace.ranks
            if any(
                "broadcast" in c.name and stands_at(evidence.script, call, c.site) for c in rank.collectives
            )
        ]
        if len(came) > 1:
            return Hit(
                found.says, found.hint, (evidence.script.location(call),), ranks=tuple(came), severity=_SENT
            )
    return None


def _state(rank: RankTrace) -> str:
    """The state of torch's generator at the first batch, as the run tells it; "" unknown."""
    told = next((e.fields.get("states") for e in rank.events("random")), None)
    state = told.get("torch") if isinstance(told, dict) else None
    return state if isinstance(state, str) else ""


def _sent_before_training(rank: RankTrace) -> bool:
    first = min((b.t for b in rank.batches), default=0.0)
    return any(c.t < first and any(word in c.name for word in _SENDING) for c in rank.collectives)
