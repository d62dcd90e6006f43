"""Models that every rank draws for itself and that nothing makes equal: sharded, or wrapped with `init_sync=False`.

FSDP cuts up what a rank has, and sends nothing. Of the text alone, only where nothing in it could make the ranks'
weights equal: no common seed, nothing sent or loaded.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText, fresh_models, names_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded
from grader.model.finding import Severity
from grader.model.fix import Fix

_SHARDS = ("fully_shard", "FullyShardedDataParallel")
_WEIGHTS = ("parameters", "named_parameters", "state_dict", "named_buffers", "buffers")
_EQUAL = (
    "load_state_dict", "set_model_state_dict", "set_state_dict", "from_pretrained", "distribute_tensor",
    "broadcast_object_list", "to_empty", "load", "load_model", "fork_rng",
)  # fmt: skip
"""Calls after which weights may be equal, wherever they were drawn."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """Why shards come from different models: the node to blame, a sentence's end, what to write, the edits.

    Such a model trains, most often as well as any other, so it stands in nobody's way: `severity` is a warning where
    the ranks were parted on purpose, else a hint.
    """

    node: ast.AST
    says: str
    hint: str
    fix: Fix | None = None
    severity: Severity = Severity.WARNING


def shards_of_different_models(script: Script) -> Unsent | None:
    """What draws the weights of each rank's model apart before it is sharded; None where that isn't plain."""
    shards = script.called(*_SHARDS)
    if not shards or script.training.wraps or script.training.framework or script.names.foreign:
        return None
    if any(k.arg == "sync_module_states" or k.arg is None for call in shards for k in call.keywords):
        return None
    if (
        script.called(*_EQUAL)
        or any("meta" in tree.constants for tree in script.trees)
        or _sends_weights(script)
    ):
        return None
    models = list(dict.fromkeys(fresh_models(script)))
    seeding = Seeding(script)
    state = seeding.of("torch")
    if state is Seeded.BY_RANK:
        return _seeded_by_rank(script, seeding.by_rank)
    if state is Seeded.NEVER and models and not any("seed" in name_of(c) for c in script.all_calls()):
        return Unsent(
            models[0],
            f"makes a model of random weights, {script.quote(models[0])}, and no seed makes them equal on all ranks",
            f"Put `torch.manual_seed(0)` before {script.at(models[0])}, where the model is made, on all ranks; or "
            "send rank 0's weights before sharding: `for p in model.parameters(): dist.broadcast(p.data, src=0)`.",
            severity=Severity.HINT,
        )
    return None


def _seeded_by_rank(script: Script, calls: list[ast.Call]) -> Unsent | None:
    for call in calls:
        if (script.names.qualified(call.func) or "").rpartition(".")[2] != "manual_seed" or not call.args:
            continue
        sums = [
            n
            for n in script.values.closure(call.args[0])
            if isinstance(n, ast.BinOp) and names_rank(script, n)
        ]
        node: ast.expr = sums[0] if sums else call.args[0]
        kept = [side for side in (node.left, node.right) if not names_rank(script, side)] if sums else []  # type: ignore[attr-defined]
        edits = Edits(script)
        common = "one seed for all ranks"
        if len(kept) == 1 and isinstance(kept[0], ast.Name | ast.Constant | ast.Attribute):
            common = f"`{edits.text(kept[0])}` alone"
            edits.replace(node, edits.text(kept[0]))
        else:
            edits.give_up()
        return Unsent(
            node,
            f"seeds each rank with another number, {script.quote(node)}, and nothing makes the weights equal",
            f"Seed with {common} until the model is sharded, so that all ranks draw the same weights; where each rank "
            "needs random numbers of its own, seed by rank after that.",
            edits.fix("Has all ranks draw the same weights."),
        )
    return None


def init_sync_off(script: Script) -> CauseInText | None:
    """A wrapper that is told to send no weights when it wraps."""
    for wrap in script.training.wraps:
        given = next((k for k in wrap.keywords if k.arg == "init_sync"), None)
        if given is None or script.values.constant(given.value) is not False:
            continue
        edits = Edits(script)
        edits.take_away(wrap, "init_sync", "True")
        return CauseInText(
            (wrap,),
            f"{script.at(wrap)} wraps with {script.quote(given)}, so that DDP does not send rank 0's weights to all, "
            "as it does otherwise: each rank goes on with those that it has drawn itself.",
            f"Drop {script.quote(given)} at {script.at(wrap)}: DDP then makes the replicas equal when it wraps.",
            edits.fix("Lets DDP send rank 0's weights to all."),
        )
    return None


def wrapped_unsent(script: Script) -> CauseInText | None:
    """Such a wrapper, where nothing else in the text could make the ranks' weights equal."""
    if script.names.foreign or script.called(*_EQUAL) or _sends_weights(script):
        return None
    state = Seeding(script).of("torch")
    never = state is Seeded.NEVER and not any("seed" in name_of(c) for c in script.all_calls())
    return init_sync_off(script) if never or state is Seeded.BY_RANK else None


def seeds_by_rank(script: Script) -> list[ast.AST]:
    """What seeds torch differently on each rank, in a script that never seeds all of them alike."""
    seeding = Seeding(script)
    found = _seeded_by_rank(script, seeding.by_rank) if seeding.of("torch") is Seeded.BY_RANK else None
    return [found.node] if found is not None else []


def to_send(script: Script) -> str:
    """What to write where no wrapper makes the replicas equal: of the one model that is made, where that is plain."""
    made = list(dict.fromkeys(fresh_models(script)))
    bound = script.names.tree(made[0]).statement(made[0]) if len(made) == 1 else None
    if isinstance(bound, ast.Assign) and len(bound.targets) == 1 and isinstance(bound.targets[0], ast.Name):
        edits = Edits(script)
        name, send = bound.targets[0].id, edits.name("torch.distributed.broadcast", bound)
        return (
            f"Send rank 0's weights to all right after {script.at(bound)}: `for tensor in {name}.state_dict()"
            f".values():` with `{send}(tensor, src=0)` in it; or wrap `{name}` with DDP, which does it."
        )
    return (
        "Send rank 0's weights to all before the first step: `for tensor in model.state_dict().values(): "
        "dist.broadcast(tensor, src=0)`; or wrap the model with DDP, which does it."
    )


def sent_weights(script: Script) -> list[ast.Call]:
    """Broadcasts that are given the parameters of a model."""
    return [
        call
        for name, call in script.calls_under("torch.distributed.")
        if name.endswith("broadcast")
        and any(
            isinstance(n, ast.Call) and name_of(n) in ("parameters", "named_parameters", "state_dict")
            for given in arguments_of(call)
            for n in script.values.closure(given)
        )
    ]


def _sends_weights(script: Script) -> bool:
    """Whether a collective is given weights, or anything that nobody can follow is broadcast."""
    for name, call in script.calls_under("torch.distributed."):
        if "broadcast" in name or "scatter" in name:
            return True
        for given in arguments_of(call):
            parts = script.values.closure(given)
            if "shard" in name or "state_dict" in name:
                continue
            if any(isinstance(p, ast.Call) and name_of(p) in _WEIGHTS for p in parts):
                return True
            if any(isinstance(p, ast.Attribute) and p.attr in ("data", "weight", "bias") for p in parts):
                return True
    return False
