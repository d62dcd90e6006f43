"""The number of ranks, or a rank, is written into the script.

## What it finds
A literal where the number of processes or the rank belongs: in `init_process_group`, in a sampler, in
`os.environ["WORLD_SIZE"]`, in a slice such as `indices[rank::2]`, or in the division after an `all_reduce`.

## Why it matters
The script is right for one number of processes only. Started with another it hangs at the start, trains on part of
the data or on the same part twice, or scales its metrics wrongly, and nothing says so.

## Example
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
sampler = DistributedSampler(train_set, num_replicas=4, rank=dist.get_rank())
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
```

## Use instead
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
sampler = DistributedSampler(train_set, num_replicas=dist.get_world_size(), rank=dist.get_rank())
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
```

## How it is seen
In the source, arguments and slices are followed to a literal; one that agrees with the script's own `mp.spawn` is a
hint at most. In the run, a rank that is kept from above `init_process_group`, where a fallback gives each process a 0
for it, or from a variable that nobody sets, counts like a literal; the group's size and the samplers' `num_replicas`
are held against the number of ranks that were started; a literal that happens to fit shows with another number only.
Reference: https://pytorch.org/docs/stable/elastic/run.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.needed_lines import START_GROUP
from grader.checks.phrases import at, listed, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import CauseInText, lines
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.collectives.joined_groups import in_group
from grader.checks.source.ranks.cached_ranks import cached_ranks
from grader.checks.source.ranks.early_ranks import asked_of_launcher, early_ranks
from grader.checks.source.ranks.literal_ranks import Literal, literals
from grader.checks.source.ranks.own_ranks import START_ALL
from grader.checks.source.ranks.unset_variables import told_by_variables, unset_variables
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import UNKNOWN
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.drawn_data import Loader

SEVERITY = Severity.WARNING
_MEANT = {"RANK": "rank", "WORLD_SIZE": "number of ranks"}
_ASK = {"RANK": "dist.get_rank()", "WORLD_SIZE": "dist.get_world_size()"}
_HINT = (
    "Ask instead of writing it down: `dist.get_world_size()` and `dist.get_rank()` after "
    f"`{START_GROUP}`, or "
    '`int(os.environ["WORLD_SIZE"])` and `int(os.environ["RANK"])`, which '
    "torchrun sets."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag literals in the place of a rank or of the number of ranks."""
    if not script.joins_group or script.training.framework:
        return
    for found in literals(script):
        yield Hit(
            message=f"{script.at(found.node)} has {script.quote(found.node)}: {found.says}. {_why(found)}",
            hint=_HINT,
            where=(script.location(found.node),),
            severity=found.severity,
            fix=_fix(script, found.node),
        )


def _fix(script: Script, node: ast.AST) -> Fix | None:
    """The number asked of the launcher, or of the group where it has been joined."""
    edits, tree = Edits(script), script.names.tree(node)
    if script.graph.spawn_sites:
        return None
    name = script.names.qualified(node.func) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        if len(node.targets) != 1 or not isinstance(target, ast.Subscript):
            return None
        setter = edits.name("os.environ.setdefault", node)
        edits.rewrite(node, f"{setter}({edits.text(target.slice)}, {edits.text(node.value)})")
        return edits.fix("Keeps what the launcher has set.")
    if isinstance(node, ast.Call) and name == INIT:
        environ = edits.name("os.environ", node)
        for argument, variable in (("world_size", "WORLD_SIZE"), ("rank", "RANK")):
            if _is_number(script, script.argument(node, argument)):
                edits.give(node, argument, f'int({environ}["{variable}"])')
        return edits.fix("Asks the launcher.")
    if not in_group(script, tree.statement(node)):
        return None
    if isinstance(node, ast.Call) and name == SAMPLER:
        for argument, function in (("num_replicas", "get_world_size"), ("rank", "get_rank")):
            if _is_number(script, script.argument(node, argument)):
                edits.give(node, argument, f"{edits.name(f'torch.distributed.{function}', node)}()")
    else:
        number = _counted(node)
        edits.replace(number, f"{edits.name('torch.distributed.get_world_size', node)}()") if number else None
    return edits.fix("Asks the group.")


def _is_number(script: Script, given: ast.expr | None) -> bool:
    return given is not None and given is not UNKNOWN and isinstance(script.values.constant(given), int)


def _counted(node: ast.AST) -> ast.expr | None:
    """The number of ranks in a stride or a division."""
    if isinstance(node, ast.AugAssign):
        return node.value
    if isinstance(node, ast.BinOp):
        return node.right
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return node.slice.step
    return node.args[-1] if isinstance(node, ast.Call) and len(node.args) >= 3 else None


def _why(found: Literal) -> str:
    if found.severity is Severity.ERROR:
        return "The processes wait in `init_process_group` for others that were never started."
    if found.severity is Severity.HINT:
        return "On a machine with another number of GPUs some idle, or are asked for in vain."
    return "With any other number of processes the script hangs, leaves data out or computes wrong averages."


def check_run(evidence: Evidence) -> Observation:
    """Flag groups and training samplers of another size than the number of ranks that were started."""
    started = evidence.trace.world_size
    hit = _stuck_at_the_start(evidence, started) or _group(evidence, started) or _unset(evidence, started)
    hit = hit or _early(evidence, started) or _samplers(evidence)
    if hit is not None:
        return flagged(hit)
    if not any(g.op == "init" for r in evidence.trace.ranks for g in r.groups):
        return not_observable("No rank came out of `init_process_group`.")
    if any(True for _ in literals(evidence.script)):
        return not_observable(f"The number that is written down fits the {started} ranks of this run.")
    return verified(f"The group and the samplers counted the {started} ranks that were started.")


def _unset(evidence: Evidence, started: int) -> Hit | None:
    """A rank that all processes read alike, since nobody sets its variable: everything that follows counts by it."""
    found = next((one for one in unset_variables(evidence.script) if one.meant != "LOCAL_RANK"), None)
    if found is None or started < 2:
        return None
    script = evidence.script
    return Hit(
        message=f"{script.at(found.call)} reads `{found.name}`, which torchrun does not set: each of {started} ranks "
        f"takes {found.otherwise} for its {_MEANT[found.meant]}. Shares, guards and files that go by it are the "
        "same on every rank.",
        hint=f"Read `{found.meant}` there, which torchrun sets, or ask the group: `{_ASK[found.meant]}`.",
        where=(script.location(found.call),),
        ranks=tuple(range(started)),
        details={"variable": found.name, "taken": found.otherwise},
        severity=Severity.ERROR,
        fix=found.fix,
    )


def _early(evidence: Evidence, started: int) -> Hit | None:
    """A rank or size that is kept from above the group's start: every process takes itself for the only one."""
    script = evidence.script
    joined = any(g.op == "init" and g.world_size > 1 for r in evidence.trace.ranks for g in r.groups)
    found = early_ranks(script) if joined and started > 1 else []
    if not found:
        kept = next(cached_ranks(script), None) if joined and started > 1 else None
        return _as_hit(script, kept, started) if kept is not None else None
    first, meant = found[0], list(dict.fromkeys(one.meant for one in found))
    told = " and ".join(f'`int(os.environ["{m}"])`' for m in meant)
    return Hit(
        message=f"{listed([script.at(one.node) for one in found])} asked before {script.at(first.started)} joins "
        f"the group: each of {started} ranks takes itself for the only one, rank 0 of 1, and keeps that: "
        f"{script.at(first.read)} reads {script.quote(first.read)}. Shares, guards and files then go by it.",
        hint=f"Ask the launcher, which has told it already: {told}."
        if not script.graph.spawn_sites
        else f"Join the group above {script.at(first.node)}: {script.quote(first.started)}.",
        where=lines(script, [*(one.node for one in found), first.started]),
        ranks=tuple(range(started)),
        severity=Severity.ERROR,
        fix=asked_of_launcher(script, found),
    )


def _as_hit(script: Script, cause: CauseInText, started: int) -> Hit:
    where, who = lines(script, cause.nodes), tuple(range(started))
    return Hit(cause.says, cause.hint, where, ranks=who, severity=Severity.ERROR, fix=cause.fix)


def _stuck_at_the_start(evidence: Evidence, started: int) -> Hit | None:
    from grader.model.run import Ending

    waiting = [
        r
        for r in evidence.record.ranks
        if r.waiting is not None and r.waiting.operation.startswith("rendezvous")
    ]
    failed = [
        r for r in evidence.record.ranks
        if r.failure is not None and "world" in r.failure.message.lower() and "rank" in r.failure.message.lower()
    ]  # fmt: skip
    joined = any(g.op == "init" for r in evidence.trace.ranks for g in r.groups)
    blame = [x for x in literals(evidence.script) if x.asked is not None and x.asked != started]
    stopped = evidence.record.ending in (Ending.DEADLOCKED, Ending.TIMED_OUT, Ending.CRASHED)
    if joined or not blame or not stopped or not (waiting or failed):
        return None
    first = blame[0]
    sites = [r.waiting.site for r in waiting if r.waiting is not None]
    script = evidence.script
    return Hit(
        message=f"{ranks(r.rank for r in (waiting or failed))} never got past `init_process_group`: "
        f"{script.at(first.node)} asks for {first.asked} processes, {script.quote(first.node)}, but {started} were "
        "started, so those that came wait for others that don't exist.",
        hint=_HINT,
        where=(script.location(first.node), *places(sites)),
        ranks=tuple(r.rank for r in (waiting or failed)),
        details={"started": started, "asked": first.asked},
        severity=Severity.ERROR,
        evidence=EvidenceKind.OUTSIDE,
    )


def _group(evidence: Evidence, started: int) -> Hit | None:
    inits = {r.rank: next((g for g in r.groups if g.op == "init"), None) for r in evidence.trace.ranks}
    other = {n: g for n, g in inits.items() if g is not None and g.world_size not in (0, started)}
    if not other:
        return None
    sizes = sorted({g.world_size for g in other.values()})
    sites = [g.site for g in other.values()]
    script = evidence.script
    read = list(told_by_variables(script, sites[0]))
    told = ""
    if read:
        names = listed([f"`{script.ranks.environment(n)}`" for n in read])
        told = f" {script.at(read[0])} reads {names}, which torchrun does not set."
    return Hit(
        message=f"{started} ranks were asked for, but {at(sites[0], 'the script')} made a group of {listed(sizes)}: "
        f"{ranks(other)} took part in a group that is not the one of all, and knows nothing of the rest.{told}",
        hint=START_ALL if evidence.facts.launcher == "python" else _HINT,
        where=(*lines(script, read), *places(sites)),
        ranks=tuple(other),
        details={"started": started, "group": sizes},
        severity=Severity.ERROR,
    )


def _samplers(evidence: Evidence) -> Hit | None:
    """Training samplers that divide by another number than that of the ranks which train."""
    training = evidence.trace.trainers
    count = len(training) or evidence.trace.world_size
    shares = evidence.ledger.num_shares
    ids = {
        (s.rank, s.loader.id)
        for stream in evidence.ledger.training
        for e in stream.epochs
        for s in e.shards
        if s.loader
    }
    wrong: dict[int, Loader] = {}
    for rank in training:
        for loader in rank.loaders:
            divides = loader.num_replicas not in (None, 1, count, evidence.trace.world_size, shares)
            if divides and (rank.rank, loader.id) in ids:
                wrong[rank.rank] = loader
    if not wrong:
        return None
    first = next(iter(wrong.values()))
    return Hit(
        message=f"{count} ranks trained, but the sampler of the loader at {at(first.site, 'an unknown line')} deals "
        f"the data out to {first.num_replicas}: shards that belong to ranks which were never started are read by "
        "nobody, or some ranks share one.",
        hint=_HINT,
        where=places(x.site for x in wrong.values()),
        ranks=tuple(wrong),
        details={"ranks": count, "num_replicas": first.num_replicas},
    )
