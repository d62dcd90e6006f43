"""Where numbers lose precision on their way to another rank: the casts around messages, and buffers of a smaller type.

Asked only where a scorer has seen by the bytes of the messages that it is so; it says where and what to write, and
decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start

WHOLE = "Send the numbers in the type that they have, float64, and receive them into buffers of that type."
"""What is right, for all scripts."""

_CASTS = ("half", "bfloat16", "float")
_SMALLER = ("half", "bfloat16", "float16", "float32", "float", "float8_e4m3fn", "float8_e5m2")


def rounded_messages(script: Script) -> Cause | None:
    """`chunk.to(torch.bfloat16)`, `chunk.half()`, and a buffer that is made with such a `dtype`."""
    casts = sorted(_casts(script), key=start)
    if not casts:
        return None
    first = casts[0]
    made = (script.names.qualified(first.func) or "").startswith("torch.")
    advice = WHOLE
    if isinstance(first.func, ast.Attribute) and not made:
        advice = f"Write `{ast.unparse(first.func.value)}` for {script.quote(first)}. {WHOLE}"
    return Cause((*casts[:2],), advice)


def _casts(script: Script) -> Iterator[ast.Call]:
    for tree in script.trees:
        for call in tree.calls:
            method = isinstance(call.func, ast.Attribute) and not call.args and not call.keywords
            if method and name_of(call) in _CASTS:
                yield call
                continue
            given = [*call.args, *(k.value for k in call.keywords if k.arg == "dtype")]
            if any(_is_smaller(script, value) for value in given):
                yield call


def _is_smaller(script: Script, node: ast.expr) -> bool:
    """`torch.bfloat16`, also behind a name."""
    parts = (node, *script.values.origins(node))
    return any(
        isinstance(p, ast.Attribute) and p.attr in _SMALLER and name_of(p.value) == "torch" for p in parts
    )
