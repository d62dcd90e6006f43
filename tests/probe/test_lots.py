"""Which steps are looked at closely: one in each window, and nobody can tell which without the run's secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.probe import lots


@pytest.fixture(autouse=True)
def without_secret() -> Iterator[None]:
    yield
    lots.install(0)


@pytest.mark.parametrize("secret", [0, 1, 987654321])
def test_the_lot_falls_on_one_step_of_each_window(secret: int) -> None:
    lots.install(secret)
    for every in (2, 16, 32):
        windows = [range(start, start + every) for start in range(0, 10 * every, every)]
        assert [sum(lots.falls(step, every) for step in window) for window in windows] == [1] * 10


def test_another_secret_draws_other_steps() -> None:
    def drawn(secret: int) -> tuple[int, ...]:
        lots.install(secret)
        return tuple(step for step in range(1024) if lots.falls(step, 32))

    assert drawn(5) == drawn(5)
    assert len({drawn(secret) for secret in range(8)}) == 8
    assert drawn(0) == tuple(range(0, 1024, 32))
