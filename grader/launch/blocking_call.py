"""What a learner's own line waits in when nothing in Python lies below it: read from the line itself.

Methods written in C++ (`work.wait()`, `store.get()`) leave no frame, so a stack ends at the line that called them. The
line speaks only if it makes that one call: beside another one it could as well be waiting there.
"""

from __future__ import annotations

import ast
from pathlib import Path

_STORE_METHODS = frozenset({"get", "wait", "add", "set", "compare_set", "multi_get"})
_OTHER_WAITS = frozenset({"os", "select", "signal"})


def blocking_call(path: str, line: int) -> str:
    """The collective or store operation that a line consists of; "" where it does not, or cannot be read."""
    try:
        text = Path(path).read_text(errors="replace").splitlines()[line - 1].strip()
        tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
    except (OSError, IndexError, SyntaxError, ValueError):
        return ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        # What gives the object (`dist.all_reduce(…, async_op=True).wait()`) has returned; anything else may be the one.
        before = {id(node) for node in ast.walk(call.func) if isinstance(node, ast.Call)}
        if isinstance(call.func, ast.Attribute) and len(before) == len(calls) - 1:
            return _operation(call.func.attr, ast.unparse(call.func.value))
    return ""


def _operation(method: str, on: str) -> str:
    if method in _STORE_METHODS and "store" in on.lower():
        return "store operation"
    if method == "wait" and on not in _OTHER_WAITS:
        return "asynchronous collective"
    return ""
