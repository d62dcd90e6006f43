"""Python text read into a syntax tree, by one thread at a time.

Pythons up to 3.12 count the depth of a tree in one place for all threads (CPython issue 106905): where two of them make
trees at once, one now and then ends in a SystemError, whatever is in its text.
"""

from __future__ import annotations

import ast
import re
import threading

_MOST_BITS = 14_000
_MAY_BE_LONGER = re.compile(r"0[xXoObB][0-9a-fA-F_]{3000}")
_ONE_AT_A_TIME = threading.Lock()


def parse_text(text: str | bytes) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError, ValueError: it is no Python. RecursionError, MemoryError: it is nested too deeply.
    """
    with _ONE_AT_A_TIME:
        tree = ast.parse(text)
    if _MAY_BE_LONGER.search(text if isinstance(text, str) else text.decode("latin-1")):
        _refuse_long_numbers(tree)
    return tree


def _refuse_long_numbers(tree: ast.Module) -> None:
    # Of base 16 or 2 Python reads them, and then cannot write them in base 10, as whoever quotes them would.
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, int)
            and node.value.bit_length() > _MOST_BITS
        ):
            raise SyntaxError(
                "this number has thousands of digits", ("", node.lineno, node.col_offset + 1, "")
            )


def refuse_uncompilable(tree: ast.Module, path: str) -> None:
    """Raise SyntaxError where a tree parses and still can't run, such as a `return` outside of functions."""
    with _ONE_AT_A_TIME:
        compile(tree, path, "exec", dont_inherit=True)
