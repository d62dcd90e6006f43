"""Scripts from a few lines of text, and the things in them that a test asks about."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import dedent

import pytest

from grader.checks.source.script import Script, parse
from grader.model.submission import SourceFile, Submission

Make = Callable[..., Script]


@pytest.fixture
def script() -> Make:
    """`script(text, helper=text)`: train.py and, by keyword, further files."""

    def make(text: str, **others: str) -> Script:
        files = [SourceFile("train.py", dedent(text))]
        files += [SourceFile(name.replace("__", "/") + ".py", dedent(t)) for name, t in others.items()]
        return parse(Submission("test", tuple(sorted(files, key=lambda f: f.path))))

    return make


@pytest.fixture
def here() -> Callable[[Script, str], ast.Call]:
    """`here(script, "a")`: the call `here("a")` that marks a place in the text."""

    def find(script: Script, label: str) -> ast.Call:
        return next(
            c for c in script.all_calls() if getattr(c.func, "id", "") == "here" and _label(c) == label
        )

    return find


def _label(call: ast.Call) -> str:
    first = call.args[0]
    return str(first.value) if isinstance(first, ast.Constant) else ""
