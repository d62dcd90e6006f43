"""Images per second, epochs and steps from what ranks told."""

from __future__ import annotations

import pytest

from grader.evaluate.throughput import images_per_s, num_epochs, num_steps
from grader.model.trace import Batch, RankTrace, Start, Step, Trace


def rank(number: int, num_batches: int = 10, passes: int = 2, step_s: float = 0.1) -> RankTrace:
    """Trains `passes` times over loader 0, with a look at validation loader 1 after each."""
    steps, batches, n = [], [], 0
    for epoch in range(passes):
        for k in range(num_batches):
            batches.append(Batch(0, epoch, k, 32, None, 0.0, n, float(n)))
            data_s = 5.0 if n == 0 else 0.02
            steps.append(
                Step(
                    n,
                    0,
                    "SGD",
                    (0.1,),
                    32,
                    data_s,
                    step_s - 0.03,
                    0.01,
                    None,
                    None,
                    (),
                    None,
                    None,
                    None,
                    None,
                    float(n),
                )
            )
            n += 1
        batches += [Batch(1, epoch, k, 64, None, 0.0, n, float(n)) for k in range(3)]
    start = Start("2.6", "3.11", number, number, 2, 1, 0)
    return RankTrace(number, start, True, batches=tuple(batches), steps=tuple(steps))


def test_ranks_add_up_and_the_first_step_does_not_count() -> None:
    assert images_per_s(Trace((rank(0), rank(1)))) == pytest.approx(2 * 32 / 0.1)
    assert images_per_s(Trace((rank(0), rank(1, step_s=0.2)))) == pytest.approx(32 / 0.1 + 32 / 0.2)


def test_silence_is_no_speed() -> None:
    silent = RankTrace(1, None, False)
    assert images_per_s(None) is None
    assert images_per_s(Trace((silent, silent))) is None
    assert images_per_s(Trace((rank(0), silent))) is None
    assert images_per_s(Trace((rank(0, num_batches=1, passes=1),))) is None


def test_epochs_are_passes_that_train() -> None:
    assert num_epochs(Trace((rank(0, passes=3), rank(1, passes=3)))) == 3
    assert num_epochs(Trace((RankTrace(0, None, False),))) is None
    assert num_epochs(None) is None


def test_steps_of_the_rank_that_took_most() -> None:
    assert num_steps(Trace((rank(0), rank(1, passes=1)))) == 20
    assert num_steps(Trace((RankTrace(0, None, False),))) is None
