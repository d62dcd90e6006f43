"""One rank evaluates through the DistributedDataParallel wrapper.

## What it finds
A forward pass of the wrapped model in a validation that a test of the rank keeps from the other ranks.

## Why it matters
The wrapper's forward pass is a meeting place: where the network has buffers (BatchNorm's running statistics), it
broadcasts them from rank 0 to all the others. The others are not there. The run stands still, or the broadcast is
taken for the next one that the others make, and from then on nobody meets whom they should. Without buffers it happens
to work, until somebody adds a BatchNorm layer.

## Example
```python
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
model = DistributedDataParallel(net)
train(model)
if dist.get_rank() == 0:
    model.eval()
    with torch.no_grad():
        for images, labels in val_loader:
            correct += (model(images).argmax(dim=1) == labels).sum()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
model = DistributedDataParallel(net)
train(model)
if dist.get_rank() == 0:
    model.eval()
    with torch.no_grad():
        for images, labels in val_loader:
            correct += (model.module(images).argmax(dim=1) == labels).sum()  # the network without its wrapper
dist.destroy_process_group()
```

## How it is seen
In the source: calls of the wrapped model that a rank test leads to, through helpers too. A network that is known to
hold no buffers is not flagged; of one that can't be looked into it is a hint. In the run: the ranks that evaluated
through the wrapper, and whether the run stood still; a run that got through with buffers is a warning. See "Forward
Pass" in https://pytorch.org/docs/stable/notes/ddp.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.models.networks import Holds
from grader.checks.source.models.partial_forwards import PartialForward, partial_forward
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.stuck_ranks import StuckRank
    from grader.model.trace import Event, RankTrace, Wrap

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
_HINT = (
    "Evaluate the network inside the wrapper on that rank (`model.module(x)`), or let every rank evaluate its own "
    "share and add up the counts."
)
_WHO = {RankSet.MAIN: "rank 0", RankSet.OTHERS: "the ranks other than 0", RankSet.SOME: "some ranks"}
_FORWARD = ("DDP buffer broadcast", "DDP synchronisation")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag forward passes through the wrapper, direct or in helpers, that a rank test keeps from some ranks."""
    training = script.training
    if not training.wraps or training.framework:
        return
    told: set[ast.AST] = set()
    for call in script.all_calls():
        path = partial_forward(script, call)
        if path is None or path.steps[0] in told:
            continue
        told.add(path.steps[0])
        hit = _hit(script, path)
        if hit is not None:
            yield hit


def _hit(script: Script, path: PartialForward) -> Hit | None:
    last = path.steps[-1]
    held = script.networks.buffers(path.network)
    quiet = script.training.gradients_off(last) or _evaluates(script, last)
    if held is Holds.NO and quiet:
        return None
    first = path.steps[0]
    through = "" if first is last else f", which calls {script.quote(last)} at {script.at(last)}"
    which = path.guard.condition.which
    who = f"{_WHO[which]} {'runs' if which is RankSet.MAIN else 'run'}"
    if held is Holds.YES:
        why = (
            "The wrapper broadcasts the network's buffers (BatchNorm's statistics) before the forward pass, and that "
            "takes all ranks: the run stands still, or the ranks meet in the wrong call."
        )
    elif held is Holds.NO:
        why = "With gradients on the wrapper prepares an averaging of gradients that the other ranks take no part in."
    else:
        why = (
            "If the network has buffers, such as BatchNorm's statistics, the wrapper broadcasts them before the "
            "forward pass, and that takes all ranks."
        )
    return Hit(
        message=f"{script.at(first)} has {script.quote(first)}{through}, under {script.quote(path.guard.test)}: only "
        f"{who} this forward pass, and not the network inside but the DistributedDataParallel wrapper. {why}",
        hint=_HINT,
        where=tuple(script.location(c) for c in dict.fromkeys((first, last))),
        severity=None if held is Holds.YES else Severity.HINT,
        fix=_fix(script, path),
    )


def _fix(script: Script, path: PartialForward) -> Fix | None:
    """The network inside, where the one rank runs or hands on what can be nothing but the wrapper."""
    edits, last = Edits(script), path.steps[-1]
    func = (
        last.func.value if isinstance(last.func, ast.Attribute) and last.func.attr == "forward" else last.func
    )
    handed = func if path.steps[0] is last else path.network
    origins = script.values.origins(handed)
    sure = (
        isinstance(handed, ast.Name | ast.Attribute)
        and origins
        and all(o in script.training.wraps for o in origins)
    )
    if not sure or not script.names.tree(handed).inside(handed, path.steps[0]):
        return None
    edits.append(handed, ".module")
    return edits.fix("Runs the network inside the wrapper.")


def _evaluates(script: Script, call: ast.Call) -> bool:
    tree = script.names.tree(call)
    outer: ast.AST = tree.function(call) or tree.root
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "eval" for c in tree.calls_within(outer))


def check_run(evidence: Evidence) -> Observation:
    """Flag runs in which some ranks evaluated a model with buffers through its wrapper while others did not."""
    from grader.checks.run.metrics.evaluation_passes import through_wrapper

    stopped = _stopped(evidence)
    if stopped is not None:
        return flagged(stopped)
    through = {r.rank: through_wrapper(r) for r in evidence.trace.ranks if r.start is not None}
    some = sorted(r for r, events in through.items() if events)
    others = sorted(r for r, events in through.items() if not events and _came_past(evidence, r, some))
    if not some:
        evaluated = any(r.events("evaluation") for r in evidence.trace.ranks)
        return (
            verified("No rank evaluated through the DistributedDataParallel wrapper.")
            if evaluated
            else not_observable("No evaluation was seen.")
        )
    if not others:
        return verified(f"{ranks(some)} evaluated through the wrapper, and no rank stayed away.")
    first = through[some[0]][0]
    wrap = _wrap(evidence.trace.ranks[some[0]], first)
    if wrap is None:
        return not_observable("RankSet wrapper the evaluation went through was not told.")
    if not wrap.num_buffers or wrap.broadcast_buffers is False:
        return verified(
            f"{ranks(some)} alone evaluated through the wrapper, which has no buffers to broadcast, so nobody waited."
        )
    return flagged(_run_hit(evidence, some, others, through, wrap))


def _stopped(evidence: Evidence) -> Hit | None:
    """A run that stood still with ranks inside the wrapper's forward pass, on a line that a rank test guards.

    Such a pass never reached the network itself, so the trace has no evaluation to show for it.
    """
    from grader.checks.run.endings.stuck_ranks import stuck_ranks

    inside = [
        s
        for s in stuck_ranks(evidence)
        if s.operation in _FORWARD and s.guard is not None and s.site is not None
    ]
    if not inside or len(inside) == evidence.world_size or any(_trains_at(evidence, s) for s in inside):
        return None
    rest = [s for s in stuck_ranks(evidence) if s not in inside]
    others = "; ".join(s.call() for s in rest[:8])
    return Hit(
        message=(
            f"{at(inside[0].site)} ran the model through its DistributedDataParallel wrapper on "
            f"{ranks(s.rank for s in inside).lower()} only. The wrapper's forward pass broadcasts the network's "
            f"buffers, which takes all ranks, and stopped the run: {others}."
        ),
        hint=_HINT,
        where=places(s.site for s in inside),
        ranks=tuple(s.rank for s in inside),
        details={"waiting_in": {str(s.rank): s.operation for s in inside}},
        evidence=EvidenceKind.OUTSIDE,
    )


def _trains_at(evidence: Evidence, stuck: StuckRank) -> bool:
    """Whether the loop around the line that a rank stands at also runs `backward`."""
    site = stuck.site
    tree = next((t for t in evidence.script.trees if site is not None and t.path == site.path), None)
    if tree is None or site is None:
        return False
    around = [n for n in tree.loops if n.lineno <= site.line <= (n.end_lineno or 0)]
    return bool(around) and evidence.script.training.runs_backward(max(around, key=lambda n: n.lineno))


def _came_past(evidence: Evidence, rank: int, some: list[int]) -> bool:
    """Whether a rank had come as far as the others' evaluation: it trained as much, or the run went on to its end."""
    from grader.model.run import Ending

    if not some or evidence.record.ending is Ending.COMPLETED:
        return True
    evaluating, other = evidence.trace.ranks[some[0]], evidence.trace.ranks[rank]
    return len(other.steps) >= len(evaluating.steps) and _training_over(evidence, rank) >= _training_over(
        evidence, some[0]
    )


def _training_over(evidence: Evidence, rank: int) -> int:
    """Training passes that a rank has been through."""
    shards = [s for stream in evidence.ledger.training for s in stream.shards(rank)]
    return sum(s.exhausted is not None for s in shards)


def _wrap(rank: RankTrace, event: Event) -> Wrap | None:
    number = event.fields.get("wrap")
    return next((w for w in rank.wraps if w.id == number and w.kind == "ddp"), None)


def _run_hit(
    evidence: Evidence, some: list[int], others: list[int], through: dict[int, list[Event]], wrap: Wrap
) -> Hit:
    from grader.model.run import Ending

    events = [e for r in some for e in through[r]]
    site = next((e.site for e in events if e.site), None)
    finished = evidence.record.ending is Ending.COMPLETED
    end = (
        "This time the broadcasts happened to pair up with later ones of the other ranks, and the run got through; "
        "one collective more in between, and it stands still."
        if finished
        else f"{ranks(some)} waited there for {ranks(others).lower()}, who had gone on."
    )
    return Hit(
        message=(
            f"{at(site, 'An evaluation')} ran the model through its DistributedDataParallel wrapper on "
            f"{ranks(some).lower()} only. The wrapper broadcasts the network's {count(wrap.num_buffers, 'buffer')} "
            f"before the forward pass, and a broadcast takes all ranks. {end}"
        ),
        hint=_HINT,
        where=places(e.site for e in events),
        ranks=tuple(some),
        details={
            "evaluations_through_wrapper": {str(r): len(e) for r, e in through.items()},
            "buffers": wrap.num_buffers,
        },
        severity=Severity.WARNING if finished else Severity.ERROR,
    )
