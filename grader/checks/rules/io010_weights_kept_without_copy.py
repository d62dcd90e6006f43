"""The best weights are kept without a copy, so that they are always the last ones.

## What it finds
`best = model.state_dict()` in a loop that goes on training the same model, where `best` is saved or loaded afterwards.
`dict(model.state_dict())` and `{k: v for k, v in model.state_dict().items()}` are no copies either: they make another
dictionary of the same tensors.

## Why it matters
`state_dict()` holds the tensors of the model themselves. The next step changes them in place, and with them what was
kept: whatever epoch was the best, the weights in the file are those of the last one. Nothing fails, and the report
describes a network that was not saved.

## Example
```python
import torch

model = build_model()
best, best_state = 0.0, None
for epoch in range(10):
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    accuracy = validate(model)
    if accuracy > best:
        best = accuracy
        best_state = model.state_dict()
torch.save(best_state, "model.pt")
```

## Use instead
```python
import copy

import torch

model = build_model()
best, best_state = 0.0, None
for epoch in range(10):
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    accuracy = validate(model)
    if accuracy > best:
        best = accuracy
        best_state = copy.deepcopy(model.state_dict())
torch.save(best_state, "model.pt")
```

## How it is seen
In the source: a network's state dict that is kept under a condition, as it is, in a loop that steps the same network
(or in a callback that such a loop calls), and that is saved or loaded outside of that condition. Reference: "Saving
and Loading Models", https://pytorch.org/tutorials/beginner/saving_loading_models.html.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.files.kept_weights import kept_without_copy
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.model.finding import Severity

SEVERITY = Severity.WARNING


def check_source(script: Script) -> Iterable[Hit]:
    """Flag state dicts that training goes on to change."""
    for kept in kept_without_copy(script):
        edits = Edits(script)
        written = f"{edits.name('copy.deepcopy', kept.taken)}({edits.text(kept.taken)})"
        edits.replace(kept.kept, written)
        same = " A new dictionary still holds the same tensors." if kept.kept is not kept.taken else ""
        yield Hit(
            message=f"{script.at(kept.kept)} keeps {script.quote(kept.kept)} without a copy of its tensors: the next "
            f"step changes them in place, so that {script.at(kept.used)} gets the weights of the last epoch, "
            f"whichever was the best.{same}",
            hint=f"Keep a copy: `{written}`.",
            where=(script.location(kept.kept), script.location(kept.used)),
            fix=edits.fix("Keeps a copy of the weights."),
        )
