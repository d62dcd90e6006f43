"""One rank leaves while the others wait.

## What it finds
`break`, `continue`, `return` and `sys.exit()` in training, and loops whose length was set, on a decision that one rank
makes for itself: under a test of the rank, or on a loss or metric of its own share of the data.

## Why it matters
Every backward pass of a DDP model and every collective is a meeting of all ranks. The rank that has left never comes
to the next one, so the others wait until the group's time limit and the run dies far from the line that caused it.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
stop = False
for epoch in range(100):
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
    if dist.get_rank() == 0:
        stop = score(model.module) > 0.95
    if stop:
        break
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
stop = torch.zeros(1)
for epoch in range(100):
    for x, y in loader:
        torch.nn.functional.cross_entropy(model(x), y).backward()
    if dist.get_rank() == 0:
        stop.fill_(score(model.module) > 0.95)
    dist.broadcast(stop, src=0)
    if stop.item():
        break
dist.destroy_process_group()
```

## How it is seen
In the source, the tests before each exit are followed to a rank, to an assignment that some ranks make, or to a batch
of this rank's share; what went through a collective on its way is shared and right. In the run, one rank's trace ends
or leaves a loop while the others wait in it. Reference: "Distributed early stopping" is what `all_reduce` of a flag is
for, https://pytorch.org/docs/stable/distributed.html#collective-functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, places, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.sums_on_one_rank import sum_on_one_rank
from grader.checks.source.data.uneven_rounds import runs_dry_alone
from grader.checks.source.ranks.early_exits import EarlyExit, EarlyExits, leaves_a_loop
from grader.checks.source.ranks.shared_stops import decided_together
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import loop_above
from grader.checks.source.values.own_numbers import drawn_alike
from grader.model.finding import EvidenceKind, Location, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.early_leavers import EarlyLeaver

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST001", "DIST006", "GRAD009")
_DOES = {
    "break": "leaves the loop under",
    "continue": "skips the rest of the round under",
    "return": "leaves the function under",
    "sys.exit": "ends the process under",
    "loop": "runs the loop by",
    "except": "swallows an error",
}
_PLAIN = ("break", "continue", "return")
_HINT = (
    "Let all ranks decide together: put the decision into a tensor, share it (`dist.broadcast(stop, src=0)` from the "
    "rank that knows, or `dist.all_reduce(stop, op=dist.ReduceOp.MAX)` where each rank has a say), then test the "
    "shared value on every rank."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag exits, skipped rounds and lengths of loops that ranks decide on by themselves."""
    if not script.joins_group or runs_dry_alone(script):
        return
    exits = EarlyExits(script)
    for parting in exits.all():
        severity = _severity(script, parting)
        if severity is not None and not _is_for_dist003(script, parting):
            yield _source_hit(script, parting, severity)


def _severity(script: Script, parting: EarlyExit) -> Severity | None:
    """None: nothing to say. The whole rule's where ranks surely part, a hint where they only might."""
    in_loop = loop_above(script.names.tree(parting.node).parent, parting.node) is not None
    if parting.fails:
        # An error code ends all ranks under torchrun: a rough way to stop, not a way to hang.
        return Severity.HINT if in_loop and parting.apart.kind == "batch" else None
    return Severity.HINT if parting.apart.kind in ("clock", "error") else Severity.ERROR


def _is_for_dist003(script: Script, parting: EarlyExit) -> bool:
    """A plain early exit before a collective by name: DIST003 points at the collective itself."""
    if parting.word not in ("return", "continue", "sys.exit"):
        return False
    guard = script.guards.partial(parting.missed)
    named = (
        guard is not None and guard.test is parting.test and parting.missed not in script.training.backwards
    )
    return named and not leaves_a_loop(script, parting.missed, guard.test if guard else parting.node)


def _source_hit(script: Script, parting: EarlyExit, severity: Severity) -> Hit:
    test = f" {script.quote(parting.test)}" if parting.test is not None else ""
    why = {
        "guard": "which holds on some ranks only",
        "batch": f"which each rank works out from its own share of the data ({script.at(parting.apart.node)})",
        "draw": f"which each rank decides by a draw of its own ({script.at(parting.apart.node)})",
        "clock": "which each rank reads from its own clock",
        "error": "which may strike one rank alone",
    }[parting.apart.kind]
    if parting.apart.kind == "guard" and parting.apart.node is not parting.test:
        why = f"which {script.at(parting.apart.node)} sets on some ranks only"
    what = script.quote(parting.missed)
    goes = "torchrun then ends the others in mid-step" if parting.fails else (
        "a rank that goes its own way here leaves the others waiting"
    )  # fmt: skip
    return Hit(
        message=f"{script.at(parting.node)} {_DOES[parting.word]}{test}, {why}. All ranks have to meet in {what} "
        f"({script.at(parting.missed)}): {goes}.",
        hint=_together(script, parting) or _HINT,
        where=(script.location(parting.node),),
        severity=None if severity is SEVERITY else severity,
    )


def _together(script: Script, parting: EarlyExit) -> str:
    """How all ranks decide alike, in the script's own words; "" where that takes more than a line or two."""
    if parting.apart.kind == "draw":
        return drawn_alike(script, parting.apart.node)
    return decided_together(script, parting.node) if parting.word in _PLAIN else ""


def check_run(evidence: Evidence) -> Observation:
    """Flag runs that stood still or broke because some ranks had left their training loop, or skipped a step."""
    from grader.checks.run.endings.early_leavers import early_leavers, skipped_step
    from grader.model.run import Ending

    if evidence.record.ending is Ending.COMPLETED:
        steps = {len(r.steps) for r in evidence.trace.ranks if r.steps}
        clocks = () if runs_dry_alone(evidence.script) else _by_clock(evidence.script)
        if len(steps) == 1 and clocks:
            return flagged(*clocks)
        left = skipped_step(evidence)
        if left is not None and left.met:
            return verified(
                f"All ranks came to every collective, although {ranks(left.ranks).lower()} {left.sentence}."
            )
        if len(steps) == 1 and (left is None or not _exits(evidence.script, left)):
            seen = f" for {count(steps.pop(), 'step')}" if evidence.counts_steps else ""
            return verified(f"All ranks stayed together{seen}.")
    found = early_leavers(evidence)
    if found is None:
        return not_observable("The run gives no sign of a rank that left before the others.")
    return flagged(_run_hit(evidence, found))


def _by_clock(script: Script) -> tuple[Hit, ...]:
    """Loops that ranks leave by clocks of their own: a run in which these agreed says nothing of the next one."""
    together = " In this run the clocks agreed."
    found = (p for p in EarlyExits(script).all() if p.apart.kind == "clock")
    hits = (_source_hit(script, p, severity) for p in found if (severity := _severity(script, p)) is not None)
    return tuple(replace(hit, message=hit.message + together) for hit in hits)


def _run_hit(evidence: Evidence, left: EarlyLeaver) -> Hit:
    found = _exits(evidence.script, left)
    lines = _lines(evidence.script, found)
    together = _together(evidence.script, found[0]) if len(found) == 1 else ""
    where = f" `{lines[0].path}:{lines[0].line}` lets a rank decide that for itself." if lines else ""
    half = sum_on_one_rank(evidence.script) if not found else None
    if half is not None:
        lines, where = told_once(map(evidence.script.location, (half.call, half.read))), f" {half.says}."
    waiting = f"; {left.waiting}" if left.waiting else ""
    return Hit(
        message=f"{ranks(left.ranks)} {left.sentence}{waiting}.{where} Every backward pass of a DDP model and every "
        "collective is a meeting of all ranks, so those that go on wait for partners that never come.",
        hint=half.hint if half is not None else together or _HINT,
        where=tuple(dict.fromkeys((*lines, *places(left.sites)))),
        ranks=left.ranks,
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}, "left": left.kind,
                 "others": [at(s) for s in left.sites if s is not None]},
        evidence=EvidenceKind.OUTSIDE if left.kind == "ended" else EvidenceKind.TRACE,
    )  # fmt: skip


def _exits(script: Script, left: EarlyLeaver) -> list[EarlyExit]:
    """Exits of the text that may be the one the rank took."""
    words = {
        "ended": ("break", "return", "sys.exit", "loop"), "loop": ("break", "return", "loop"),
        "skipped": ("continue", "except"),
    }[left.kind]  # fmt: skip
    exits = EarlyExits(script)
    found = [p for p in exits.all() if p.word in words and not p.fails]
    return found or (list(exits.steps_left_out()) if left.kind == "skipped" else [])


def _lines(script: Script, found: list[EarlyExit]) -> tuple[Location, ...]:
    """These exits, each with what decides on it."""
    nodes = [n for p in found for n in (p.node, p.test, p.apart.node if p.apart.kind == "guard" else None)]
    return told_once(script.location(n) for n in nodes if n is not None)
