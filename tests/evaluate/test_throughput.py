"""Samples per second, epochs and steps from what ranks told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.evaluate.time.throughput import num_epochs, num_steps, samples_per_s
from grader.model.drawn_data import Batch, Pass
from grader.model.trace import Event, RankTrace, Start, Step, Trace


def rank(
    number: int, num_batches: int = 10, passes: int = 2, step_s: float = 0.1, told_s: float = 0.01
) -> RankTrace:
    """Trains `passes` times over loader 0, with three seconds of validation over loader 1 after each.

    Of a step's time `told_s` is told by the step itself; the rest passes until the script has waited for the device.
    """
    steps: list[Step] = []
    begun: list[Pass] = []
    batches: list[Batch] = []
    events: list[Event] = []
    t = 1.0
    for epoch in range(passes):
        begun.append(Pass(0, epoch, 0, None, t, t + num_batches * step_s, True))
        for k in range(num_batches):
            n = len(steps)
            batches.append(Batch(0, epoch, k, 32, None, 0.0, n, t))
            t += step_s
            untold = (None, None, (), None, None, None, None)
            steps.append(Step(n, 0, "SGD", (0.1,), 32, told_s / 2, told_s / 2, 0.0, *untold, t))
        begun.append(Pass(1, epoch, None, None, t, t + 3.0, True))
        batches += [Batch(1, epoch, k, 64, None, 0.0, len(steps), t) for k in range(3)]
        events += [Event("evaluation", t + at, None, {"op": op}) for op, at in (("begin", 0.0), ("end", 3.0))]
        t += 3.0
    start = Start("2.6", "3.11", number, number, 2, 1, 0)
    return RankTrace(
        number,
        start,
        True,
        passes=tuple(begun),
        batches=tuple(batches),
        steps=tuple(steps),
        others=tuple(events),
    )


def test_ranks_add_up_and_the_first_step_does_not_count() -> None:
    assert samples_per_s(Trace((rank(0), rank(1)))) == pytest.approx(2 * 32 / 0.1)
    told = rank(0)
    told = replace(told, steps=tuple(replace(step, numbers=32 * 64) for step in told.steps))
    assert samples_per_s(Trace((told,)), in_rows=False) == pytest.approx(32 * 64 / 0.1)
    assert samples_per_s(Trace((told,))) == pytest.approx(32 / 0.1)
    assert samples_per_s(Trace((rank(0), rank(1, step_s=0.2)))) == pytest.approx(32 / 0.1 + 32 / 0.2)


@pytest.mark.parametrize("num_batches", [1, 2, 50])
def test_what_is_waited_for_after_a_step_counts_and_validation_does_not(num_batches: int) -> None:
    told = rank(0, num_batches, passes=12, step_s=0.2, told_s=0.002)
    assert samples_per_s(Trace((told,))) == pytest.approx(32 / 0.2)


def test_a_close_look_of_the_probe_does_not_count() -> None:
    told = rank(0, 40, passes=1)
    late = [
        replace(step, t=step.t + 0.5 * (n > 20), grads=(1.0,) if n == 20 else None)
        for n, step in enumerate(told.steps)
    ]
    assert samples_per_s(Trace((replace(told, steps=tuple(late), others=()),))) == pytest.approx(32 / 0.1)


def test_silence_is_no_speed() -> None:
    silent = RankTrace(1, None, False)
    assert samples_per_s(None) is None
    assert samples_per_s(Trace((silent, silent))) is None
    assert samples_per_s(Trace((rank(0), silent))) is None
    assert samples_per_s(Trace((rank(0, num_batches=1, passes=1),))) is None


def test_epochs_are_passes_that_train() -> None:
    assert num_epochs(Trace((rank(0, passes=3), rank(1, passes=3)))) == 3
    assert num_epochs(Trace((RankTrace(0, None, False),))) is None
    assert num_epochs(None) is None


def test_steps_of_the_rank_that_took_most() -> None:
    assert num_steps(Trace((rank(0), rank(1, passes=1)))) == 20
    assert num_steps(Trace((RankTrace(0, None, False),))) is None
