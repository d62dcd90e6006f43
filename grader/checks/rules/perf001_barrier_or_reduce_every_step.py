"""Every training step waits for all ranks, or for the device, more than training needs.

## What it finds
A barrier, a wait for the device, or a reduced number that is read on the host, in every step of the training loop.

## Why it matters
The backward pass of DDP lets ranks meet once per step and hides much of it behind computation. Each further meeting
stops the fast ranks until the slowest has come, and reading a number (`.item()`) stops the host until the device is
done, so that it can't prepare the next step. At a few milliseconds per step that is a large share.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    dist.barrier()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by collectives that one line calls about once per optimizer step, gradients averaged by hand left out. In
the source, by such calls in the training loop that no test of the step number guards. A plain `loss.item()` is so
common, and so often harmless, that nothing is said of it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.collective_calls import COMMON_REDUCING
from grader.checks.source.gradients.shared_divisors import exchanged_for_loss
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, walk
from grader.checks.source.training_loops import Draw
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Collective, RankTrace

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
_WAITS = {"barrier": "waits for all ranks", "monitored_barrier": "waits for all ranks"}
_HOST = {"item", "tolist", "cpu", "numpy"}
_SUMS = ("SUM", "AVG", "")
_BARE_WAITS = ("torch.distributed.barrier", "torch.distributed.monitored_barrier", "torch.cuda.synchronize")
_CLOCKS = ("time.time", "time.perf_counter", "time.monotonic")
_MIN_STEPS = 30
_SMALL = 16
_RARELY = (
    "Add up on the device (`total += loss.detach()`) and bring the sums together once per epoch, or every hundredth "
    "step; a barrier has no place in the loop, since backward already lets the ranks meet."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag waits in training loops that run in every step."""
    if not script.joins_group or not script.training.wraps:
        return
    told: set[ast.AST] = set()
    needed = exchanged_for_loss(script)
    for draw in script.training.draws:
        if not draw.trains:
            continue
        for call in script.names.tree(draw.loop).calls_within(draw.loop):
            what, place = _wait(script, draw, call), script.location(call)
            if (place.path, place.line) in needed:
                continue
            if what and call not in told and _every_step(script, draw, call):
                told.add(call)
                yield Hit(
                    message=f"In every training step {script.at(call)} {what}: {script.quote(call)}. Backward lets the "
                    "ranks meet already; every further wait costs the speed of the slowest.",
                    hint=_RARELY,
                    where=(script.location(call),),
                    fix=_fix(script, call),
                )


def _fix(script: Script, call: ast.Call) -> Fix | None:
    """A wait by itself is taken out; one that something is measured by stays."""
    edits, statement = Edits(script), script.names.tree(call).statement(call)
    alone = isinstance(statement, ast.Expr) and statement.value is call
    named = script.names.qualified(call.func) in _BARE_WAITS
    measured = any(name in _CLOCKS for name, _ in script.calls_under("time."))
    if not alone or not named or measured:
        return None
    edits.remove(statement)
    return edits.fix("Takes the wait out of the training loop.")


def _wait(script: Script, draw: Draw, call: ast.Call) -> str:
    """What a call of the loop waits for, "" where it waits for nothing or nobody can tell."""
    if script.names.qualified(call.func) == "torch.cuda.synchronize":
        return "waits for the device"
    found = script.collectives.of(call)
    waits = next((_WAITS[c.name] for c in found if c.name in _WAITS), "")
    if waits:
        return waits
    if any(c.name in COMMON_REDUCING for c in found) and _read_on_host(script, draw, call):
        return "brings a number of all ranks together and reads it on the host"
    return ""


def _read_on_host(script: Script, draw: Draw, call: ast.Call) -> bool:
    """Whether what was reduced becomes a Python number in the same loop, and not to decide what to do next."""
    tree = script.names.tree(call)
    names = {name_of(n) for a in call.args for n in walk(a) if isinstance(n, ast.Name)}
    statement = tree.statement(call)
    if isinstance(statement, ast.Assign):
        names |= {name_of(t) for t in statement.targets}
    read = False
    for other in tree.calls_within(draw.loop):
        if name_of(other) not in _HOST or not isinstance(other.func, ast.Attribute):
            continue
        if other.func.value is call or name_of(other.func.value) in names - {""}:
            read = True
    tests = [i.test for i in tree.ifs if tree.inside(i, draw.loop)]
    decides = any(isinstance(n, ast.Name) and n.id in names for t in tests for n in walk(t))
    return read and not decides


def _every_step(script: Script, draw: Draw, call: ast.Call) -> bool:
    """Whether no condition stands between the loop and the call, and no inner loop."""
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while above is not None and above is not draw.loop:
        if isinstance(
            above, ast.If | ast.IfExp | ast.Try | ast.For | ast.While | ast.FunctionDef | ast.Lambda
        ):
            return False
        above = tree.parent.get(above)
    held_back = any(
        isinstance(e, ast.Continue) and tree.inside(e, draw.loop) and e.lineno < call.lineno
        for e in tree.exits
    )
    return above is draw.loop and not held_back and tree.statement(call) in draw.loop.body


def check_run(evidence: Evidence) -> Observation:
    """Flag lines whose barriers or small reductions come about once per step."""
    from grader.checks.run.call_counts import calls_of

    ranks = evidence.trace.trainers
    if len(ranks) < 2:
        return not_observable("Fewer than two ranks took optimizer steps.")
    if min(len(r.steps) for r in ranks) < _MIN_STEPS:
        return not_observable("Too few steps were taken to tell what is done in each of them.")
    if not any(w.kind == "ddp" for r in ranks for w in r.wraps):
        return not_observable(
            "Without DistributedDataParallel, gradients meet in collectives of the script's own."
        )
    needed = exchanged_for_loss(evidence.script)
    found = [f for f in (_per_step(r, needed) for r in ranks) if f is not None]
    if len(found) < len(ranks):
        return verified("No line of the script lets the ranks wait for each other once per step.")
    last, steps = found[0]
    what = (
        "waited for all ranks"
        if "barrier" in last.name
        else f"brought {count(last.numel, 'number')} of each rank together"
        if last.numel is not None
        else "brought something of each rank together"
    )
    times = calls_of(ranks[0], last)
    return flagged(
        Hit(
            message=f"`{last.name}` {what} {times.told} in {count(steps, 'optimizer step')}. Backward lets "
            "the ranks meet already; every further wait costs the speed of the slowest.",
            hint=_RARELY,
            where=place(last.site),
            ranks=tuple(r.rank for r in ranks),
            details={"collective": last.name, "calls": times.number, "steps": steps},
        )
    )


def _per_step(rank: RankTrace, exchanged: frozenset[tuple[str, int]]) -> tuple[Collective, int] | None:
    """The site that one rank calls about as often as it steps, in training; None where there is none."""
    from grader.checks.run.call_counts import calls_of

    by_site: dict[object, list[Collective]] = defaultdict(list)
    begin, end = rank.steps[0].t, rank.steps[-1].t
    for call in rank.collectives:
        waits = "barrier" in call.name
        small = (
            call.name in COMMON_REDUCING and (call.numel or 0) <= _SMALL and call.reduce_op.upper() in _SUMS
        )
        # What belongs to the network, or to the way back through it, can't be done less often.
        needed = call.forward or call.backward or call.differentiated
        if call.site is None or not call.named or needed or (call.site.path, call.site.line) in exchanged:
            continue
        if (waits or small) and begin <= call.t <= end:
            by_site[call.site, call.name].append(call)
    for calls in by_site.values():
        # Of the first 64 calls each is told, so that they can be laid between steps; later ones are counted.
        between, times = _distinct_steps(rank, calls), calls_of(rank, calls[-1])
        most = times.number + (0 if times.exact else 64)
        if most >= 0.85 * len(rank.steps) and between >= 0.8 * min(len(rank.steps), 60):
            return calls[-1], len(rank.steps)
    return None


def _distinct_steps(rank: RankTrace, calls: list[Collective]) -> int:
    """Gaps between steps in which at least one of the calls lies."""
    times = [s.t for s in rank.steps]
    found = set()
    at = 0
    for call in sorted(calls, key=lambda c: c.t):
        while at < len(times) and times[at] < call.t:
            at += 1
        found.add(at)
    return len(found)
