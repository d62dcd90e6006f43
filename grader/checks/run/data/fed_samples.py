"""What the models were given in training: how much of what was drawn for them, and what else."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.run.data.loader_passes import passes_of
from grader.model.evaluation import ComparedPictures, ComparedText
from grader.model.trace import RankTrace

_NEARLY_ALL = 0.9
_ROUNDING = 0.02
_FEWEST_SHARED = 16
_SHARED = 0.05
"""Of what was looked at in training: a few images stand in both splits of a data set."""

_FEWEST_PICTURES = 4
_OF_PICTURES = 0.02
"""An image that stands in both splits is a training image there."""

_FEWEST_SYMBOLS = 200
_OF_TEXT = 0.05
"""Noise, joints and the like make of training texts less than a tenth of that."""


@dataclass(frozen=True, slots=True)
class FedSamples:
    """Of one rank in all steps: samples that training loaders gave, and those that its model was called with."""

    rank: int
    num_drawn: int
    num_fed: int


def unused_samples(evidence: Evidence) -> tuple[FedSamples, ...]:
    """Ranks whose models were given clearly less than what was drawn for them.

    Empty, too, where that can't be told: batches that come otherwise than one loader's before each step, or a model
    whose input does not have its samples along the first dimension, as its calls in validation tell.
    """
    training = {stream.site for stream in evidence.ledger.training}
    if len(training) != 1:
        return ()
    found = [_fed(evidence, rank) for rank in evidence.trace.trainers]
    return tuple(one for one in found if one is not None and one.num_fed < _NEARLY_ALL * one.num_drawn)


@dataclass(frozen=True, slots=True)
class SharedSamples:
    """Of one rank: samples that were looked at in training, and those of them that models were validated on as well."""

    rank: int
    num_looked_at: int
    num_shared: int


def validation_samples(evidence: Evidence) -> tuple[SharedSamples, ...]:
    """Ranks that trained on what validation sets hold, pixel by pixel, wherever it came from."""
    scored = {
        sample
        for rank in evidence.trace.ranks
        for event in rank.events("evaluated")
        if event.fields.get("validates", True)
        for sample in event.fields.get("hashes") or ()
    }
    found = []
    for rank in evidence.trace.trainers if scored else ():
        fed = [sample for feed in rank.feeds for sample in feed.hashes]
        shared = sum(sample in scored for sample in fed)
        if shared >= max(_FEWEST_SHARED, _SHARED * len(fed)):
            found.append(SharedSamples(rank.rank, len(fed), shared))
    return tuple(found)


def validation_pictures(evidence: Evidence) -> tuple[ComparedPictures, ...]:
    """What the ranks trained on, by the scorer's comparison; empty where next to none are validation images."""
    found = evidence.evaluation.pictures if evidence.evaluation is not None else ()
    num, shared = sum(one.num for one in found), sum(one.num_validation + one.num_blended for one in found)
    return found if shared >= max(_FEWEST_PICTURES, _OF_PICTURES * num) else ()


def validation_text(evidence: Evidence) -> tuple[ComparedText, ...]:
    """The same of text; empty where next to nothing of it stands in the text for validation alone."""
    found = evidence.evaluation.texts if evidence.evaluation is not None else ()
    num, shared = sum(one.num for one in found), sum(one.num_validation for one in found)
    return found if shared >= max(_FEWEST_SYMBOLS, _OF_TEXT * num) else ()


def _fed(evidence: Evidence, rank: RankTrace) -> FedSamples | None:
    drawn: dict[int, int] = defaultdict(int)
    for one in passes_of(rank):
        for batch in one.batches if one.kind == "training" else ():
            drawn[batch.step] += batch.size
    steps = [step for step in rank.steps if step.n in drawn]
    if len(steps) < _NEARLY_ALL * len(rank.steps) or not _by_sample(evidence, rank):
        return None
    return FedSamples(rank.rank, sum(drawn[step.n] for step in steps), sum(step.samples for step in steps))


def _by_sample(evidence: Evidence, rank: RankTrace) -> bool:
    """Whether a call of the model counts samples: outside training it counted as many as were drawn."""
    told = (e.fields.get("num_samples") for e in rank.events("evaluation") if e.fields.get("op") == "end")
    fed = sum(number for number in told if isinstance(number, int))
    ledger = evidence.ledger
    streams = (*ledger.validation, *ledger.of_kind("settling"))
    drawn = sum(s.num_samples for stream in streams for s in stream.shards(rank.rank))
    return fed > 0 and abs(fed - drawn) <= _ROUNDING * drawn
