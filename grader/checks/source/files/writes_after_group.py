"""Files that are written when the process group is gone, so that no test of the rank holds any ranks back."""

from __future__ import annotations

import ast

from grader.checks.source.calls.ways import runs
from grader.checks.source.causes import CauseInText, stands_at
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import later_in_block
from grader.model.call_site import Site

_MAX_DEPTH = 4


def written_after_group(script: Script, write: ast.Call, destroyed: Site | None) -> CauseInText | None:
    """The statement below the group's end that leads to a write under a test of the rank; None without such a test.

    Args:
        write: the call that writes. destroyed: where the run took the group down before it.
    """
    guard = script.guards.partial(write) if destroyed is not None else None
    ends = [c for c in script.called("destroy_process_group") if stands_at(script, c, destroyed)]
    if guard is None or not ends:
        return None
    later = _below(script, ends[0], write)
    moved = f"Move {script.quote(later)} from {script.at(later)}" if later is not None else "Write it"
    return CauseInText(
        (*((later,) if later is not None else ()), ends[0], guard.test),
        f"{script.at(ends[0])} had taken the process group down before, and without one the test "
        f"{script.quote(guard.test)} ({script.at(guard.test)}) lets every rank through.",
        f"{moved} above {script.quote(ends[0])} ({script.at(ends[0])}): only as long as there is a group do ranks know "
        "which of them is rank 0.",
    )


def _below(script: Script, end: ast.Call, write: ast.Call) -> ast.stmt | None:
    """The statement after the group's end, in the same block, that writes or calls what does."""
    tree = script.names.tree(end)
    after = later_in_block(tree.parent, tree.statement(end))
    return next((s for s in after if runs(script.graph, s, {write}, _MAX_DEPTH)), None)
