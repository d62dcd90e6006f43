"""What a learner's own line waits in when nothing in Python lies below it: read from the line itself.

Methods written in C++ (`work.wait()`, `store.get()`) leave no frame, so a stack ends at the line that called them. The
line speaks only if it makes that one call: beside another one it could as well be waiting there.
"""

from __future__ import annotations

import ast
import os
import stat

_STORE_METHODS = frozenset({"get", "wait", "add", "set", "compare_set", "multi_get"})
_MOST_BYTES = 1 << 20
_LONGEST_LINE = 1000
_OTHER_WAITS = frozenset({"os", "select", "signal"})


def blocking_call(path: str, line: int) -> str:
    """The collective or store operation that a line consists of; "" where it does not, or cannot be read."""
    text = _line(path, line)
    try:
        tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in calls:
        # What gives the object (`dist.all_reduce(…, async_op=True).wait()`) has returned; anything else may be the one.
        before = {id(node) for node in ast.walk(call.func) if isinstance(node, ast.Call)}
        if isinstance(call.func, ast.Attribute) and len(before) == len(calls) - 1:
            return _operation(call.func.attr, ast.unparse(call.func.value))
    return ""


def _line(path: str, number: int) -> str:
    """A line of a script; "" where there is none, or it is longer than anybody writes one."""
    try:
        # The path comes from the learner's process: a pipe must not hold us, nor a device go on for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            lines = file.read(_MOST_BYTES).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return ""
    text = lines[number - 1].strip() if 1 <= number <= len(lines) else ""
    return text if len(text) <= _LONGEST_LINE else ""


def _operation(method: str, on: str) -> str:
    if method in _STORE_METHODS and "store" in on.lower():
        return "store operation"
    if method == "wait" and on not in _OTHER_WAITS:
        return "asynchronous collective"
    return ""
