"""The script starts ranks of its own.

## What it finds
`mp.spawn` or `Process` with a function that joins a process group, in a script that a launcher starts once per rank
already.

## Why it matters
`torchrun --nproc_per_node=N` starts N copies of the script. If each copy starts N ranks, N² processes fight for the
same devices and for one port, or each copy trains a whole run of its own. Spawning is a fine way to start ranks
from a plain `python train.py`; with a launcher it is one way too many.

## Example
```python
import torch.distributed as dist
import torch.multiprocessing as mp

def worker(rank, world_size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=world_size)
    train(rank)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(worker, args=(2,), nprocs=2)
```

## Use instead
```python
import os
import torch.distributed as dist

def main():
    dist.init_process_group("gloo")  # rank and world size come from torchrun
    train(int(os.environ["LOCAL_RANK"]))
    dist.destroy_process_group()

if __name__ == "__main__":
    main()
```

## How it is seen
In the source, as a hint only, because nobody can see there how a script will be launched; `grader lint` without a task
says it only of scripts that read a launcher's variables, too. Nothing is said where the task's launcher is `python`, as
its scripts have to. In the run it is an error when a rank started by the launcher starts processes that form a group of
their own. Reference:
https://pytorch.org/docs/stable/elastic/run.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.ranks.own_ranks import needs_no_launcher, starts_of_ranks
from grader.checks.source.script import Script
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event, RankTrace

SEVERITY = Severity.ERROR


_ADDRESS = ("MASTER_ADDR", "MASTER_PORT")


def check_source(script: Script) -> Iterable[Hit]:
    """Hint at spawned functions that join a group, unless only a run without a launcher gets there."""
    if needs_no_launcher(script):
        return
    for call in starts_of_ranks(script):
        yield Hit(
            message=f"{script.at(call)} starts ranks of its own: {script.quote(call)}. torchrun has "
            "started one process per rank already; if each of them starts more, they fight for the same "
            "devices and port.",
            hint="Run the worker's body once per process, with `rank` and `world_size` from torchrun's environment "
            "(`dist.init_process_group` without arguments), and drop the spawning.",
            where=(script.location(call),),
            severity=Severity.HINT,
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that start processes to do the training that they were started for."""
    if evidence.facts.launcher == "python":
        return verified("The script was started once, and starts its ranks itself, as this task asks.")
    spawning: list[tuple[RankTrace, Event]] = []
    for rank in evidence.trace.ranks:
        # A rank that is in a group or trains by itself may well start helpers.
        if rank.steps or any(g.op == "init" for g in rank.groups):
            continue
        own = [e for e in rank.events("process") if _is_own(e)]
        spawning += [(rank, own[0])] if own else []
    if spawning:
        return flagged(_run_hit(evidence.script, spawning))
    if any(r.steps or r.groups for r in evidence.trace.ranks):
        return verified("Ranks trained in the processes that the launcher started.")
    return not_observable("No rank trained or joined a process group.")


def _is_own(event: Event) -> bool:
    """True for worker processes of the script itself; other libraries' helpers and shell commands don't train."""
    return event.fields.get("op") in ("spawn", "fork") and event.fields.get("by", "") in (
        "",
        "torch",
        "grader",
    )


def _run_hit(script: Script, spawning: list[tuple[RankTrace, Event]]) -> Hit:
    first = spawning[0][1]
    target = first.fields.get("target")
    named = isinstance(target, str) and target and not target.startswith("_")
    what = f"`{target}` in new processes" if named else "new processes"
    return Hit(
        message=(
            f"{ranks(r.rank for r, _ in spawning)} started {what} at {at(first.site, 'an unknown line')} and "
            "took no part in training. The launcher has already started one process per rank: each of them now "
            "starts a whole group of its own, which clash over the same address or train the same thing "
            "several times."
        ),
        hint=(
            "Let torchrun start the ranks: call the training function directly "
            "and read `LOCAL_RANK` from the environment." + _leave_out(script)
        ),
        where=places(e.site for _, e in spawning),
        ranks=tuple(r.rank for r, _ in spawning),
        details={"processes": {str(r.rank): len(r.events("process")) for r, _ in spawning}},
        severity=Severity.ERROR,
    )


def _leave_out(script: Script) -> str:
    """What else the spawning needed and a launcher sets itself."""
    found = [
        node
        for tree in script.trees
        for node in ast.walk(tree.root)
        if (isinstance(node, ast.keyword) and node.arg in _ADDRESS)
        or (isinstance(node, ast.Subscript) and script.ranks.environment(node) in _ADDRESS)
    ]
    stored = [n for n in found if isinstance(n, ast.keyword) or isinstance(n.ctx, ast.Store)]
    if not stored:
        return ""
    return f" Drop what sets the address at {script.at(stored[0])}, too: torchrun has set it already."
