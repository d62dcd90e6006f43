"""The probe under other versions of torch: its tests once more, with ranks of other interpreters.

`GRADER_TORCH_MATRIX` lists them, separated by `:` as in PATH, such as `~/torch26/bin/python:~/torch28/bin/python`; they
need torch, torchvision and safetensors and nothing of the grader.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.probe import test_ledger, test_output, test_protection, test_training
from tests.probe.warm_ranks import RankForker

PYTHONS = [name for name in os.environ.get("GRADER_TORCH_MATRIX", "").split(":") if name]

pytestmark = pytest.mark.torch_matrix


def cases(module: ModuleType) -> Iterator[Any]:
    """Every test of a module that needs nothing but ranks, with each of its parameter sets."""
    for name, test in vars(module).items():
        if not name.startswith("test_") or not inspect.isfunction(test):
            continue
        sets: list[dict[str, Any]] = [{}]
        for mark in getattr(test, "pytestmark", []):
            if mark.name == "parametrize":
                names, values = mark.args
                names = [names] if isinstance(names, str) else list(names)
                sets = [
                    dict(zip(names, value if len(names) > 1 else [value], strict=True)) for value in values
                ]
        for number, arguments in enumerate(sets):
            yield pytest.param(test, arguments, id=f"{module.__name__.rpartition('.')[2]}-{name}-{number}")


CASES = [
    case for module in (test_ledger, test_training, test_output, test_protection) for case in cases(module)
]


@cache
def forker_of(python: str) -> RankForker:
    return RankForker(str(Path(python).expanduser()))


@pytest.fixture(scope="module", autouse=True)
def _close() -> Iterator[None]:
    yield
    for python in PYTHONS:
        forker_of(python).close()
    forker_of.cache_clear()


@pytest.mark.skipif(not PYTHONS, reason="GRADER_TORCH_MATRIX names no interpreter with another torch")
@pytest.mark.parametrize(("test", "arguments"), CASES)
@pytest.mark.parametrize("python", PYTHONS)
def test_with(python: str, test: Callable[..., None], arguments: dict[str, Any], tmp_path: Path) -> None:
    count = iter(range(100))

    def ranks(text: str, **options: Any) -> Any:
        return forker_of(python).run(text, tmp_path / f"run{next(count)}", **options)

    test(ranks, **arguments)
