"""No regular expression of the package goes back and forth: on twice the text each has twice the work.

Each is found in the modules' own globals and calls, and tried on texts that are made to keep it busy. How long a text
takes is not measured finely: on a text of this length a linear expression takes a few milliseconds, and one that is not
takes seconds, so that half a second of processor time tells the two apart on any machine.
"""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import grader
from tests.untrusted.hostile_input import hostile_inputs

LENGTH = 40_000
LIMIT_S = 0.4
# Opens a database of its own when it is imported.
NOT_IMPORTED = ("grader.store.migrations.env",)
# Reads nothing but what our own plots are drawn as.
OWN_TEXTS = ("grader.report.plots.canvas",)
_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


@dataclass(frozen=True, slots=True)
class Expression:
    """One, where it stands, and how it is used there; every way where that does not show."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def expressions() -> Iterator[Expression]:
    seen = set()
    for info in pkgutil.walk_packages(grader.__path__, "grader."):
        if info.name in (*NOT_IMPORTED, *OWN_TEXTS) or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        text = Path(module.__file__ or "").read_text(encoding="utf-8")
        for name, value in vars(module).items():
            for pattern in _patterns(value):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    used = set(re.findall(rf"\b{name}\.(\w+)\(", text)) & set(_METHODS)
                    yield Expression(
                        f"{info.name}.{name}", pattern, tuple(sorted(used)) or ("fullmatch", "search")
                    )
        yield from _written_in_calls(info.name, text)


def _patterns(value: object) -> tuple[re.Pattern[Any], ...]:
    if isinstance(value, re.Pattern):
        return (value,)
    return (
        tuple(one for one in value if isinstance(one, re.Pattern)) if isinstance(value, tuple | list) else ()
    )


def _written_in_calls(module: str, text: str) -> Iterator[Expression]:
    """`re.sub(r"…", …)`."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _METHODS
            and isinstance(node.args[0], ast.Constant)
        ):
            yield Expression(f"{module}:{node.lineno}", re.compile(node.args[0].value), (node.func.attr,))


@pytest.mark.slow
def test_every_expression_is_linear() -> None:
    found = list(expressions())
    assert len(found) > 150
    slow = [f"{one.place}: {one.pattern.pattern!r}" for one in found if not _ends(one)]
    assert not slow, "these take more than linear time on texts that are made for it:\n" + "\n".join(slow)


@pytest.mark.parametrize(
    "text",
    [
        r" # [^\"']*$",
        r"\[[A-Z][^\n]*\[c10d\][^\n]*(?:failed to connect|retrying)[^\n]*\n",
        r"(zero|clear|reset|null)\w*grad",
        r"(a+)+b",
        r"size mismatch for ([\w.]+): shape (.+?) from checkpoint, the shape is (.+?)\.",
        r"[A-Z]+\d{3}",
        r"(?m)^\s*import grader",
    ],
)
def test_one_that_is_not_is_found(text: str) -> None:
    assert not _ends(Expression("here", re.compile(text), ("search", "findall")))


def _ends(one: Expression) -> bool:
    """Whether each of its texts is done with in time, by a copy that the kernel ends past it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            for text in hostile_inputs(one.pattern, LENGTH):
                signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
                for method in one.methods:
                    _call(getattr(one.pattern, method), method, text)
            code = 0
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended in {0, -signal.SIGPROF}, f"{one.place} cannot be tried"
    return ended == 0


def _call(function: Callable[..., Any], method: str, text: Any) -> None:
    if method in {"sub", "subn"}:
        function(text[:0], text)
    elif method == "finditer":
        for _ in function(text):
            pass
    else:
        function(text)
