"""Inputs and targets of a share that are cut out at different places.

Asked only where a loss or a gradient has been seen to be that of such pairs; it says where and what to write.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause, losses
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start

PAIRS = "Take inputs and targets of a share by the same numbers: `inputs[first:last]`, `targets[first:last]`."
"""What is right, for all scripts."""


def torn_slices(script: Script) -> Cause | None:
    """The cut of one of both that is another than its partner's; the simpler one, which lacks its beginning, first."""
    cuts = list(dict.fromkeys(_cuts(script)))
    for number, one in enumerate(cuts):
        for other in cuts[number + 1 :]:
            if _apart(script, one, other):
                wrong, right = sorted((one, other), key=_worth)
                return Cause(
                    (wrong, right),
                    f"Write `{ast.unparse(wrong.value)}[{ast.unparse(right.slice)}]` for {script.quote(wrong)}: "
                    f"{script.quote(right)} ({script.at(right)}) takes other samples.",
                )
    return None


def _cuts(script: Script) -> Iterator[ast.Subscript]:
    """Slices that have a part in what goes backward, in the order of the text."""
    for loss in losses(script):
        for node in sorted(script.values.closure(loss), key=start):
            whole = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
            made = isinstance(node, ast.Subscript) and "slice" in ast.unparse(node.slice)
            if isinstance(node, ast.Subscript) and (whole or made):
                yield node


def _apart(script: Script, one: ast.Subscript, other: ast.Subscript) -> bool:
    """Whether two things are cut in one function, differently; and neither is made of the other."""
    tree = script.names.tree(one)
    same = script.names.tree(other) is tree and tree.function(one) is tree.function(other)
    if not same or ast.unparse(one.slice) == ast.unparse(other.slice):
        return False
    whole = [ast.unparse(cut.value) for cut in (one, other)]
    return (
        whole[0] != whole[1]
        and one not in script.values.closure(other)
        and other not in script.values.closure(one)
    )


def _worth(cut: ast.Subscript) -> tuple[bool, int]:
    """How much a cut says: where it begins, and of how much it is made."""
    begins = not isinstance(cut.slice, ast.Slice) or cut.slice.lower is not None
    return begins, len(ast.unparse(cut.slice))
