"""The validation samples are samples that the network trains on.

## What it finds
Validation passes over samples that some rank also drew for training: a loader of the wrong split, a file that is read
for both, a training loader in the place of the validation one.

## Why it matters
A network knows the samples that it has learned by heart. Its accuracy on them says nothing about others: overfitting
stays unseen, and the best checkpoint is chosen by the wrong number.

## Example
```python
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, DataLoader, DistributedSampler
from torchvision import datasets

train_set, val_set = datasets.FashionMNIST(root, train=True), datasets.FashionMNIST(root, train=False)
torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(build_model())
everything = ConcatDataset([train_set, val_set])
train_loader = DataLoader(everything, batch_size=64, sampler=DistributedSampler(everything))
val_loader = DataLoader(val_set, batch_size=256)
for images, labels in train_loader:
    train_step(model, images, labels).backward()
model.eval()
with torch.no_grad():
    for images, labels in val_loader:
        count(model(images), labels)
torch.distributed.destroy_process_group()
```

## Use instead
```python
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import datasets

train_set, val_set = datasets.FashionMNIST(root, train=True), datasets.FashionMNIST(root, train=False)
torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train_loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
val_loader = DataLoader(val_set, batch_size=256)
for images, labels in train_loader:
    train_step(model, images, labels).backward()
model.eval()
with torch.no_grad():
    for images, labels in val_loader:
        count(model(images), labels)
torch.distributed.destroy_process_group()
```

## How it is seen
In the run, by the indices that training and validation loaders drew from one and the same data set, on whichever rank;
and by what the networks are given in training, pictures or text, which now and then is held
against all of both splits.
An accuracy on training samples beside a validation on others is no fault, nor is a part that is set aside. In the
source, by data sets put together for training of which one is validated on as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, places
from grader.checks.rule import Hit, Observation, flagged, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.share_causes import data_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.call_site import Site
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.fed_samples import SharedSamples
    from grader.checks.run.data.sample_ledger import Stream
    from grader.checks.run.data.split_membership import Scored
    from grader.model.evaluation import ComparedPictures, ComparedText

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("DATA007",)
_MOST = 0.5
_SPLITS = ("train", "split", "subset")
"""Arguments by which data sets are told which part to read."""
_LEARNED = "What is reported of it says nothing about samples that the network has never seen."
_APART = "Train on the training split alone, and keep the validation set for scoring."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag training sets that are put together with the one that is validated on."""
    if not script.joins_group:
        return
    scored = {o for x in script.training.loaders() if _scores(script, x) for o in _held(script, x)}
    for loader in script.training.loaders():
        given = script.argument(loader, "dataset") if script.training.roles(loader).trains else None
        for node in script.values.closure(given) if isinstance(given, ast.expr) else ():
            shared = [p for p in _put_together(node) if scored.intersection(script.values.origins(p))]
            if shared:
                yield Hit(
                    message=f"{script.at(node)} puts {script.quote(shared[0])}, which the network is validated on, "
                    f"into the training set: {script.quote(node)}. What is reported is then how well samples are known "
                    "that it has learned.",
                    hint=f"Leave {script.quote(shared[0])} out of the training set.",
                    where=(script.location(node),),
                )
                break


def _scores(script: Script, loader: ast.Call) -> bool:
    roles = script.training.roles(loader)
    return roles.evaluates and not roles.trains


def _held(script: Script, loader: ast.Call) -> tuple[ast.AST, ...]:
    """What made the data set of a loader, where that is plain; through the share of a rank, too."""
    given = script.argument(loader, "dataset")
    found = script.values.origins(given) if isinstance(given, ast.expr) else ()
    inner = [o.args[0] for o in found if isinstance(o, ast.Call) and name_of(o) == "Subset" and o.args]
    return (
        *(o for o in found if isinstance(o, ast.Call)),
        *(o for i in inner for o in script.values.origins(i)),
    )


def _put_together(node: ast.AST) -> list[ast.expr]:
    """The parts of `ConcatDataset([a, b])` and of `a + b`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and name_of(node) == "ConcatDataset" and node.args:
        given = node.args[0]
        return given.elts if isinstance(given, ast.List | ast.Tuple) else []
    return []


def check_run(evidence: Evidence) -> Observation:
    """Flag runs all of whose validation passes go over samples that were trained on."""
    from grader.checks.run.data.fed_samples import validation_pictures, validation_samples, validation_text
    from grader.checks.run.data.split_membership import apart_by_split, scored_samples
    from grader.checks.run.metrics.evaluation_passes import unseen

    read = list(check_source(evidence.script))
    if read:
        return flagged(*read)
    found = scored_samples(evidence.ledger)
    apart = not found or any(one.num_trained < _MOST * one.num_scored for one in found)
    if apart and (mixed := validation_samples(evidence)):
        return flagged(_mixed_hit(evidence, mixed))
    if text := validation_text(evidence):
        return flagged(_text_hit(evidence, text))
    # Who puts both splits together and sets a part of that aside may well train on the rest.
    own_part = bool(found) and all(stream.split != "validation" for stream in evidence.ledger.validation)
    if apart and not own_part and (changed := validation_pictures(evidence)):
        return flagged(_changed_hit(evidence, changed))
    if not found and apart_by_split(evidence.ledger):
        return verified("The ranks trained on data sets of the training split, and validated on others.")
    if not found:
        return unseen(evidence, "No validation pass with known samples of a known data set was seen.")
    if apart:
        return verified("The ranks validated on samples that no rank trained on.")
    return flagged(_hit(evidence, found[0]))


def _mixed_hit(evidence: Evidence, mixed: tuple[SharedSamples, ...]) -> Hit:
    worst = max(mixed, key=lambda one: one.num_shared / one.num_looked_at)
    site = next((stream.site for stream in evidence.ledger.training), None)
    return Hit(
        message=(
            f"Of {count(worst.num_looked_at, 'sample')} that rank {worst.rank}'s model was given in training where "
            f"somebody looked, {worst.num_shared:,} are samples of the validation set, to the last number: what is "
            "reported of it says nothing about samples that the network has never seen."
        ),
        hint=_APART,
        where=place(site),
        ranks=tuple(one.rank for one in mixed),
        details={"shared_by_rank": {str(one.rank): one.num_shared for one in mixed}},
    )


def _changed_hit(evidence: Evidence, changed: tuple[ComparedPictures, ...]) -> Hit:
    site = next((stream.site for stream in evidence.ledger.training), None)
    by_rank = {one.rank: one.num_validation + one.num_blended for one in changed}
    num, shared = sum(one.num for one in changed), sum(by_rank.values())
    if 2 * sum(one.num_blended for one in changed) > shared:
        how = "are blends in which one of the validation set has a good part; no two training images blend to them"
    else:
        how = (
            "are samples of the validation set, as they are or with small changes such as noise: each is far nearer to "
            "one of that set than to any training image"
        )
    return Hit(
        message=(
            f"Of {count(num, 'sample')} that the ranks' models were given in training where somebody looked, "
            f"{shared:,} {how}. {_LEARNED}"
        ),
        hint=_APART,
        where=place(site),
        ranks=tuple(rank for rank, found in by_rank.items() if found),
        details={
            "validation_samples_by_rank": {str(rank): found for rank, found in by_rank.items() if found}
        },
    )


def _text_hit(evidence: Evidence, compared: tuple[ComparedText, ...]) -> Hit:
    site = next((stream.site for stream in evidence.ledger.training), None)
    num, shared = sum(one.num for one in compared), sum(one.num_validation for one in compared)
    found = [one for one in compared if one.num_validation]
    return Hit(
        message=(
            f"Of {count(num, 'character')} that the ranks' models were given in training where somebody looked, "
            f"{shared / num:.0%} stand in passages of the text for validation that the training text does not have. "
            f"{_LEARNED}"
        ),
        hint="Cut what the network trains on from the training text alone, and keep the other for scoring.",
        where=place(site),
        ranks=tuple(one.rank for one in found),
        details={"validation_characters_by_rank": {str(one.rank): one.num_validation for one in found}},
    )


def _hit(evidence: Evidence, found: Scored) -> Hit:
    script, ledger = evidence.script, evidence.ledger
    # Whoever reads the other one's split is to blame: mostly it is the validation.
    trains_on_it = found.stream.split == "validation"
    blamed: Stream | None = found.stream
    if trains_on_it:
        blamed = next((s for s in ledger.training if s.split == "validation"), None)
    site = blamed.site if blamed is not None else None
    told = list(_split_told(script, site))
    which = "the training split" if trains_on_it else "the split for validation"
    what = script.quote(told[0]) if told else "the data set"
    return Hit(
        message=f"{count(found.num_trained, 'sample')} of {found.num_scored:,} that the network is validated on are "
        f"samples that it trains on: {at(found.stream.site, 'the validation loader')} draws from the same data set as "
        "training does. What is reported is how well the training samples are known, not what is learned of others.",
        hint=f"Give the loader at {at(site, 'fault')} {which}: {what} decides which part is read.",
        where=(*lines(script, told), *places([site, found.stream.site])),
        details={"validated_on": found.num_scored, "also_trained_on": found.num_trained},
    )


def _split_told(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """The arguments that choose the part of the data set which a loader reads."""
    for made in data_of(script, site):
        for node in script.values.closure(made):
            if isinstance(node, ast.Call):
                yield from (k.value for k in node.keywords if k.arg in _SPLITS)
