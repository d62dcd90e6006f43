"""Steps that ranks trained with the whole network in evaluation mode, as the probe told them.

Facts alone; whether somebody meant it so is the rule's matter.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.model.call_site import Site
from grader.model.trace import Event


@dataclass(frozen=True, slots=True)
class EvaluationModeSteps:
    """Steps in evaluation mode, of all ranks that took any.

    Attributes:
        steps: rank → numbers of these steps. num_steps: of such a rank, all it took.
        others: ranks that took none.
        epochs: in which they were; empty where it isn't known where epochs begin.
        from_start: no step before them was in training mode.
        site, left: lines that ran the network, and that called `eval`; None unknown.
        num_batchnorm, num_dropout: layers that act otherwise in evaluation mode.
        untracked: BatchNorm layers still held the statistics of a new network.
    """

    steps: dict[int, tuple[int, ...]]
    num_steps: int
    others: tuple[int, ...]
    epochs: tuple[int, ...]
    from_start: bool
    site: Site | None
    left: Site | None
    num_batchnorm: int
    num_dropout: int
    untracked: bool

    @property
    def effect(self) -> str:
        """What that did to the network, as a part of a sentence."""
        new = ", so that they are still those of a new network" if self.untracked else ""
        layers = [
            f"its {count(self.num_batchnorm, 'BatchNorm layer')} normalised by running statistics, not by those of "
            f"each batch, and learned none{new}"
            if self.num_batchnorm
            else "",
            f"its {count(self.num_dropout, 'layer')} with dropout dropped nothing"
            if self.num_dropout
            else "",
        ]
        return (
            "; ".join(filter(None, layers)) or "its layers compute alike in both modes; the next one may not"
        )


def evaluation_mode_steps(evidence: Evidence) -> EvaluationModeSteps | None:
    """All of a run; None where there was none."""
    ranks = evidence.trace.trainers
    steps = {r.rank: tuple(s.n for s in r.steps if s.evaluation_mode) for r in ranks}
    asleep = [r for r in ranks if steps[r.rank]]
    if not asleep:
        return None
    told = [event for rank in asleep for event in rank.events("trained_in_evaluation")]
    return EvaluationModeSteps(
        steps={r.rank: steps[r.rank] for r in asleep},
        num_steps=max(len(r.steps) for r in asleep),
        others=tuple(r.rank for r in ranks if not steps[r.rank]),
        epochs=tuple(sorted({e for r in asleep for e in _epochs(evidence, r.rank, steps[r.rank])})),
        from_start=all(r.steps[0].evaluation_mode for r in asleep),
        site=next((event.site for event in told if event.site is not None), None),
        left=next((site for event in told if (site := _left(event)) is not None), None),
        num_batchnorm=max((_number(event, "num_batchnorm") for event in told), default=0),
        num_dropout=max((_number(event, "num_dropout") for event in told), default=0),
        untracked=any(event.fields.get("untracked") is True for event in told),
    )


def _epochs(evidence: Evidence, rank: int, steps: tuple[int, ...]) -> set[int]:
    stream = next((s for s in evidence.ledger.training if s.exact and s.shards(rank)), None)
    if stream is None:
        return set()
    begun = [(s.start_t, epoch.number) for epoch in stream.epochs for s in epoch.shards if s.rank == rank]
    times = {s.n: s.t for r in evidence.trace.trainers if r.rank == rank for s in r.steps}
    starts = [t for t, _ in begun]
    places = {bisect_right(starts, times[n]) for n in steps}
    return {begun[place - 1][1] for place in places if place}


def _left(event: Event) -> Site | None:
    match event.fields.get("left"):
        case [str(path), int(line), str(function)]:
            return Site(path, line, function)
    return None


def _number(event: Event, name: str) -> int:
    told = event.fields.get(name)
    return told if isinstance(told, int) else 0
