"""What a data-parallel script is made of, and whether the text holds it: the group, the exchange, shares, a guard.

Rules look for faults, and a script that never began has none. This asks the other question: is the thing that a rule
judges there at all? Each answer is `seen` with its place, `missing` with what to write, or None where a text cannot
tell: then frameworks, modules that were not handed in or an unusual way may have done it. A missing thing is claimed
only where no known way of doing it is in the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from grader.checks.needed_lines import START_GROUP, with_needed_lines
from grader.checks.source.calls.missing_modules import may_form_group
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.devices.tensor_placement import MOVES, Placement
from grader.checks.source.files.file_writes import checkpoints, files
from grader.checks.source.files.rank_paths import same_for_all
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start, walk
from grader.checks.source.training_loops import OTHER_WRAPPERS

_STARTS = ("init_process_group", "init_device_mesh", "init_distributed", "init_rpc", "DeviceMesh")
_OTHER_STARTS = re.compile(
    r"process_?group|mpi4py|init_distributed|setup_dist|init_dist|store$", re.IGNORECASE
)
_CARRY_NOTHING = re.compile(
    r"\.(init_process_group|destroy_process_group|get_\w+|is_\w+|(monitored_)?barrier|new_group|supports_\w+)$"
)
_CARRYING = re.compile(
    r"all_?reduce|all_?gather|all_?to_?all|reduce_scatter|broadcast|scatter|^(i?send|i?recv|gather)$",
    re.IGNORECASE,
)
_SHARDING = re.compile(
    r"fsdp|fully_?shard|distribute_(tensor|module)|dtensor|parallelize|zero_?redundancy|deepspeed",
    re.IGNORECASE,
)
_CLIMBING = re.compile(r"warm_?up|OneCycle|LinearLR|CyclicLR", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ingredient:
    """Whether the text holds what a rule judges; `says`: where it stands, or what is missing and what to write."""

    seen: bool
    says: str


def ingredient(script: Script, code: str) -> Ingredient | None:
    """What the text holds of that which the rule of this code judges; None where a text cannot tell."""
    look = _LOOKS.get(code)
    if look is None or script.training.framework or (found := look(script)) is None:
        return None
    return found if found.seen else replace(found, says=with_needed_lines(found.says, script))


def _group(script: Script) -> Ingredient | None:
    starts = [n for name in _STARTS for n in script.mentioned(name)]
    if starts:
        return _found(script, starts[0]) if script.may_run(starts[0]) else None
    if may_form_group(script) or _mentions(script, _OTHER_STARTS):
        return None
    return _missing(
        "No line starts a process group: torchrun only starts the processes, and these never meet.",
        f"`{START_GROUP}`, first thing.",
    )


def _exchange(script: Script) -> Ingredient | None:
    wraps = [*script.training.wraps, *script.calls(*OTHER_WRAPPERS), *(a.call for a in script.averaging.all)]
    if wraps:
        return _found(script, wraps[0])
    if script.averaging.may_exchange or script.may_hide_setup or _talking(script):
        return None
    return _missing(
        "Nothing wraps the model and nothing sends gradients to the other ranks: each rank trains a model of its own.",
        "`model = DistributedDataParallel(model)`, once the model is on its device, and train through it.",
    )


def _talk(script: Script) -> Ingredient | None:
    talking = [*script.training.wraps, *_talking(script)]
    if talking:
        return _found(script, talking[0])
    if script.may_hide_setup:
        return None
    return _missing(
        "No line lets the ranks talk: there is no collective in the text.",
        "`dist.all_reduce(tensor)`, or another collective, where the ranks' parts come together.",
    )


def _shares(script: Script) -> Ingredient | None:
    training = script.training
    loaders = [c for c in training.loaders() if training.roles(c).trains and not script.guards.alone(c)]
    found = {script.sharding.of(c) for c in loaders}
    if found == {Shared.YES}:
        dealt = next((s for c in loaders for s in training.distributed_samplers(c)), loaders[0])
        return _found(script, dealt)
    if found == {Shared.NO}:
        # One rank may read for all of them, and hand out what it has read.
        by_one = any(script.guards.partial(c) for c in loaders) or bool(_talking(script))
        where = f" {script.at(loaders[0])} builds a loader over all of them."
    else:
        by_one = bool(loaders) or script.mentions_distributed or script.may_hide_setup
        where = ""
    if by_one:
        return None
    return _missing(
        f"Nothing divides the samples among the ranks.{where}",
        "`sampler = DistributedSampler(train_set)`, and `DataLoader(train_set, batch_size=…, sampler=sampler)` "
        "without `shuffle=True`.",
    )


def _epochs(script: Script) -> Ingredient | None:
    told = [n for n in script.mentioned("set_epoch") if isinstance(n, ast.Attribute) and script.may_run(n)]
    if told:
        return _found(script, script.names.tree(told[0]).parent[told[0]])
    if any("set_epoch" in t.constants for t in script.trees):
        return None
    shares = _shares(script)
    undealt = shares is not None and not shares.seen
    if not undealt and not any(_shuffles_again(script, c) for c in script.training.loaders()):
        return None
    return _missing(
        "No line calls `set_epoch`" + (", and there is no sampler yet to call it on." if undealt else ".")
        + " Without it every epoch has the same order.",
        "`sampler.set_epoch(epoch)` at the start of each epoch, before the loop over the loader.",
    )  # fmt: skip


def _shuffles_again(script: Script, loader: ast.Call) -> bool:
    """Whether a plain `DistributedSampler` shuffles for a loop that runs several times, and is all that deals."""
    training = script.training
    given = training.samplers(loader)
    shuffles = (script.argument(s, "shuffle") for s in training.distributed_samplers(loader))
    return (
        len(given) == 1
        and any(s is None or script.values.constant(s) is True for s in shuffles)
        and any(d.trains and d.iterates and training.repeated(d.loop) for d in training.roles(loader).draws)
    )


def _one_writer(script: Script) -> Ingredient | None:
    writes = [*checkpoints(script), *files(script)]
    unguarded = [c for c, path in writes if same_for_all(script, path) and script.guards.on_every_rank(c)]
    if unguarded:
        first = min(unguarded, key=start)
        return _missing(
            f"Nothing keeps the other ranks from writing: {script.at(first)} has {script.quote(first)} and no test of "
            "the rank around it.",
            "`if dist.get_rank() == 0:` around what is saved, and `dist.barrier()` before anyone reads it.",
        )
    guards = [(c, g) for c, _ in writes if (g := script.replicas.on_some_ranks(c)) is not None]
    if not guards or any("local" in _ranks_in(script, g.test) for _, g in guards):
        return None  # a test of the local rank may be right or not: that depends on the machines
    return _found(script, guards[0][0])


def _once_per_machine(script: Script) -> Ingredient | None:
    loads = script.calls_given("download")
    guards = [(c, g) for c in loads if (g := script.replicas.on_some_ranks(c)) is not None]
    local = next((c for c, g in guards if "local" in _ranks_in(script, g.test)), None)
    if local is not None:
        return _found(script, local)
    if not guards or any(_ranks_in(script, g.test) != {"global"} for _, g in guards):
        return None
    return _missing(
        f"Only one machine of all gets the data: {script.at(guards[0][0])} stands under a test of the rank through all "
        "machines.",
        '`if int(os.environ["LOCAL_RANK"]) == 0:` around the download, then `dist.barrier()`.',
    )


def _device(script: Script) -> Ingredient | None:
    placement = Placement(script)
    moves = [c for c in script.called(*MOVES) if placement.is_move(c)]
    if moves:
        return _found(script, moves[0])
    elsewhere = placement.default_chosen or script.calls_given("device", "device_map")
    if elsewhere or script.may_hide_setup or not script.training.trains:
        return None
    return _missing(
        "Nothing moves the model or the batches to a device: with a GPU in the machine, all still runs on the CPU.",
        '`device = torch.device("cuda" if torch.cuda.is_available() else "cpu")` once, then `model.to(device)`, and in '
        "each step `inputs.to(device)` and `targets.to(device)`.",
    )


def _sharded(script: Script) -> Ingredient | None:
    if _mentions(script, _SHARDING) or script.may_hide_setup:
        calls = script.called_like(_SHARDING.search)
        return _found(script, calls[0]) if calls else None
    if not script.training.wraps and script.joins_group:
        return None
    return _missing(
        "Nothing divides the model: each rank holds all of its weights, gradients and optimizer state.",
        "`from torch.distributed.fsdp import fully_shard`, then `fully_shard(block)` for each block and "
        "`fully_shard(model)`, in place of `DistributedDataParallel`.",
    )


def _climbing_rate(script: Script) -> Ingredient | None:
    schedules = [call for _, call in script.calls_under("torch.optim.lr_scheduler.")]
    climbing = [c for c in schedules if _CLIMBING.search(ast.unparse(c.func))]
    if climbing:
        return _found(script, climbing[0])
    by_hand = any(not _reads_rate(script, n) for n in script.mentioned("param_groups"))
    own = not script.updates.optimizers or script.may_hide_setup
    if schedules or by_hand or own or _mentions(script, re.compile("sched|warm_?up", re.IGNORECASE)):
        return None
    return _missing(
        "Nothing changes the learning rate: in every step it is the one that the optimizer was given.",
        "a schedule that climbs at first, such as `LinearLR(optimizer, start_factor=0.1, total_iters=…)`, stepped "
        "after each `optimizer.step()`.",
    )


_LOOKS: dict[str, Callable[[Script], Ingredient | None]] = {
    "DATA001": _shares,
    "DATA002": _epochs,
    "DEV006": _device,
    "DIST001": _group,
    "DIST012": _talk,
    "GRAD001": _exchange,
    "IO001": _one_writer,
    "IO009": _once_per_machine,
    "OPT002": _climbing_rate,
    "SHARD001": _sharded,
}


def _found(script: Script, node: ast.AST) -> Ingredient:
    statement = node if isinstance(node, ast.Call) else script.names.tree(node).parent.get(node, node)
    return Ingredient(True, f"{script.at(node)}: {script.quote(statement)}")


def _missing(what: str, write: str) -> Ingredient:
    return Ingredient(False, f"{what} Write {write}")


def _talking(script: Script) -> list[ast.Call]:
    """Calls that may carry something to other ranks, whatever it is."""
    library = [c for name, c in script.calls_under("torch.distributed.") if not _CARRY_NOTHING.search(name)]
    return [*library, *script.called_like(_CARRYING.search)]


def _mentions(script: Script, pattern: re.Pattern[str]) -> bool:
    """Whether anything is called, named or imported so."""
    return any(
        pattern.search(name)
        for t in script.trees
        for names in (t.loads, t.attribute_loads, t.imports, t.constants)
        for name in names
        if len(name) < 80
    )


def _ranks_in(script: Script, test: ast.AST) -> set[str]:
    """Which ranks a test asks for: `global`, `local`, or "" where that is not plain."""
    found = (n for n in walk(test) if isinstance(n, ast.expr) and script.ranks.rank(n))
    return {script.ranks.kind(n) for n in found}


def _reads_rate(script: Script, node: ast.AST) -> bool:
    """`optimizer.param_groups[0]["lr"]` where it is only looked at."""
    tree = script.names.tree(node)
    group = tree.parent.get(node)
    entry = tree.parent.get(group) if isinstance(group, ast.Subscript) else None
    return isinstance(entry, ast.Subscript) and isinstance(entry.ctx, ast.Load)
