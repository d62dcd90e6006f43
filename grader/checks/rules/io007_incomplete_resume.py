"""A run is taken up again from a checkpoint that lacks part of its state.

## What it finds
A script that resumes from its own checkpoints while these hold no optimizer state, no scheduler state or no epoch, or
hold them and they are never read back.

## Why it matters
Momentum and Adam's moments start again from zero, the learning rate jumps back to its first value and warms up anew,
or the epochs are counted from 0 again. The loss curve shows a step at each resumption, and a job that is preempted
every few hours never gets past its first epochs' learning rate.

## Example
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.AdamW(model.parameters())
if os.path.exists("checkpoint.pt"):
    model.module.load_state_dict(torch.load("checkpoint.pt", map_location="cpu"))
for epoch in range(100):
    train_one_epoch(model, optimizer)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "checkpoint.pt")
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.AdamW(model.parameters())
first_epoch = 0
if os.path.exists("checkpoint.pt"):
    state = torch.load("checkpoint.pt", map_location="cpu")
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first_epoch = state["epoch"] + 1
for epoch in range(first_epoch, 100):
    train_one_epoch(model, optimizer)
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, "checkpoint.pt")
dist.destroy_process_group()
```

## How it is seen
In the source: what is put into the saved checkpoints and what is read back, in a script that says it resumes (an option
or a start epoch) or that loads, before training, the file that it saves. A script that only saves its final weights, or
starts from somebody else's, is left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grader.checks.rule import Hit
from grader.checks.source.calls.arguments import arguments_of, keyword_value
from grader.checks.source.calls.ways import led_to_only
from grader.checks.source.files.rank_paths import of_others, path_text
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Place, name_of, start
from grader.model.finding import Severity

SEVERITY = Severity.HINT
_RESUME = re.compile(
    r"^(no_?)?resum|_resume|start_?epoch|initial_epoch|first_epoch|epochs?_(run|done)|begin_epoch|last_epoch_saved",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(r"optim|(^|_)opts?(_|$)", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)
_COUNT = re.compile(r"epoch|step|iter|progress|round", re.IGNORECASE)
_KEEPER = re.compile(r"check_?point|ckpt|save|load|resume|restore|restart", re.IGNORECASE)
_EVERYTHING = {"optimizer", "scheduler", "model"}
_WHOLE = ("save_state", "save_checkpoint_state", "StatefulDataLoader")


@dataclass(frozen=True, slots=True)
class _State:
    """What checkpoints hold and what is read back from them."""

    saved: frozenset[str]
    loaded: frozenset[str]


def check_source(script: Script) -> Iterable[Hit]:
    """Flag scripts that resume from checkpoints without optimizer, scheduler or epoch."""
    training = script.training
    if not script.joins_group or training.framework or not (training.trains or training.wraps):
        return
    saves = [c for c in script.calls("torch.save") if _holds_model(script, c)]
    if not saves:
        return
    after_training = _after_training(script)
    loads = [c for c in script.calls("torch.load") if not after_training(c) and not of_others(script, c)]
    loads = [c for c in loads if not _handed_on(script, saves, c)]
    if not loads or not _loads_model(script) or not _resumes(script, saves, loads):
        return
    state = _State(frozenset(_kinds(script, "state_dict")), frozenset(_kinds(script, "load_state_dict")))
    lacking = list(_lacking(script, state, saves))
    if not lacking:
        return
    yield Hit(
        message=f"{script.at(loads[0])} takes a run up again ({script.quote(loads[0])}) from what "
        f"{script.at(saves[0])} saves, but {' and '.join(lacking)}. The resumed run does not go on where it stopped.",
        hint='Save and load all of it: `{"model": …, "optimizer": optimizer.state_dict(), "scheduler": '
        'scheduler.state_dict(), "epoch": epoch}`.',
        where=(script.location(saves[0]), script.location(loads[0])),
    )


def _lacking(script: Script, state: _State, saves: list[ast.Call]) -> Iterable[str]:
    """What is missing, as parts of one sentence."""
    if _keeps_state(script):
        if "optimizer" not in state.saved:
            yield "the optimizer's state is not in it"
        elif "optimizer" not in state.loaded:
            yield "the optimizer's state is saved and never loaded"
    schedulers = [
        c
        for name, c in script.calls_under("torch.optim.lr_scheduler.")
        if not any(k.arg == "last_epoch" for k in c.keywords) and name.rpartition(".")[2][:1].isupper()
    ]
    if schedulers and not _SCHEDULER.search(" ".join(_keys(script, saves))):
        if "scheduler" not in state.saved:
            yield "the scheduler's state is not in it"
    elif schedulers and "scheduler" in state.saved and "scheduler" not in state.loaded:
        yield "the scheduler's state is saved and never loaded"
    if "scheduler" not in state.saved and not _counts(script, saves):
        yield "neither epoch nor step is in it"


def _keeps_state(script: Script) -> bool:
    """An optimizer with a memory: anything but plain SGD."""
    made = script.calls_under("torch.optim.")
    for name, call in made:
        if name == "torch.optim.SGD":
            momentum = keyword_value(call, "momentum")
            if momentum is not None and script.values.constant(momentum) not in (0, 0.0):
                return True
        elif not name.startswith("torch.optim.lr_scheduler") and name.count(".") == 2:
            return True
    return False


def _holds_model(script: Script, save: ast.Call) -> bool:
    given = script.given(save, "obj")
    if given is None:
        return False
    return any(isinstance(n, ast.Call) and name_of(n) == "state_dict" for n in script.values.closure(given))


def _loads_model(script: Script) -> bool:
    return "model" in _kinds(script, "load_state_dict")


def _kinds(script: Script, method: str) -> set[str]:
    """Of what kinds of objects a method is called: `model`, `optimizer`, `scheduler`."""
    found = set()
    for call in script.called(method):
        if isinstance(call.func, ast.Attribute):
            origins = script.values.origins(call.func.value)
            if any(isinstance(o, ast.For | ast.comprehension) for o in origins):
                found |= _EVERYTHING  # `for name, part in parts.items(): part.load_state_dict(…)`
            found.add(_kind(script, call.func.value))
    if script.called(*_WHOLE) or any(_keeps_all(script, c) for c in script.called_like(_KEEPER.search)):
        found |= _EVERYTHING
    return found


def _keeps_all(script: Script, call: ast.Call) -> bool:
    """`restore(path, model, optimizer)` of a module that was not handed in: what it keeps, nobody can see."""
    if script.graph.targets(call) or call in script.calls("torch.save"):
        return False
    parts = arguments_of(call)
    return any(isinstance(p, ast.Name | ast.Attribute) and _kind(script, p) == "optimizer" for p in parts)


def _kind(script: Script, node: ast.expr) -> str:
    for origin in script.values.origins(node):
        name = script.names.qualified(origin.func) or "" if isinstance(origin, ast.Call) else ""
        if name.startswith("torch.optim.lr_scheduler") or _SCHEDULER.search(name_of(origin)):
            return "scheduler"
        if name.startswith("torch.optim") or "Optimizer" in name:
            return "optimizer"
    name = name_of(node)
    if isinstance(node, ast.Subscript):
        name = name_of(node.value) or str(script.values.constant(node.slice))
    if _SCHEDULER.search(name):
        return "scheduler"
    if _OPTIMIZER.search(name):
        return "optimizer"
    return "scaler" if "scaler" in name.lower() else "model"


def _keys(script: Script, saves: list[ast.Call]) -> list[str]:
    """Keys of the saved dictionaries, and the parts of their paths."""
    found: list[str] = []
    for save in saves:
        for argument in arguments_of(save):
            for node in script.values.closure(argument):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
                elif isinstance(node, ast.Name | ast.Attribute | ast.keyword):
                    found.append(node.arg or "" if isinstance(node, ast.keyword) else name_of(node))
    return found


def _counts(script: Script, saves: list[ast.Call]) -> bool:
    if any(_COUNT.search(k) for k in _keys(script, saves)):
        return True
    # `state["epoch"] = epoch` after the dictionary was made.
    return any(
        "[" in key and _COUNT.search(key)
        for tree in script.trees
        for made in tree.definitions.values()
        for key in made
    )


def _after_training(script: Script) -> Callable[[ast.AST], bool]:
    """Tells of a load whether it stands below all training: such a checkpoint is read for a last evaluation."""
    begins: dict[ast.AST, Place] = {}
    for tree in script.trees:
        for step in (s for s in (*tree.loops, *tree.calls) if script.training.runs_backward(s)):
            scope = tree.function(step) or tree.root
            begins[scope] = min(start(step), begins.get(scope, start(step)))

    def below(place: ast.AST) -> bool:
        tree = script.names.tree(place)
        return start(place) > begins.get(tree.function(place) or tree.root, start(place))

    run_below = led_to_only(script.names, script.graph, below)
    return lambda load: below(load) or script.names.tree(load).function(load) in run_below


def _handed_on(script: Script, saves: list[ast.Call], load: ast.Call) -> bool:
    """A file that was written just above: one rank hands its first weights to the others by way of the disk."""
    tree = script.names.tree(load)
    path = path_text(script, script.argument(load, "f"))
    above = [s for s in saves if tree.function(s) is tree.function(load) and start(s) < start(load)]
    return bool(path) and any(path_text(script, script.argument(s, "f")) == path for s in above)


def _resumes(script: Script, saves: list[ast.Call], loads: list[ast.Call]) -> bool:
    """Whether the script says that it takes runs up again, or loads the very file that it saves."""
    words = [n for t in script.trees for n in (*t.loads, *t.attribute_loads, *t.attributes)]
    words += [
        c.lstrip("-").replace("-", "_")
        for t in script.trees
        for c in t.constants
        if len(c) < 40 and " " not in c
    ]
    if any(_RESUME.search(w) for w in words):
        return True
    written = {path_text(script, script.argument(s, "f")) for s in saves} - {""}
    read = {path_text(script, c.args[0] if c.args else None) for c in loads} - {""}
    return bool(written & read)
