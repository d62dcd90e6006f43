"""A gradient scaler where none is needed, or none where one is.

## What it finds
A `GradScaler` beside autocast in bfloat16, and autocast in float16 without any scaler.

## Why it matters
float16 has few exponents: small gradients vanish unless the loss is scaled up first. bfloat16 has as many as
float32, so that scaling only costs time and skipped steps.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
scaler = torch.amp.GradScaler("cuda")
for images, labels in train_loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
for images, labels in train_loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
```

## How it is seen
In the source alone, where the type given to autocast is one and the same for sure. A scaler that is enabled by a
condition is taken to fit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.rule import Hit
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import Severity

SEVERITY = Severity.HINT
_AUTOCASTS = (
    "torch.autocast",
    "torch.amp.autocast",
    "torch.cuda.amp.autocast",
    "torch.amp.autocast_mode.autocast",
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag scalers and types that don't fit."""
    if script.training.framework or not script.training.trains or not script.mentions_distributed:
        return
    casts = [c for c in script.calls(*_AUTOCASTS) if _switch(script, c) is not False]
    scalers = script.called_like(lambda name: name.endswith("GradScaler"))
    types = [_dtype(script, c) for c in casts]
    if scalers and casts and all(t == "bfloat16" for t in types):
        if all(_switch(script, s) is True or _same_switch(script, s, casts) for s in scalers):
            yield Hit(
                message=f"{script.at(scalers[0])} scales the loss, but {script.at(casts[0])} computes in bfloat16, "
                "whose range is that of float32: scaling costs time and skips steps for nothing.",
                hint="Leave the scaler out: `loss.backward()` and `optimizer.step()`.",
                where=(script.location(scalers[0]),),
            )
    elif not scalers and not script.mentioned("scale") and not script.names.foreign:
        for cast, kind in zip(casts, types, strict=True):
            if (
                kind == "float16"
                and _switch(script, cast) is True
                and not script.training.gradients_off(cast)
            ):
                yield Hit(
                    message=f"{script.at(cast)} computes in float16, and nothing scales the loss: small gradients "
                    "become zero before anybody steps on them.",
                    hint="Scale the loss with `torch.amp.GradScaler`, or compute in `torch.bfloat16`.",
                    where=(script.location(cast),),
                )


def _switch(script: Script, call: ast.Call) -> object:
    given = script.argument(call, "enabled")
    return True if given is None else script.values.constant(given)


def _same_switch(script: Script, scaler: ast.Call, casts: list[ast.Call]) -> bool:
    """Whether scaler and computing type are switched by one expression: where the one is on, so is the other."""
    given = script.given(scaler, "enabled")
    switches = [script.argument(c, "enabled") for c in casts]
    if given is None or isinstance(given, ast.Constant):
        return False
    return any(s is not None and ast.unparse(s) == ast.unparse(given) for s in switches)


def _dtype(script: Script, cast: ast.Call) -> str:
    """`float16` or `bfloat16` where the type is plain, "" where it is not known or left to the device."""
    given = script.argument(cast, "dtype")
    if given is None:
        given = cast.args[1] if len(cast.args) > 1 else None
    if given is None:
        return "float16" if script.names.qualified(cast.func) == "torch.cuda.amp.autocast" else ""
    names = {script.names.qualified(o) or name_of(o) for o in script.values.origins(given)}
    short = {n.rpartition(".")[2] for n in names}
    if len(short) != 1:
        return ""
    return {"half": "float16"}.get(*short, *short)
