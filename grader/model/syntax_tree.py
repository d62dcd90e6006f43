"""Python text read into a syntax tree, by one thread at a time.

Pythons up to 3.12 count the depth of a tree in one place for all threads (CPython issue 106905): where two of them make
trees at once, one now and then ends in a SystemError, whatever is in its text.
"""

from __future__ import annotations

import ast
import threading

_ONE_AT_A_TIME = threading.Lock()


def parse_text(text: str | bytes) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError, ValueError: it is no Python. RecursionError, MemoryError: it is nested too deeply.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(text)


def refuse_uncompilable(tree: ast.Module, path: str) -> None:
    """Raise SyntaxError where a tree parses and still can't run, such as a `return` outside of functions."""
    with _ONE_AT_A_TIME:
        compile(tree, path, "exec", dont_inherit=True)
