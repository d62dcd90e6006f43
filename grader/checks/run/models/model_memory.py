"""What each rank held of the trained model: bytes of parameters and optimizer state, its own and the whole's."""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.run.models.parallel_layout import sharding_wraps
from grader.model.trace import Event, Trace, Wrap


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """One rank's part; bytes. `whole` is what parameters and state would take unsharded.

    `copies` is how often plain tensors of this rank have nearly the whole model beside its shards, `copied` the bytes
    of these.
    """

    num_tensors: int
    num_sharded: int
    param_bytes: int
    state_bytes: int
    whole: int
    copies: int = 0
    copied: int = 0

    @property
    def share(self) -> float:
        """Its part of the whole, 0–1."""
        return (self.param_bytes + self.state_bytes) / self.whole


def model_memory(trace: Trace) -> dict[int, ModelMemory]:
    """Rank → what its largest optimizer stepped over; ranks that did not tell are missing."""
    found = {}
    for rank in trace.ranks:
        told = [h for e in rank.events("held") if (h := _holding(e)) is not None]
        if told:
            found[rank.rank] = max(told, key=lambda h: h.whole)
    return found


def beside_the_shards(trace: Trace) -> dict[int, Wrap]:
    """Rank → the last unit it gave to `fully_shard`, where no optimizer of it steps over a shard of any."""
    found = {}
    for rank in trace.ranks:
        units = [
            w for w in sharding_wraps(rank) if w.kind == "fsdp2"
        ]  # its shards alone are told from plain tensors
        told = [h for e in rank.events("held") if (h := _holding(e)) is not None]
        if units and told and not any(h.num_sharded for h in told):
            found[rank.rank] = units[-1]
    return found


def _holding(event: Event) -> ModelMemory | None:
    names = (
        "num_tensors",
        "num_sharded",
        "param_bytes",
        "state_bytes",
        "whole_param_bytes",
        "whole_state_bytes",
    )
    values = [event.fields.get(name) for name in names] + [
        event.fields.get(name, 0) for name in ("whole_copies", "copied_bytes")
    ]
    if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in values):
        return None
    tensors, sharded, own, state, whole_own, whole_state, copies, copied = (int(v or 0) for v in values)
    whole = whole_own + whole_state
    return ModelMemory(tensors, sharded, own, state, whole, copies, copied) if whole else None
