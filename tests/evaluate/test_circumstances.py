"""What an examination is told of a run: what was seen from outside and by the probe, steps of each batch size apart."""

from __future__ import annotations

from grader.checks.run.optimisation.step_times import StepTime
from grader.evaluate.circumstances import by_batch_size
from grader.model.trace import Step


def step(samples: int, seconds: float) -> StepTime:
    plain = Step(0, 0, "SGD", (), samples, 0.0, 0.0, None, None, None, (), None, None, None, None, 0.0)
    return StepTime(plain, seconds)


def test_steps_are_counted_and_timed_by_their_own_size() -> None:
    steps = [
        step(2, 9.0),
        *(step(2, 1.0) for _ in range(3)),
        step(64, 2.0),
        step(64, 4.0),
        step(0, 50.0),
    ]
    found = by_batch_size(steps)
    assert {name for name in found if name.startswith("steps_of_")} == {"steps_of_2", "steps_of_64"}
    assert (found["steps_of_2"], found["step_s_of_2"], found["quick_step_s_of_2"]) == (4.0, 3.0, 1.0)
    assert (found["steps_of_64"], found["step_s_of_64"]) == (2.0, 3.0)


def test_sizes_that_are_drawn_by_lot_do_not_crowd_out_the_common_ones() -> None:
    found = by_batch_size([*(step(size, 1.0) for size in range(100, 1100)), step(4, 1.0), step(4, 1.0)])
    assert found["steps_of_4"] == 2.0
    assert len(found) == 64 * 3


def test_nothing_is_told_of_no_steps() -> None:
    assert by_batch_size([]) == {}
