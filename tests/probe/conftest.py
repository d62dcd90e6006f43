"""Fixtures of the probe's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.probe.warm_ranks import Ran, RankForker


@pytest.fixture(scope="session")
def forker() -> Generator[RankForker, None, None]:
    warm = RankForker(sys.executable)
    yield warm
    warm.close()


@pytest.fixture
def ranks(forker: RankForker, tmp_path: Path) -> Callable[..., Ran]:
    """Run a script's text in real ranks: `ranks(text, nproc=2, probe=True, expect=0)`."""
    count = iter(range(100))

    def run(text: str, **options: Any) -> Ran:
        return forker.run(text, tmp_path / f"run{next(count)}", **options)

    return run
