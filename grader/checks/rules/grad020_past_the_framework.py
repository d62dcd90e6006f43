"""Training goes past the framework that was to drive it.

## What it finds
With Accelerate or Fabric in use: a model that is trained and that the framework never got, or got and gave back to
nobody; and, as a warning, `loss.backward()` on a model that it wrapped. With these and with transformers'
Trainer: a model that the script wraps by itself before it hands it to the framework.

## Why it matters
The framework averages gradients in the model that it gives back, and in no other: trained past it, each rank goes its
own way. Its `backward` scales the loss for float16, and that of Accelerate divides it for accumulation; a plain
`loss.backward()` does neither, and is right only as long as nobody turns one of them on. A model that was wrapped by
hand is wrapped once more, and its gradients exchanged twice; or the framework looks in vain for what stands behind the
wrapper: transformers' Trainer keeps those columns of the data that the model's `forward` names.

## Example
```python
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator()
model = torch.nn.Linear(784, 10).to(accelerator.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, shuffle=True)
optimizer, loader = accelerator.prepare(optimizer, loader)
for images, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    accelerator.backward(loss)
    optimizer.step()
```

## Use instead
```python
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator()
model = torch.nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for images, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    accelerator.backward(loss)
    optimizer.step()
```

## How it is seen
In the source alone: what `prepare` or `setup` takes and gives back is followed to where it was made. Where the
framework's object, or a part of what it gets, goes through code that was not handed in, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.libraries.framework_words import Words
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity

SEVERITY = Severity.WARNING
# Whether gradients are averaged after all, the run decides, and that is GRAD001's to say.


def check_source(script: Script) -> Iterable[Hit]:
    """Flag models that are trained outside the framework, and backward passes that are not its own."""
    yield from _wrapped_by_hand(script)
    words = script.frameworks.words
    if words is None or script.averaging.all or script.training.wraps:
        return
    told: set[ast.AST] = set()
    for backward in script.training.backwards:
        steps = script.updates.rounds(backward, script.updates.steps)
        outside = _outside(script, backward) if steps else None
        if outside is not None and outside[0] not in told:
            told.add(outside[0])
            yield _never_averaged(script, words, *outside)
        elif script.frameworks.bypassed(backward):
            yield Hit(
                message=f"{script.at(backward)} goes backward by itself, {script.quote(backward)}, through a model "
                f"that {words.name} wrapped. What its own `backward` would do, such as scaling the loss for float16, "
                "is left out as soon as it is asked for.",
                hint=f"Write `{words.called}.backward(loss)`.",
                where=(script.location(backward),),
                severity=Severity.WARNING,
            )


def _wrapped_by_hand(script: Script) -> Iterable[Hit]:
    """Models that come out of the script's own wrapper and go into a framework that wraps."""
    words = script.frameworks.spoken
    if words is None:
        return
    for call, given in script.frameworks.models:
        made = script.values.origins(given)
        wraps = [o for o in made if o in script.training.wraps and isinstance(o, ast.Call)]
        bare = {o for wrap in wraps for a in wrap.args[:1] for o in script.values.origins(a)}
        # The same model bare is left where there are no other ranks; of any other, nobody knows which one it is.
        if wraps and all(o in wraps or o in bare for o in made):
            yield Hit(
                message=f"{script.at(call)} hands {words.name} a model, {script.quote(given)}, that "
                f"{script.at(wraps[0])} has wrapped by hand. The framework wraps models by itself: this one it wraps "
                "once more, or it looks in vain for what stands behind the wrapper, as the arguments of `forward`.",
                hint=f"Hand it the plain model, and leave {script.quote(wraps[0])} out.",
                where=(script.location(wraps[0]),),
            )


def _outside(script: Script, backward: ast.Call) -> tuple[ast.Call, str] | None:
    """The first forward pass of a backward pass through a model that the framework doesn't hold, with the reason."""
    if script.calls_under("torch.distributed.") or script.mentioned("grad"):
        return None  # gradients or weights may be exchanged by hand
    for call in sorted(script.updates.forwards(backward), key=start):
        trained = not script.training.gradients_off(call) and script.networks.called(call) is not None
        why = script.frameworks.trained_outside(call) if trained else ""
        if why and _optimized(script, call):
            return call, why
    return None


def _optimized(script: Script, forward: ast.Call) -> bool:
    """Whether some optimizer steps the very network that a forward pass goes through."""
    made = set(script.values.origins(forward.func))
    for optimizer in script.updates.optimizers:
        given = optimizer.args[0] if optimizer.args else script.argument(optimizer, "params")
        func = given.func if isinstance(given, ast.Call) else None
        if (
            isinstance(func, ast.Attribute)
            and func.attr == "parameters"
            and made & set(script.values.origins(func.value))
        ):
            return True
    return False


def _never_averaged(script: Script, words: Words, forward: ast.Call, why: str) -> Hit:
    method = "prepare" if "prepare" in words.models else "setup"
    return Hit(
        message=f"{script.at(forward)} trains a model, {script.quote(forward)}, that {words.name} would wrap, but it "
        f"was {why}. Nothing averages its gradients: each rank trains one of its own.",
        hint=f"Train what it gives back: `model, optimizer = {words.called}.{method}(model, optimizer)`.",
        where=(script.location(forward),),
    )
