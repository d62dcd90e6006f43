"""The validation samples are samples that the network trains on.

## What it finds
Validation passes over samples that some rank also drew for training: a loader of the wrong split, a file that is read
for both, a training loader in the place of the validation one.

## Why it matters
A network knows the samples that it has learned by heart. Its accuracy on them says nothing about others: overfitting
stays unseen, and the best checkpoint is chosen by the wrong number.

## Example
```python
def make_loader(split):
    data = datasets.FashionMNIST(root, train=split != "test", transform=transform)
    return DataLoader(data, batch_size=256)


val_loader = make_loader("val")
```

## Use instead
```python
def make_loader(split):
    data = datasets.FashionMNIST(root, train=split == "train", transform=transform)
    return DataLoader(data, batch_size=256)


val_loader = make_loader("val")
```

## How it is seen
In the run, by the indices that training and validation loaders drew from one and the same data set, on whichever rank.
An accuracy on training samples beside a validation on others is no fault, nor is a part that is set aside.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, places
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.run.sample_ledger import Stream
from grader.checks.run.split_membership import Scored, scored_samples
from grader.checks.source.causes import lines
from grader.checks.source.script import Script
from grader.checks.source.share_causes import data_of
from grader.model.finding import Severity
from grader.model.trace import Site

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("DATA007",)
_MOST = 0.5
_SPLITS = ("train", "split", "subset")
"""Arguments by which data sets are told which part to read."""


def check_run(evidence: Evidence) -> Observation:
    """Flag runs all of whose validation passes go over samples that were trained on."""
    found = scored_samples(evidence.ledger)
    if not found:
        return not_observable("No validation pass with known samples of a known data set was seen.")
    if any(one.num_trained < _MOST * one.num_scored for one in found):
        return verified("The ranks validated on samples that no rank trained on.")
    return flagged(_hit(evidence, found[0]))


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
