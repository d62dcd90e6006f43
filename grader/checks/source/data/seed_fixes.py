"""Random splits and orders drawn from a generator that is seeded alike on all ranks, as edits; seeds with the rank."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.fix import Fix

_GENERATORS = {"torch.utils.data.random_split", "torch.randperm", "torch.utils.data.RandomSampler"}
_METHODS = {"random.shuffle", "random.sample", "numpy.random.permutation", "numpy.random.shuffle"}


def seeded_alike(script: Script, *calls: ast.Call) -> Fix | None:
    """All of the calls at once; None where one of them is drawn in a way that has no such spelling."""
    edits = Edits(script)
    for call in calls:
        name = script.names.qualified(call.func) or ""
        if name in _GENERATORS:
            edits.give(call, "generator", f"{edits.name('torch.Generator', call)}().manual_seed(0)")
        elif name in _METHODS and isinstance(call.func, ast.Attribute):
            module, _, method = name.rpartition(".")
            maker = "Random" if module == "random" else "default_rng"
            edits.replace(call.func, f"{edits.name(f'{module}.{maker}', call)}(0).{method}")
        else:
            edits.give_up()
    return edits.fix("Draws the same on every rank.")


def by_rank(script: Script, seed: ast.Call) -> str:
    """A call that seeds all ranks alike, with the rank added to its seed; "" where it has no plain seed."""
    given = seed.args[0] if len(seed.args) == 1 and not seed.keywords else None
    if not isinstance(given, ast.Name | ast.Attribute | ast.Constant | ast.BinOp | ast.Call):
        return ""
    tree, edits = script.names.tree(seed), Edits(script)
    joined = any(
        tree is script.names.tree(c) and tree.scope(c) is tree.scope(seed) and start(c) < start(seed)
        for c in script.calls("torch.distributed.init_process_group")
    )
    rank = f"{edits.name('torch.distributed.get_rank', seed)}()" if joined else 'int(os.environ["RANK"])'
    return f"{edits.text(seed.func)}({edits.text(given)} + {rank})"


def together(fixes: Sequence[Fix | None]) -> Fix | None:
    """All of them as one, as one alone mends nothing; None where one is lacking."""
    known = [fix for fix in fixes if fix is not None]
    edits = tuple(dict.fromkeys(edit for fix in known for edit in fix.edits))
    return Fix(known[0].summary, edits) if known and len(known) == len(fixes) else None
