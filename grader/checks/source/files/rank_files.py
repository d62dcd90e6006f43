"""Files that ranks write for themselves and one rank reads in turn: values that come together on disk."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.files.file_writes import checkpoints, files
from grader.checks.source.files.rank_paths import tells_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import end, name_of, start, walk

_READERS = {
    "open": "file", "torch.load": "f", "numpy.load": "file", "pandas.read_csv": "filepath_or_buffer",
    "pandas.read_json": "path_or_buf", "pandas.read_pickle": "filepath_or_buffer",
}  # fmt: skip
_WAITS = re.compile(r"barrier|wait|sleep|exists|synchron|is_file|poll")
"""Calls that may see to it that another rank's file is there."""
_THERE = re.compile(r"exists|is_file|isfile")
_LISTINGS = ("glob", "iglob", "rglob", "iterdir", "listdir", "scandir")


def read_by_one(script: Script) -> list[ast.Call]:
    """Writes of a file of each rank's own that are read back one after the other, once all ranks have met."""
    reads = list(_reads_in_turn(script))
    return [
        call for call in _own_writes(script, reads) if any(_met_between(script, call, read) for read in reads)
    ]


def read_when_there(script: Script) -> list[ast.Call]:
    """Writes of a file of each rank's own that are read back one after the other, each as soon as it is there."""
    return _own_writes(script, [read for read in _reads_in_turn(script) if _awaited(script, read)])


def _own_writes(script: Script, reads: list[ast.Call]) -> list[ast.Call]:
    written = (*checkpoints(script), *files(script)) if reads else ()
    return [call for call, path in written if tells_rank(script, path)]


def _awaited(script: Script, read: ast.Call) -> bool:
    """Whether a loop above a read, in its function, waits until a file exists."""
    tree = script.names.tree(read)
    return any(
        isinstance(node, ast.While)
        and end(node) <= start(read)
        and any(isinstance(n, ast.Call) and _THERE.search(name_of(n)) for n in walk(node.test))
        for node in walk(tree.function(read) or tree.root)
    )


@dataclass(frozen=True, slots=True)
class EarlyRead:
    """A write of a file of each rank's own, and a read of all of them further down that waits for nobody."""

    write: ast.Call
    read: ast.Call
    says: str
    hint: str


def read_too_early(script: Script) -> list[EarlyRead]:
    """All such reads, each with the first write of such files."""
    own = [(call, path) for call, path in (*checkpoints(script), *files(script)) if tells_rank(script, path)]
    found = []
    for read in _reads_in_turn(script) if own else ():
        for write, path in own:
            behind = _follows(script, write, read) and not _waits(script, write, read)
            if path is not None and behind and _pattern(script, path) & _pattern(script, _read_from(read)):
                found.append(_early(script, write, read))
                break
    return found


def _early(script: Script, write: ast.Call, read: ast.Call) -> EarlyRead:
    return EarlyRead(
        write,
        read,
        f"{script.at(read)} reads the files of all ranks, which each of them writes at {script.at(write)}, and nothing "
        "between them waits for the others: their files may be missing, half written, or those of the epoch before.",
        "Put `dist.barrier()` on every rank between the write and the read. Or bring the values together without "
        "files, with `dist.all_gather_object`.",
    )


def _follows(script: Script, write: ast.Call, read: ast.Call) -> bool:
    tree = script.names.tree(write)
    return (
        tree is script.names.tree(read)
        and tree.function(write) is tree.function(read)
        and end(tree.statement(write)) <= start(read)
    )


def _waits(script: Script, write: ast.Call, read: ast.Call) -> bool:
    """Whether anything between two calls makes ranks meet, or looks whether the file is there."""
    tree = script.names.tree(write)
    between = (c for c in tree.calls if end(write) <= start(c) < end(read) and c is not read)
    return any(
        script.collectives.of(c) or c in script.collectives.running or _WAITS.search(name_of(c))
        for c in between
    )


def _read_from(read: ast.Call) -> ast.expr:
    """The path that a call reads."""
    if isinstance(read.func, ast.Attribute) and read.func.attr in ("read_text", "read_bytes"):
        return read.func.value
    given = read.args[0] if read.args else next((k.value for k in read.keywords), None)
    in_method = isinstance(read.func, ast.Attribute) and read.func.attr == "open"
    return read.func.value if isinstance(read.func, ast.Attribute) and in_method else given or read.func


def _pattern(script: Script, path: ast.expr) -> set[str]:
    """The text of a path with a `#` for the rank, or for what goes through all of them."""
    found = set()
    for whole in (path, *script.values.origins(path)):
        text = ast.unparse(whole)
        names = [
            n for n in walk(whole) if isinstance(n, ast.Name | ast.Attribute | ast.Call) and n is not whole
        ]
        numbers = [ast.unparse(n) for n in names if script.ranks.rank(n) or _goes_through(script, n)]
        for number in sorted(numbers, key=len, reverse=True):
            text = re.sub(rf"(?<![\w.]){re.escape(number)}(?!\w)", "#", text)
        if "#" in text:
            found.add(text)
    return found


def _goes_through(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and _in_turn(script, node)


def _reads_in_turn(script: Script) -> Iterable[ast.Call]:
    """Reads of one file per rank, or of all that a folder holds."""
    for name, parameter in _READERS.items():
        for call in script.calls(name):
            path = call.args[0] if call.args else keyword_value(call, parameter)
            if path is not None and _in_turn(script, path):
                yield call
    for call in script.called("read_text", "read_bytes", "open"):
        if isinstance(call.func, ast.Attribute) and _in_turn(script, call.func.value):
            yield call


def _in_turn(script: Script, path: ast.expr) -> bool:
    loops = (
        origin
        for name in script.values.closure(path)
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
