"""A constant argument decides which of a function's results a call has; nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.source.script import Script

_EARLY = "def f(big):\n    if big:\n        return 7\n    return 3\n"
_LATE = (
    "def f(split='val'):\n    if split == 'train':\n        x = 3\n    else:\n        x = 7\n    return x\n"
)


@pytest.mark.parametrize(
    "text",
    [
        f"{_EARLY}here('a', f(True))",
        f"{_EARLY}here('a', f(big='yes'))",
        f"{_EARLY}BIG = True\nhere('a', f(BIG))",
        f"{_EARLY}f(False)\nx = f(True)\nhere('a', x)",
        f"{_LATE}here('a', f())",
        f"{_LATE}here('a', f('test'))",
        "def f(big):\n if big is None or not big:\n  return 3\n else:\n  return 7\nhere('a', f(True))",
        "def f(big):\n    if big is None:\n        return 7\n    return 3\nhere('a', f(None))",
        "def f(big=False):\n    return 3 if big else 7\nhere('a', f())",
        "def f(split):\n    x = 3\n    if split in ('val', 'test'):\n        x = 7\n    return x\nhere('a', f('val'))",
        "def f(split):\n    x = 7\n    if split != 'val':\n        x = 3\n    return x\nhere('a', f('val'))",
        "class A:\n def f(self, big):\n  with lock:\n   if not big:\n    return 7\n  return 3\nhere('a', A().f(False))",
        "@contextmanager\ndef f(big):\n if big:\n  yield 7\n else:\n  yield 3\nwith f(True) as x:\n here('a', x)",
    ],
)
def test_what_a_call_cannot_come_to_is_not_its_value(
    script: Callable[..., Script], here: Any, text: str
) -> None:
    found = script(text)
    assert found.values.constant(here(found, "a").args[1]) == 7


@pytest.mark.parametrize(
    "text",
    [
        f"{_EARLY}here('a', f(flag))",
        f"{_EARLY}here('a', f(*flags))",
        "x = 7\nif flag:\n    x = 3\ndef f(big):\n    if big:\n        return x\n    return x\nhere('a', f(True))",
        f"{_EARLY}here('a', f(**flags))",
        f"{_EARLY}BIG = True\nif flag:\n    BIG = False\nhere('a', f(BIG))",
        "def f(big):\n    big = ask(big)\n    if big:\n        return 7\n    return 3\nhere('a', f(True))",
        "def f(big):\n    if big > 1:\n        return 7\n    return 3\nhere('a', f(True))",
        "def f(big):\n    if big or flag:\n        return 3\n    return 7\nhere('a', f(False))",
        "def f(big):\n    x = 3\n    if flag:\n        if big:\n            x = 7\n    return x\nhere('a', f(True))",
        "def f(big):\n x = 3\n for _ in many:\n  if big:\n   x = 7\n return x\nhere('a', f(True))",
        "def g(big):\n def f():\n  if big:\n   return 7\n  return 3\n here('a', f())\ng(True)",
    ],
)
def test_what_takes_more_than_constants_stays_open(
    script: Callable[..., Script], here: Any, text: str
) -> None:
    found = script(text)
    assert found.values.constant(here(found, "a").args[1]) != 7
