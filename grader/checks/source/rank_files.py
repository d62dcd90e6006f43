"""Files that ranks write for themselves and one rank reads in turn: values that come together on disk."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.file_writes import checkpoints, files
from grader.checks.source.rank_paths import tells_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import end, name_of, start, walk

_READERS = {
    "open": "file", "torch.load": "f", "numpy.load": "file", "pandas.read_csv": "filepath_or_buffer",
    "pandas.read_json": "path_or_buf", "pandas.read_pickle": "filepath_or_buffer",
}  # fmt: skip
_LISTINGS = ("glob", "iglob", "rglob", "iterdir", "listdir", "scandir")


def read_by_one(script: Script) -> list[ast.Call]:
    """Writes of a file of each rank's own that are read back one after the other, once all ranks have met."""
    reads = list(_reads_in_turn(script))
    if not reads:
        return []
    own = [call for call, path in (*checkpoints(script), *files(script)) if tells_rank(script, path)]
    return [call for call in own if any(_met_between(script, call, read) for read in reads)]


def _reads_in_turn(script: Script) -> Iterable[ast.Call]:
    """Reads of one file per rank, or of all that a folder holds."""
    for name, parameter in _READERS.items():
        for call in script.calls(name):
            path = (
                call.args[0]
                if call.args
                else next((k.value for k in call.keywords if k.arg == parameter), None)
            )
            if path is not None and _in_turn(script, path):
                yield call
    for call in script.called("read_text", "read_bytes", "open"):
        if isinstance(call.func, ast.Attribute) and _in_turn(script, call.func.value):
            yield call


def _in_turn(script: Script, path: ast.expr) -> bool:
    loops = (
        origin
        for name in walk(path)
        if isinstance(name, ast.Name)
        for origin in script.values.origins(name)
        if isinstance(origin, ast.For | ast.AsyncFor | ast.comprehension)
    )
    return any(_over_ranks(script, loop.iter) for loop in loops)


def _over_ranks(script: Script, gone_through: ast.expr) -> bool:
    made = script.values.closure(gone_through)
    if any(isinstance(node, ast.Call) and name_of(node) in _LISTINGS for node in made):
        return True
    return any(isinstance(node, ast.expr) and script.ranks.world(node) for node in walk(gone_through))


def _met_between(script: Script, write: ast.Call, read: ast.Call) -> bool:
    """Whether all ranks meet after a write and before a read; of other functions the order is not asked."""
    tree = script.names.tree(write)
    together = tree is script.names.tree(read) and tree.scope(write) is tree.scope(tree.statement(read))
    for call, inside in script.collectives.running.items():
        if not any(one.name in ("barrier", "monitored_barrier") or "reduce" in one.name for one in inside):
            continue
        if script.guards.partial(call) is not None:
            continue
        if not together:
            return True
        if script.names.tree(call) is tree and end(tree.statement(write)) <= start(call) < start(read):
            return True
    return False
