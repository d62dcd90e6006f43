"""Which steps are looked at closely: some in each stretch, and nobody can tell which without the run's key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.probe.hooks import sampling


@pytest.fixture(autouse=True)
def without_key() -> Iterator[None]:
    yield
    sampling.install(b"")


def drawn(secret: int, steps: range, every: int = 32) -> tuple[int, ...]:
    sampling.install(secret.to_bytes(32, "big") if secret else b"")
    return tuple(step for step in steps if sampling.is_sampled(step, every))


@pytest.mark.parametrize("secret", [0, 1, 987654321])
def test_the_lot_falls_on_one_step_of_each_window_of_a_long_run(secret: int) -> None:
    for every in (16, 32):
        for first, width in (
            (512, every),
            (1024, 2 * every if secret else every),
            (4096, 4 * every if secret else every),
        ):
            starts = range(first, first + 10 * width, width)
            assert [len(drawn(secret, range(start, start + width), every)) for start in starts] == [1] * 10


@pytest.mark.parametrize("secret", range(1, 200, 7))
def test_each_doubling_of_a_run_is_looked_at_whatever_the_lot(secret: int) -> None:
    for length in (16, 32, 64, 128, 256, 1024):
        assert len(drawn(secret, range(length // 2, length))) >= 2, length


def test_another_secret_draws_other_steps() -> None:
    steps = range(1024)
    assert drawn(5, steps) == drawn(5, steps)
    assert len({drawn(secret, steps) for secret in range(8)}) == 8
    assert drawn(0, steps) == tuple(range(0, 1024, 32))


def test_huge_tensors_are_looked_at_more_rarely_at_any_age() -> None:
    assert len(drawn(5, range(4096), every=1024)) < len(drawn(5, range(4096))) / 3


@pytest.mark.parametrize("secret", [0, 1, 987654321])
@pytest.mark.parametrize("every", [4, 32, 96])
def test_a_count_that_goes_up_finds_the_same_steps(secret: int, every: int) -> None:
    looked = drawn(secret, range(6000), every)
    for stride in (1, 3, 40):
        looks = sampling.SampledSteps(every)
        counted = range(0, 6000, stride)
        assert tuple(step for step in counted if looks.at(step)) == tuple(s for s in looked if s in counted)


def unannounced(secret: int, steps: range, every: int = 32) -> tuple[int, ...]:
    sampling.install(secret.to_bytes(32, "big") if secret else b"")
    looks = sampling.SampledSteps(every, unannounced=True)
    return tuple(step for step in steps if looks.at(step))


@pytest.mark.parametrize("secret", [0, 1, 987654321])
def test_what_is_sampled_unannounced_has_nothing_to_do_with_the_rest(secret: int) -> None:
    steps = range(512, 8192)
    announced, others = drawn(secret, steps), unannounced(secret, steps)
    assert abs(len(announced) - len(others)) <= 1
    assert len({*announced} & {*others}) < len(others) / 8
    assert others == unannounced(secret, steps)


@pytest.mark.parametrize("secret", range(1, 100, 7))
def test_a_young_run_is_looked_at_unannounced_as_often(secret: int) -> None:
    for length in (16, 32, 64, 128, 256, 1024):
        assert len(unannounced(secret, range(length // 2, length))) >= 2, length


@pytest.mark.parametrize("secret", [0, 5])
def test_lots_are_the_same_everywhere_and_leave_nothing_out(secret: int) -> None:
    sampling.install(secret.to_bytes(32, "big") if secret else b"")
    first = [sampling.lot(f"what:{step}") for step in range(0, 6400, 32)]
    assert first == [sampling.lot(f"what:{step}") for step in range(0, 6400, 32)]
    assert {lot % 10 for lot in first} == set(range(10))


def test_one_step_of_each_doubling_is_audited() -> None:
    found = {}
    for secret in range(1, 20):
        sampling.install(secret.to_bytes(32, "big"))
        found[secret] = [step for step in range(1 << 12) if sampling.is_audited(step)]
        assert [step.bit_length() for step in found[secret]] == list(range(3, 13))
    assert len({tuple(steps) for steps in found.values()}) == 19
