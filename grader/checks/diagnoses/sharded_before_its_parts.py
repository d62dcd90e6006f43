"""A model was sharded as a whole before its parts.

## What happened
`fully_shard` raised for a block of a model that had been given to it as a whole before.

## Why
Each parameter belongs to one unit, that of the first call that comes to it. After `fully_shard(model)` all of them
belong to the model's own, and nothing is left for a block's.

## Mend it
Shard from the inside to the outside: `fully_shard(block)` for each block, then `fully_shard(model)` for what is left.
"""

from __future__ import annotations

import ast

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.endings.unfinished_shards import stopped_while_sharding
from grader.checks.source.causes import lines, stands_at
from grader.checks.source.syntax.nodes import LOOPS, ancestors
from grader.model.diagnosis import Diagnosis

ORDER = 41
_ALREADY = ("value was None when it should not be", "already")
"""What torch says of parameters that another unit has."""


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where a call of `fully_shard` raised and another one, at another line, had sharded more before."""
    cause, script = run.cause, run.evidence.script
    call = stopped_while_sharding(run.evidence)
    if cause is None or call is None or not any(words in run.words for words in _ALREADY):
        return None
    rank = next((r for r in run.evidence.trace.ranks if r.rank == cause.rank), None)
    earlier = [w for w in rank.wraps if w.kind == "fsdp2"] if rank is not None else []
    others = [c for c in script.called("fully_shard") if c is not call]
    whole = next((c for c in others if any(stands_at(script, c, w.site) for w in earlier[:1])), None)
    if whole is None:
        return None
    tree = script.names.tree(call)
    loop = next((a for a in ancestors(tree.parent, call, tree.function(call)) if isinstance(a, LOOPS)), None)
    given = [ast.unparse(c.args[0]) if c.args else "" for c in (call, whole)]
    if script.updates.loops_around(whole) or not (loop is not None or given[0].startswith(f"{given[1]}.")):
        return None
    below = f"the loop at {script.at(loop)}" if isinstance(loop, ast.AST) else script.quote(call)
    same = script.names.tree(whole) is tree and tree.function(whole) is tree.function(call)
    move = f"Move {script.quote(whole)} from {script.at(whole)} below {below}" if same else (
        f"Let {script.quote(call)} run before {script.quote(whole)} ({script.at(whole)})"
    )  # fmt: skip
    return run.crash(
        title="The model was sharded as a whole before its parts",
        what=f"could not shard a part by {script.quote(call)} (“{run.words}”),",
        why=f"{script.quote(whole)} at {script.at(whole)} came first, and since then all parameters belong to the unit "
        "of the whole model: nothing is left for one of its parts",
        hint=f"{move}: the blocks first, and the model last, for what is left.",
        where=lines(script, (whole, call)),
    )
