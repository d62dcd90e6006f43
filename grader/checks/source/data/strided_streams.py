"""Texts of which each rank takes every n-th sign before windows are cut: `text[rank::world_size]`.

What is next to each other in a window is then not what stood next to each other. Shares are made of windows, or of
where these begin. Like `causes`, it answers with nodes and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText, made_of_rank, names_world
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, walk

_READING = {"read", "read_text", "read_bytes", "memmap", "fromfile", "frombuffer"}
_PARTING = {
    "unfold", "view", "reshape", "stack", "split", "chunk", "tensor_split", "array_split", "splitlines", "readlines",
    "sliding_window_view", "range", "arange", "randperm", "permutation",
}  # fmt: skip
_WINDOWS = {"unfold", "view", "reshape", "split", "chunk", "sliding_window_view"}


def strided_streams(script: Script) -> Iterable[CauseInText]:
    """All slices that do it, in the order of the text."""
    found = [node for tree in script.trees for node in walk(tree.root) if _strides(script, node)]
    for node in found:
        cut = next((w for w in _windows(script) if node in _made_of(script, w)), None)
        if cut is None or not isinstance(node, ast.Subscript):
            continue
        whole = ast.unparse(node.value)
        yield CauseInText(
            (node,),
            f"{script.at(node)} takes every n-th sign of the text for each rank, {script.quote(node)}, before windows "
            "are cut from it: what follows each other in a window did not follow each other in the text.",
            f"Leave `{whole}` whole, cut windows from it, and deal those out: `DistributedSampler` over the data set "
            "of all windows, and `sampler.set_epoch(epoch)` before each epoch.",
        )


def _made_of(script: Script, node: ast.expr) -> set[ast.AST]:
    """What a value is made of, also through the fields that objects of the script keep it in."""
    found: set[ast.AST] = set()
    work: list[ast.AST] = [node]
    while work:
        new = set(script.values.closure(work.pop())) - found
        found |= new
        kept = [n for n in new if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"]
        stored = (d.value for n in kept for d in script.names.tree(n).attributes.get(n.attr, ()))
        work += [value for value in stored if isinstance(value, ast.expr) and value not in found]
    return found


def _strides(script: Script, node: ast.AST) -> bool:
    """Whether a slice begins at the rank and steps by the number of ranks, in something read that nothing has cut."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    if (
        not isinstance(node, ast.Subscript)
        or not isinstance(part, ast.Slice)
        or not (part.lower and part.step)
    ):
        return False
    if not made_of_rank(script, part.lower) or not _of_world(script, part.step):
        return False
    whole = script.values.closure(node.value)
    names = {name_of(n) for n in whole if isinstance(n, ast.Call)}
    return bool(names & _READING) and not names & _PARTING and not any(map(_is_window, whole))


def _of_world(script: Script, step: ast.expr) -> bool:
    made = script.values.closure(step)
    return names_world(script, step) or any(script.ranks.world(n) for n in made if isinstance(n, ast.expr))


def _windows(script: Script) -> Iterable[ast.expr]:
    """What windows are cut from: sliced from a place to one a little later, or cut into rows."""
    for tree in script.trees:
        for node in walk(tree.root):
            if isinstance(node, ast.Subscript) and _is_window(node):
                yield node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _WINDOWS
            ):
                yield node.func.value


def _is_window(node: ast.AST) -> bool:
    """`x[first : first + length]`."""
    part = node.slice if isinstance(node, ast.Subscript) else None
    if not isinstance(part, ast.Slice) or part.lower is None or not isinstance(part.upper, ast.BinOp):
        return False
    return ast.unparse(part.lower) in {ast.unparse(n) for n in ast.walk(part.upper)}
