"""Each rank's own GPU, written into a script whose ranks all use the same one.

For processes that a launcher has started, which tells each the number of its device on its machine.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.devices.cuda_indices import asks_current
from grader.checks.source.ranks.rank_expressions import Strength
from grader.checks.source.ranks.written_ranks import local_rank
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.fix import Fix

_SETTER = "torch.cuda.set_device"
PIN = (
    'Pin each rank to its own: `local_rank = int(os.environ["LOCAL_RANK"])`, `if torch.cuda.is_available(): '
    'torch.cuda.set_device(local_rank)`, `device = torch.device("cuda", local_rank) if torch.cuda.is_available() else '
    'torch.device("cpu")`.'
)
"""What to write where nothing chooses a device."""
OWN = (
    "The current device is number 0 in every process until it sets another. Take the rank's number on its machine: "
    '`torch.device("cuda", int(os.environ["LOCAL_RANK"]))`.'
)
"""What to write where the current device is asked for before it was chosen."""


def pinning(script: Script, fixed: Sequence[ast.AST], current: Sequence[ast.AST], pinned: bool) -> Fix | None:
    """Devices by local rank.

    Args:
        script: the script.
        fixed: numbers or texts that name one GPU, as they are written, and calls that ask for the current one's.
        current: calls that mean the current device. pinned: something of these chooses it already.
    """
    edits = Edits(script)
    for value in fixed:
        if isinstance(value, ast.Call) and asks_current(script, value):
            edits.replace(value, local_rank(script, edits, value))
            continue
        if not isinstance(value, ast.Constant):
            return None
        number = local_rank(script, edits, value)
        text = isinstance(value.value, str)
        inner = number.replace('"', "'")
        edits.replace(value, f'f"cuda:{{{inner}}}"' if text else number)
    if current and not pinned:
        place = _after_start(script)
        if place is None:
            return None
        number = local_rank(script, edits, place)
        cuda = edits.name("torch.cuda.is_available", place)
        edits.after(place, f"if {cuda}():", f"    {edits.name(_SETTER, place)}({number})")
    return edits.fix("Has each rank use its own GPU, the one of its local rank.")


def placed_too_early(
    script: Script, current: Sequence[ast.Call], setters: Sequence[ast.Call]
) -> list[ast.Call]:
    """What goes to the current device above the line that chooses it, in the same block of the script."""
    if not setters:
        return []
    first = min(setters, key=start)
    tree = script.names.tree(first)
    beside = all(script.names.tree(s) is tree and tree.scope(s) is tree.scope(first) for s in setters)
    return [
        call
        for call in current
        # A `torch.device` says where something is to go later; these two move it at once.
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to") and beside
        if script.names.tree(call) is tree
        and tree.scope(call) is tree.scope(first)
        and start(call) < start(first)
    ]


def started_by_hand(script: Script) -> bool:
    """One command per process, its rank on the command line: each may run on a machine of its own with one GPU."""
    starts = [script.argument(c, "rank") for c in script.calls(INIT)]
    told = [r for r in starts if r is not None and r is not UNKNOWN]
    numbered = any(script.ranks.rank(r) is Strength.SURE for r in told)
    launched = any("LOCAL_RANK" in t.constants or "local_rank" in t.attribute_loads for t in script.trees)
    return bool(told) and len(told) == len(starts) and not (numbered or launched or script.graph.spawn_sites)


def _after_start(script: Script) -> ast.stmt | None:
    """The one line that starts the group, with which the ranks become several."""
    calls = script.calls(INIT)
    if len(calls) != 1:
        return None
    tree = script.names.tree(calls[0])
    statement = tree.statement(calls[0])
    above = tree.parent.get(statement)
    return (
        statement
        if isinstance(statement, ast.Expr) and above is (tree.function(statement) or tree.root)
        else None
    )
