"""Which line makes a number that is a known multiple of the right one, or comes of a known other start or other pairs.

Reads the scorer's sentence for what the number is, and looks in the text for what makes it so. Where nothing shows,
the advice says what such a number suggests, and nothing of what may be right.
"""

from __future__ import annotations

from collections.abc import Callable

from grader.checks.source.collectives.rounded_messages import WHOLE, rounded_messages
from grader.checks.source.collectives.running_means import ONCE, running_mean
from grader.checks.source.data.torn_slices import PAIRS, torn_slices
from grader.checks.source.gradients.kept_gradients import ZEROS, emptied
from grader.checks.source.metrics.clock_units import clock_units
from grader.checks.source.metrics.late_readings import PEAK, last_rate
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.whole_run_ratios import PER_EPOCH, TURNED, turned, whole_runs
from grader.checks.source.optimisation.hand_gradients import HALF, TWICE, double_gradient, half_gradient
from grader.checks.source.optimisation.warm_starts import ANEW, warm_start
from grader.checks.source.optimisation.weight_steps import KEEP, weight_step
from grader.checks.source.script import Script

_KNOWN: tuple[tuple[str, Callable[[Script], Cause | None], str], ...] = (
    ("all its numbers are 0", emptied, ZEROS),
    ("beside the targets of samples", torn_slices, PAIRS),
    ("the weights changed between the rounds", weight_step, KEEP),
    ("running mean", running_mean, ONCE),
    ("divides by the number of ranks", running_mean, ONCE),
    ("gradients half as large", half_gradient, HALF),
    ("gradients 2 times as large", double_gradient, TWICE),
    (" ended; at w = b = 0 it is ", warm_start, ANEW),
    ("a learning rate of ", last_rate, PEAK),
    ("of whole runs, which have different numbers of epochs", whole_runs, PER_EPOCH),
    ("the other way round", turned, TURNED),
    ("bytes for each number", rounded_messages, WHOLE),
)
"""Words of the scorers' sentences, what finds the line, and what such a number suggests where no line is found."""


def number_cause(script: Script, said: str) -> Cause | None:
    """What made a number of such a kind; without nodes where the text does not show it, None for other sentences."""
    for words, find, suggestion in _KNOWN:
        if words in said:
            return find(script) or Cause((), suggestion)
    return clock_units(script, said)
