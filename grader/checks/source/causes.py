"""Where the text does what a run only shows the effect of, so that a finding can name the line that did it.

Each function answers with nodes, the likeliest first; none where the text does not say. Decides nothing: whether there
is a fault at all, the run has shown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import literal, name_of, names_in
from grader.model.call_site import Site
from grader.model.finding import Location
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.model.run import Frame

_LENGTHS = ("total_steps", "steps_per_epoch", "T_max", "total_iters")
"""Arguments that say how long a schedule is."""


@dataclass(frozen=True, slots=True)
class CauseInText:
    """What a text does: its lines, the one to change first, what they do as a sentence, and what to write."""

    nodes: tuple[ast.AST, ...]
    says: str
    hint: str
    fix: Fix | None = None


def lines(script: Script, nodes: Iterable[ast.AST]) -> tuple[Location, ...]:
    """Nodes as places of a finding, each once."""
    return tuple(dict.fromkeys(script.location(n) for n in nodes))


def names_rank(script: Script, node: ast.AST) -> bool:
    """Whether a rank stands anywhere within a node."""
    return any(script.ranks.rank(n) for n in ast.walk(node) if isinstance(n, ast.expr))


def names_world(script: Script, node: ast.AST) -> bool:
    """Whether the number of processes stands anywhere within a node."""
    return any(script.ranks.world(n) for n in ast.walk(node) if isinstance(n, ast.expr))


def made_of_rank(script: Script, value: ast.AST) -> bool:
    """Whether a rank stands anywhere in what a value was made of, followed through assignments."""
    return any(script.ranks.rank(n) for n in script.values.closure(value) if isinstance(n, ast.expr))


def stands_at(script: Script, node: ast.AST, site: Site | Frame | None) -> bool:
    """Whether a call, or another part of the text, is the one that a run saw at a place, or on a stack."""
    where = script.location(node)
    return site is not None and where.path == site.path and where.line <= site.line <= (where.end_line or 0)


def by_world(script: Script, node: ast.AST) -> Iterable[ast.AST]:
    """Where a value is multiplied or divided by the number of processes on its way."""
    for part in script.values.closure(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div | ast.FloorDiv):
            sides: tuple[ast.expr, ...] = (part.left, part.right)
        elif isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Mult | ast.Div | ast.FloorDiv):
            sides = (part.value,)
        else:
            continue
        if any(script.ranks.world(side) for side in sides):
            yield part


def scaled_by_rank(script: Script) -> list[ast.AST]:
    """Where what goes backward, or its gradient in a hook, is multiplied by something that is made of the rank."""
    hooked = [call.args[0] for call in script.called("register_hook") if call.args]
    found: list[ast.AST] = []
    for value in (*went_backward(script), *hooked):
        for part in script.values.closure(value):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div):
                sides: tuple[ast.expr, ...] = (part.left, part.right)
            elif isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Mult | ast.Div):
                sides = (part.value,)
            else:
                continue
            if any(made_of_rank(script, side) for side in sides):
                found.append(part)
    return list(innermost(found))


def innermost(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Of `loss / (samples * world)` and the product in it, which both have the number of processes, the product."""
    found = list(nodes)
    return (n for n in found if not any(other is not n and other in ast.walk(n) for other in found))


def rates_by_world(script: Script) -> Iterable[ast.AST]:
    """What counts the number of ranks into a learning rate."""
    for _, call in script.calls_under("torch.optim."):
        for name in ("lr", "max_lr", "base_lr"):
            rate = script.given(call, name)
            if rate is not None:
                yield from by_world(script, rate)


def passed_world(script: Script, nodes: Iterable[ast.AST]) -> Iterable[ast.expr]:
    """Where the number of ranks is handed to the functions of the script that these values are computed in."""
    for node in nodes:
        function = script.names.tree(node).function(node)
        named = names_in(node)
        if function is None:
            continue
        for site in script.graph.sites(function):
            for one in (*function.args.args, *function.args.kwonlyargs):
                given = script.graph.bound(site, function, one.arg) if one.arg in named else None
                if given is not None and script.ranks.world(given):
                    yield given


def rate_of_group(script: Script, number: int) -> ast.expr | None:
    """The rate of an optimizer's group of parameters, where the text lists the groups: its own, or that of all."""
    for _, call in script.calls_under("torch.optim."):
        params, rate = script.argument(call, "params"), script.argument(call, "lr")
        listed = [o for o in script.values.origins(params) if isinstance(o, ast.List)] if params else []
        if len(listed) != 1 or number >= len(listed[0].elts) or rate is UNKNOWN:
            continue
        group = listed[0].elts[number]
        if isinstance(group, ast.Dict):
            own = (v for k, v in zip(group.keys, group.values, strict=True) if k and literal(k) == "lr")
            return next(own, rate)
    return None


def lengths_at(script: Script, site: Site | None) -> Iterable[ast.expr]:
    """The lengths that a schedule made at a place is given."""
    for _, call in script.calls_under("torch.optim.lr_scheduler."):
        given = _LENGTHS if stands_at(script, call, site) else ()
        yield from (length for name in given if (length := script.given(call, name)) is not None)


def lengths_of(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What counts the steps of a schedule that was made at a place."""
    for length in lengths_at(script, site):
        parts = script.values.closure(length)
        yield from (n for n in parts if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "len")


def went_backward(script: Script) -> Iterable[ast.expr]:
    """The values that `backward` is called on."""
    for backward in script.training.backwards:
        yield called_on(backward) or backward


def sums_over_samples(script: Script) -> Iterable[ast.AST]:
    """Calls with `reduction="sum"` whose result goes backward."""
    for loss in went_backward(script):
        for node in script.values.closure(loss):
            if isinstance(node, ast.Call) and any(
                k.arg == "reduction" and script.values.constant(k.value) == "sum" for k in node.keywords
            ):
                yield node


def fresh_models(script: Script) -> Iterable[ast.AST]:
    """Where the models were made whose parameters optimizers are given."""
    for optimizer in script.updates.optimizers:
        given = optimizer.args[0] if optimizer.args else script.argument(optimizer, "params")
        for node in script.values.closure(given) if isinstance(given, ast.expr) else ():
            if isinstance(node, ast.Call) and script.replicas.builds_model(node):
                yield node


def sharding_meshes(script: Script) -> Iterable[ast.AST]:
    """The meshes that models are sharded over, where they are named, and the calls that are given them."""
    for call in script.called("fully_shard", "FullyShardedDataParallel"):
        for name in ("mesh", "device_mesh"):
            for keyword in call.keywords:
                if keyword.arg == name:
                    yield from (o for o in script.values.origins(keyword.value) if isinstance(o, ast.Call))
                    yield call


def guarded_ends(script: Script) -> Iterable[ast.AST]:
    """Where only some ranks take the group down, with the test that keeps the others from it."""
    for call in script.called("destroy_process_group"):
        guard = script.replicas.on_some_ranks(call)
        if guard is not None:
            yield call
            yield guard.test


def layers_named(script: Script, parameters: Iterable[str]) -> Iterable[ast.AST]:
    """Where the modules were made that parameters belong to, by their names: `aux` of `aux.weight`."""
    for layer in dict.fromkeys(name.rpartition(".")[0].rpartition(".")[2] for name in parameters):
        for tree in script.trees if layer else ():
            yield from (definition.node for definition in tree.attributes.get(layer, ()))


def static_graphs(script: Script) -> Iterable[ast.AST]:
    """Wraps that promise a graph which never changes."""
    for wrap in script.training.wraps:
        yield from (k.value for k in wrap.keywords if k.arg == "static_graph")


def branches_of_models(script: Script) -> Iterable[ast.AST]:
    """Tests in `forward` functions, where another way through the model begins."""
    for tree in script.trees:
        for branch in tree.ifs:
            function = tree.function(branch)
            if getattr(function, "name", "") == "forward":
                yield branch.test


def warm_up_lengths(script: Script) -> Iterable[ast.AST]:
    """What counts the steps of warm-ups."""
    for name, call in script.calls_under("torch.optim.lr_scheduler."):
        wanted = {"LinearLR": "total_iters", "ConstantLR": "total_iters", "SequentialLR": "milestones"}
        argument = wanted.get(name.rpartition(".")[2])
        length = script.given(call, argument) if argument else None
        if length is not None:
            yield from (n for n in script.values.closure(length) if isinstance(n, ast.BinOp))


def kept_tensors(script: Script) -> Iterable[ast.AST]:
    """Lists that grow by a computed value in every training step, `losses.append(2 * loss)`, else in every epoch."""
    found = list(_kept_tensors(script))
    steps = {draw.loop for draw in script.training.draws}
    return [call for call in found if steps.intersection(script.updates.loops_around(call))] or found


def _kept_tensors(script: Script) -> Iterable[ast.AST]:
    for call in script.called("append"):
        loops = script.updates.loops_around(call)
        if not call.args or not any(
            script.updates.entries(loop, script.training.backwards) for loop in loops[:1]
        ):
            continue
        calls = (n for n in ast.walk(call.args[0]) if isinstance(n, ast.Call))
        if not any(name_of(c) in ("item", "float", "int", "len", "tolist", "detach") for c in calls):
            yield call


def epoch_counts(script: Script) -> Iterable[ast.AST]:
    """Numbers of epochs, where the text writes them: `EPOCHS = 3` of `for epoch in range(EPOCHS)`."""
    passes = [d.loop for d in script.training.draws if d.trains]
    for tree in script.trees:
        for loop in tree.loops:
            call = None if isinstance(loop, ast.While) else loop.iter
            if isinstance(call, ast.Call) and script.names.qualified(call.func) == "range":
                around = any(inner is not loop and tree.inside(inner, loop) for inner in tree.loops)
                around = around or bool(script.updates.entries(loop, passes))
                if around and script.updates.entries(loop, script.training.backwards):
                    yield from (n for a in call.args for n in _written(script, a))


def rates_written(script: Script) -> Iterable[ast.AST]:
    """Learning rates, where the text writes them."""
    for _, call in script.calls_under("torch.optim."):
        rate = script.given(call, "lr")
        if rate is not None:
            yield from _written(script, rate)


def _written(script: Script, node: ast.expr) -> Iterable[ast.AST]:
    """The number that a value comes from: a constant, or the option of the command line that has it by default."""
    yield from (o for o in script.values.origins(node) if isinstance(o, ast.Constant))
    if isinstance(node, ast.Attribute):
        yield from options_of(script, node.attr)


def options_of(script: Script, name: str) -> Iterable[ast.Call]:
    """Where options of the command line are added whose value is read under a name."""
    for option in script.called("add_argument"):
        names = [a.value for a in option.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if any(one.lstrip("-").replace("-", "_") == name for one in names):
            yield option


def weight_saves(script: Script) -> Iterable[ast.AST]:
    """Calls that save tensors, whatever they are given."""
    yield from script.calls("torch.save", "safetensors.torch.save_file")


def made_single(script: Script) -> Iterable[ast.AST]:
    """Where values are made float32: `model.float()`, `dtype=torch.float32`."""
    yield from (call for call in script.called("float") if isinstance(call.func, ast.Attribute))
    yield from script.mentioned("float32")
