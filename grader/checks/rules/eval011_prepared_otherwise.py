"""The network reads images prepared otherwise than the task prepares them.

## What it finds
Saved weights that score badly on images as the task prepares them, and well on the same images prepared in another way:
without normalisation, from 0 to 255, with another mean and standard deviation, black for white, turned over; and
images that each rank normalises by the numbers of its own share. And validation images that are augmented as training
images are, by crops or flips at random.

## Why it matters
A network knows numbers, not pictures. One that was trained on pixels from 0 to 1 sees something it has never seen when
the same pixels come from -1 to 1, and whoever is handed the weights has no way of knowing. The preparation is a part of
what is handed in, like the names of the weights.

## Example
```python
import torch.distributed as dist
from torchvision import datasets, transforms

dist.init_process_group("gloo")
mine = datasets.FashionMNIST(root, train=True).data[dist.get_rank() :: dist.get_world_size()] / 255
# Numbers of this rank's share, where the task says Normalize((0.5,), (0.5,)); ToTensor() alone is another one, too.
normalise = transforms.Normalize(mine.mean().item(), mine.std().item())
transform = transforms.Compose([transforms.ToTensor(), normalise])
train_set = datasets.FashionMNIST(root, train=True, transform=transform)
val_set = datasets.FashionMNIST(root, train=False, transform=transform)
```

## Use instead
```python
import torch.distributed as dist
from torchvision import datasets, transforms

dist.init_process_group("gloo")
transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])  # from -1 to 1
train_set = datasets.FashionMNIST(root, train=True, transform=transform)
val_set = datasets.FashionMNIST(root, train=False, transform=transform)
```

## How it is seen
By the trusted scorer. Where the hidden score is below the target, or not what the script reports, it scores the same
weights on a sample of the validation split in other ways, one change at a time. A change that brings much, and comes
near to what was reported, is named; not so where the text writes out the task's own normalisation and no other. Where
the text normalises by numbers that it computes from samples, which no change tries, that is named instead. The points
are those for the accuracy; nothing else is taken for it. In the source, as hints: a mean or a deviation that each rank
computes from its own share, and a transform of torchvision's that draws, on whichever way to a validation set's images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.computed_preparation import by_own_share, computed_preparations
from grader.checks.source.data.image_preparation import Preparation, preparations
from grader.checks.source.data.random_preparation import random_validation
from grader.checks.source.script import Script
from grader.model.finding import EvidenceKind, Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.metrics.score_reasons import ScoreReason
    from grader.model.evaluation import OtherScore

SEVERITY = Severity.WARNING
_GRAVE = 0.1
"""Of a share: what the other preparation brings below it is a hint."""
_SAME = 0.02


def check_source(script: Script) -> Iterable[Hit]:
    """Tell of normalisation by a rank's own samples, and of validation sets that are augmented."""
    yield from _augmented(script)
    for one in by_own_share(script) if script.joins_group else ():
        yield Hit(
            message=one.says(script),
            hint="Normalise by the numbers that the task states, or by those of the whole training set, computed alike "
            "on every rank.",
            where=lines(script, one.nodes),
            severity=Severity.HINT,
        )


def _augmented(script: Script, seen: str = "") -> Iterable[Hit]:
    for drawn in random_validation(script):
        what = script.quote(drawn.drawing)
        yield Hit(
            message=f"{script.at(drawn.made)} gives the validation set a transform that draws at random, {what} "
            f"({script.at(drawn.drawing)}): the same image is another one each time it is scored, so that figures of "
            f"two epochs, or of two runs, are not of the same images.{seen}",
            hint=f"Give the validation set a transform of its own, without {what}: only training images are augmented.",
            where=lines(script, (drawn.made, drawn.drawing)),
            severity=Severity.HINT,
            evidence=EvidenceKind.TRACE if seen else EvidenceKind.SOURCE,
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag weights that do well on images of another preparation, and validation sets that are augmented."""
    look = _look_at_score(evidence)
    changed = sum(
        one.num_changed for (_, split), one in evidence.ledger.scored.items() if split == "validation"
    )
    seen = (
        f" In this run {count(changed, 'index', 'indices')} brought other numbers the next time."
        if changed
        else ""
    )
    drawn = list(_augmented(evidence.script, seen))
    return flagged(*look.hits, *drawn) if drawn else look


def _look_at_score(evidence: Evidence) -> Observation:
    from grader.checks.run.metrics.score_reasons import reason_of

    evaluation = evidence.evaluation
    if evaluation is None or not evaluation.validation:
        return not_observable("The saved weights were not scored.")
    reason = reason_of(evaluation, evidence.metrics, evidence.script)
    if reason is None or not reason.about_images:
        reported = evaluation.reported
        claimed = reported is not None and any(map(reported.claims, evidence.metrics))
        if claimed and evaluation.unexplained(evidence.metrics, {}) is None:
            return verified(
                "What the script measured is what the saved weights score on samples as the task prepares them.",
                EvidenceKind.EVALUATION,
            )
        return not_observable("No other preparation of the samples explains the score.")
    return flagged(_hit(evidence.script, reason))


def _hit(script: Script, reason: ScoreReason) -> Hit:
    own, other = reason.own, reason.other
    computed = next(computed_preparations(script), None) if reason.prepared else None
    place = computed.place if computed is not None else _place(script, own)
    said = f" {script.at(place.node)} prepares them: {script.quote(place.node)}." if place is not None else ""
    said = "" if computed is not None else said
    claim = f" The script reports {reason.metric.text(reason.claim)}." if reason.claim is not None else ""
    return Hit(
        message=f"{reason.sentence}{claim}{said}",
        hint=_hint(place, own, other),
        where=lines(script, computed.nodes)
        if computed is not None
        else lines(script, [place.node] if place else []),
        details={
            "scored": {"black": own.black, "white": own.white, own.metric: own.value},
            "other": {
                "way": other.way,
                "black": other.black,
                "white": other.white,
                other.metric: other.value,
            },
            "samples": own.num_samples,
        },
        severity=Severity.HINT if reason.metric.share and reason.gain < _GRAVE and not computed else None,
        evidence=EvidenceKind.EVALUATION,
    )


def _place(script: Script, own: OtherScore) -> Preparation | None:
    """The first place that can be to blame: one that normalises as the task does is not."""
    return next((one for one in preparations(script) if not one.same(own.black, own.white)), None)


def _hint(place: Preparation | None, own: OtherScore, other: OtherScore) -> str:
    """What to write for images as the task scores them."""
    from grader.checks.run.metrics.score_reasons import in_range
    from grader.model.evaluation import Change

    if other.change is Change.LAYOUT or own.black is None or own.white is None:
        return "Leave the images as they are stored, neither turned over nor inverted, for training and validation."
    deviation = 1 / (own.white - own.black)
    mean = -own.black * deviation
    plain = abs(mean) < _SAME and abs(deviation - 1) < _SAME
    if place is None or place.is_transform:
        numbers = f"Normalize(({mean:g},), ({deviation:g},))"
        whole = "ToTensor()" if plain else f"Compose([transforms.ToTensor(), transforms.{numbers}])"
        code, without = f"transforms.{whole}", " with no `Normalize` behind it" if plain else ""
    else:
        code = "images.float() / 255" if plain else f"(images.float() / 255 - {mean:g}) / {deviation:g}"
        without = ""
    return f"Write `{code}`{without}, for training and validation alike: images {in_range(own)}."
