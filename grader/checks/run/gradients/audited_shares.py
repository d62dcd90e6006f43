"""Ranks whose samples, or some of them, have no part in what all ranks stepped on, by steps that were taken again."""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, first_known, listed, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.gradients.counted_samples import muted_classes
from grader.checks.run.models.replica_comparison import compare_parameters
from grader.checks.source.causes import lines
from grader.model.audited_step import FEW, AuditedStep
from grader.model.call_site import Site
from grader.model.trace import RankTrace

_CLEAR = 0.75
"""What may come of no rank's samples, for the parts of the others to mean something."""
_FEWEST_STEPS = 3
_OFTEN = 0.5


@dataclass(frozen=True, slots=True)
class RanksWithoutPart:
    """What the steps say that were taken again.

    Attributes:
        ranks: whose samples had no part in them. share: the largest that one of them had.
        num_steps: at how many it was so; num_audited: how many say anything.
    """

    ranks: tuple[int, ...]
    share: float
    num_steps: int
    num_audited: int


def of_other_samples(
    evidence: Evidence, trainers: tuple[RankTrace, ...], exchange: Site | None
) -> Hit | None:
    """All step on the same gradients, which did not come of the samples that some of them drew.

    Args:
        trainers: whose gradients should be averaged; exchange: where they are exchanged, if that is known.
    """
    found = left_out(evidence)
    # Replicas that come apart say more plainly what is wrong (GRAD007).
    if found is None or compare_parameters(evidence.trace).difference is not None:
        return None
    whose = ranks(found.ranks).lower() if len(found.ranks) < len(trainers) else "one of the ranks"
    return Hit(
        message=(
            f"Of {count(found.num_audited, 'step')} that were taken again, from the same weights and with the samples "
            f"that each rank drew, {found.num_steps} led elsewhere: in the gradients that were stepped on there, what "
            f"comes of the samples that {whose} drew has a share of {found.share:.0%} at most. In an average of "
            f"{len(trainers)} it is {1 / len(trainers):.0%}."
        ),
        hint="On each rank, give the network the batch that the rank's own loader gives, go backward from the whole "
        "loss, and step on the average of all ranks' gradients: of every parameter, in every step.",
        where=place(exchange) or place(first_known([s.site for s in trainers[0].steps])),
        ranks=found.ranks,
        details={"steps": found.num_steps, "audited": found.num_audited},
    )


def without_classes(evidence: Evidence, exchange: Site | None) -> Hit | None:
    """Classes that a rank draws and gives no weight, while others do.

    Args:
        exchange: where gradients are exchanged, if that is known.
    """
    found = muted_classes(evidence)
    if found is None or compare_parameters(evidence.trace).difference is not None:
        return None
    told = [f"of {_classes(classes)} on rank {rank}" for rank, classes in found.classes.items()]
    backwards = evidence.script.training.backwards
    return Hit(
        message=(
            f"In {count(found.num_steps, 'step')} that were taken again, from the same weights and with the samples "
            f"that each rank drew, samples {listed(told)} counted for {found.weight:.1%} of what they do where all "
            "samples count alike; on other ranks the same classes count in full. So these samples are drawn, and next "
            "to nothing is learnt from them: the loss weighs classes by rank, and the average of such gradients is not "
            "that of the batch of all ranks."
        ),
        hint="Weigh classes alike on all ranks. Where some are rare, count the labels of the whole training set, not "
        "of this rank's share: `counts = torch.bincount(torch.as_tensor(train_set.targets))`, "
        "`weight = counts.sum() / (len(counts) * counts)`, and give that to the loss.",
        where=lines(evidence.script, tuple(backwards[:1])) or place(exchange),
        ranks=tuple(found.classes),
        details={"steps": found.num_steps, "weight": round(found.weight, 4)},
    )


def _classes(labels: tuple[int, ...]) -> str:
    return f"class {labels[0]}" if len(labels) == 1 else f"classes {listed(labels)}"


def left_out(evidence: Evidence) -> RanksWithoutPart | None:
    """The ranks that are left out at half of the steps or more; None where there are none, or too few steps tell."""
    audited = evidence.evaluation.audited if evidence.evaluation is not None else ()
    clear = [step for step in audited if step.unexplained <= _CLEAR]
    found = {step.n: out for step in clear if (out := _without_part(step))}
    if len(found) < _FEWEST_STEPS or len(found) < _OFTEN * len(clear):
        return None
    out_ranks = tuple(sorted({rank for out in found.values() for rank in out}))
    return RanksWithoutPart(
        out_ranks, max(max(out.values()) for out in found.values()), len(found), len(clear)
    )


def _without_part(step: AuditedStep) -> dict[int, float]:
    """By rank, the share of those that have next to none."""
    pairs = enumerate(zip(step.shares, step.fair, strict=True))
    return {rank: abs(share) for rank, (share, fair) in pairs if share < FEW * fair}
