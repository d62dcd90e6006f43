"""What a script writes for Lightning's `Trainer`: validation steps of a module, and how many devices it is told of.

The loop is Lightning's own; a step that its `Trainer` calls runs on every rank, on that rank's share of the data.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.metrics.metric_reductions import names_reduction
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import name_of

_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_MODULES = {"LightningModule"}
_EVALUATING = {
    "validation_step", "test_step", "on_validation_epoch_end", "on_test_epoch_end", "validation_epoch_end",
    "test_epoch_end",
}  # fmt: skip
_LOGGING = ("log", "log_dict")
_DISTRIBUTED = ("ddp", "fsdp", "deepspeed")


def logged_apart(script: Script) -> Iterable[ast.Call]:
    """Calls of `self.log` in evaluation of values that no rank knows more of than its own share."""
    if not script.calls(*_TRAINERS) or _one_device(script) or script.names.foreign:
        return
    # A metric object brings its own counts together, and a script that holds any may log one under any name.
    if any(i.split(".")[0] in ("torchmetrics", "torcheval") for t in script.trees for i in t.imports):
        return
    for call in script.called(*_LOGGING):
        tree = script.names.tree(call)
        function, owner = tree.function(call), tree.enclosing_class(call)
        if (
            function is None
            or owner is None
            or function.name not in _EVALUATING
            or not _is_module(script, owner)
        ):
            continue
        own = isinstance(call.func, ast.Attribute) and name_of(call.func.value) == "self"
        given = [k.arg for k in call.keywords]
        settled = {"sync_dist", "rank_zero_only", None} & set(given)
        if not own or settled or "metric_attribute" in given or len(call.args) + len(given) < 1:
            continue
        value = _value(call)
        if value is not None and not _brought_together(script, value):
            yield call


def _value(call: ast.Call) -> ast.expr | None:
    last = call.args[-1] if call.args else None
    return next((k.value for k in call.keywords if k.arg in ("value", "dictionary")), last)


def _brought_together(script: Script, value: ast.expr) -> bool:
    """Whether some call with a part in a value may know of other ranks, or it is the same on all of them."""
    made = [n for n in script.values.closure(value) if isinstance(n, ast.Call)]
    if not made:
        return True  # nothing was worked out from data
    return any(names_reduction(name_of(n)) or name_of(n) == "compute" for n in made)


def told_devices(script: Script) -> bool:
    """Whether the script says that several processes train: a number of devices or nodes, or such a strategy."""
    for call in script.calls(*_TRAINERS):
        strategy = script.values.constant(script.argument(call, "strategy"))
        if isinstance(strategy, str) and strategy.startswith(_DISTRIBUTED):
            return True
        for name in ("devices", "num_nodes"):
            said = script.values.constant(script.argument(call, name))
            if isinstance(said, int) and (said > 1 or said == -1) and not isinstance(said, bool):
                return True
    return False


def _one_device(script: Script) -> bool:
    """Whether every `Trainer` is told of one device, or of a run that only tries the code out."""
    for call in script.calls(*_TRAINERS):
        devices = script.argument(call, "devices")
        known = script.values.constant(devices) if devices is not None else UNKNOWN
        tried = script.argument(call, "fast_dev_run") is not None
        if (
            known not in (1, "1")
            and not tried
            and script.values.constant(script.argument(call, "accelerator")) != "cpu"
        ):
            return False
    return True


def _is_module(script: Script, owner: ast.ClassDef) -> bool:
    family = [owner, *script.graph.bases(owner)]
    return any(
        (script.names.qualified(b) or "").rpartition(".")[2] in _MODULES for c in family for b in c.bases
    )
