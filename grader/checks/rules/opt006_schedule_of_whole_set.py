"""The schedule does not fit the training: too long, too short, or of another optimizer.

## What it finds
A learning rate schedule whose length was counted over the whole training set, in a run that divides the set among ranks
and steps the schedule once per batch. A schedule that is over early: a cosine that climbs again until training ends, or
a rate that stands at 0 for the rest of it. A schedule whose optimizer was replaced by a new one, which it does not
move. A schedule that is built and never stepped. A rate set by hand that begins anew in each epoch.
A `ReduceLROnPlateau` that takes a falling loss, or a rising accuracy, for a plateau.

## Why it matters
With k ranks an epoch has a k-th of the batches. A warm-up then lasts k times as many epochs, and the decay that brings
the last percents of accuracy is never reached: training ends somewhere in the first part of the curve. It is not
reached either where the rate stands still, or has climbed to its peak again. Where the rate is 0, steps change nothing,
and the epochs after that are work in vain.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
num_steps = 10 * (len(train_set) // 64)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=num_steps)
for epoch in range(10):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        scheduler.step()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
num_steps = 10 * len(loader)  # the loader knows its sampler's share
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=num_steps)
for epoch in range(10):
    loader.sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        scheduler.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by schedules that are as many times longer than the optimizer steps taken as there are ranks, or as long as
those, but stepped once in several of them, as the rates tell; by a `CosineAnnealingLR` after whose fall the rate
climbs again, once or in waves, and is not at its bottom in the end, or that is no longer than the run has epochs and
was over after so many steps; by a rate that is 0 in the last steps, 15% of them or more; by a schedule that is stepped
while its optimizer never is; by a rate that a schedule moved, and that stands still from an optimizer on that was
built in the place of the first. In the source, by a length made of the data set's size and the loader's batch size
without the number of ranks (a hint); by such an optimizer, where no schedule is made for it; by a schedule that no
`step()` of the text can be of; by a rate that follows a count of one rank's samples, on a curve as long as those of
all ranks, which is more than a hint where the rate did not come down; by a rate that follows a count which begins anew
in each epoch, on a curve as long as all epochs, which is more than a hint where the run went through equal rates in
three epochs or more; by a mode of `ReduceLROnPlateau` that does not fit the number which it is given, as the report
says what it is, or the text: by how it is made, or by its name (a hint). Lengths of schedules that follow one another
add up. Schedules that rise again by their name, such as `CosineAnnealingWarmRestarts`, are fine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.optimisation.plateau_modes import wrong_modes
from grader.checks.source.optimisation.restarted_rates import restarted_rates
from grader.checks.source.optimisation.sample_clocks import clocks_of_one_rank
from grader.checks.source.optimisation.schedules import (
    ONE_OPTIMIZER,
    OWN,
    hurried,
    of_whole_set,
    replaced_optimizers,
    stepped_by,
)
from grader.checks.source.optimisation.unstepped_schedules import unstepped
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.optimisation.learning_rates import LearningRateCurve
    from grader.checks.run.optimisation.schedule_ends import IdleEnd
    from grader.model.trace import Event

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
_LENGTHS = ("total_steps", "steps_per_epoch", "T_max", "total_iters", "num_training_steps")
_TOLERANCE = 0.06
_MIN_STEPS = 20
_COME_DOWN = 0.05
"""Share of its peak at which a rate may well be meant to end."""


def check_source(script: Script) -> Iterable[Hit]:
    """Flag schedules stepped per batch whose length is the whole set's, and those of an optimizer that was replaced."""
    training = script.training
    if training.framework:
        return
    if not script.joins_group:
        # A single process takes all batches, so that lengths are its own matter; a rate that stands still is not.
        yield from (Hit(one.says, one.hint, lines(script, one.nodes)) for one in unstepped(script))
        return
    for one in replaced_optimizers(script):
        yield Hit(
            message=f"{script.at(one.optimizer)} builds the optimizer anew, but the schedule of "
            f"{script.at(one.schedule)} was made for the one before: its steps leave the rate of the new one as it is.",
            hint=ONE_OPTIMIZER,
            where=lines(script, [one.optimizer, one.schedule]),
        )
    for idle in unstepped(script):
        yield Hit(idle.says, idle.hint, lines(script, idle.nodes))
    for clock in clocks_of_one_rank(script):
        yield Hit(clock.says, clock.hint, lines(script, clock.nodes[:1]), severity=Severity.HINT)
    for mode in wrong_modes(script):
        yield Hit(
            f"{mode.says} Whenever it gets better, that counts as no improvement: the rate is cut all the same.",
            mode.hint,
            lines(script, (mode.written, mode.step)),
            severity=None if mode.sure else Severity.HINT,
        )
    for again in restarted_rates(script):
        yield Hit(
            f"{again.says} The rate then goes through the curve's beginning in each epoch, and never further.",
            again.hint,
            lines(script, (again.setter, again.count, again.length)),
            severity=Severity.HINT,
        )
    loops = [d for d in training.draws if d.trains]
    stepped = [
        c for d in loops for c in script.names.tree(d.loop).calls_within(d.loop) if name_of(c) == "step"
    ]
    for _, call in script.calls_under("torch.optim.lr_scheduler."):
        if not any(
            isinstance(c.func, ast.Attribute) and call in stepped_by(script, c.func.value) for c in stepped
        ):
            continue
        for name in _LENGTHS:
            length = script.given(call, name)
            if length is None or not of_whole_set(script, length):
                continue
            yield Hit(
                message=f"{script.at(length)} makes the schedule as long as one process would need, "
                f"{script.quote(length)}, but each rank takes only its share of the batches. The rate then never comes "
                "to the end of its curve.",
                hint=OWN,
                where=(script.location(length),),
                severity=Severity.HINT,
            )
            break


def check_run(evidence: Evidence) -> Observation:
    """Compare the length of schedules that move with every step with the steps that were taken."""
    from grader.checks.run.optimisation.climbing_schedules import bounce_hit
    from grader.checks.run.optimisation.fed_plateaus import wrong_mode_hit
    from grader.checks.run.optimisation.learning_rates import curve, schedule_lengths, steps_between_moves
    from grader.checks.run.optimisation.left_schedules import aside_hit, behind_hit, never_stepped
    from grader.checks.run.optimisation.long_schedules import ended_early, slow_hit, whole_set_hit
    from grader.checks.run.optimisation.restarting_rates import restarting_hit, same_in_each_epoch
    from grader.checks.run.optimisation.schedule_ends import (
        bounce,
        idle_end,
        left_behind,
        of_another_optimizer,
    )

    ranks = evidence.trace.trainers
    if not evidence.finished:
        return not_observable("The run did not come to its end, and its schedule neither.")
    if len(ranks) < 2:
        return not_observable("Fewer than two ranks took optimizer steps.")
    if (wrong := wrong_mode_hit(evidence, ranks[0])) is not None:
        return flagged(wrong)
    first = curve(ranks[0])
    told = schedule_lengths(ranks[0])
    if first is not None and (idle := idle_end(first)) is not None:
        return flagged(_idle_hit(evidence.script, idle, next(iter(ranks[0].events("lr_scheduler")), None)))
    if first is not None and (never := never_stepped(evidence.script, ranks[0], first)) is not None:
        return flagged(never)
    if first is not None and (other := of_another_optimizer(ranks[0], first)) is not None:
        return flagged(aside_hit(evidence.script, other, first.peak, len(first.steps)))
    if first is not None and (same := same_in_each_epoch(ranks[0], first)) is not None:
        again = restarting_hit(evidence.script, same)
        if again is not None:
            return flagged(again)
    if first is not None and first.rates[-1] > _COME_DOWN * first.peak:
        for clock in clocks_of_one_rank(evidence.script):
            ended = f"The learning rate ended at {first.rates[-1]:.3g}, and {first.peak:.3g} was its peak: its curve "
            said = f"{ended}did not come to its end. {clock.says}"
            return flagged(Hit(said, clock.hint, lines(evidence.script, clock.nodes)))
    if first is None or not told:
        return not_observable("No schedule of a known length was seen.")
    if (behind := left_behind(ranks[0], first)) is not None:
        return flagged(behind_hit(evidence.script, behind))
    passes = max((len(s.epochs) for s in evidence.ledger.training if s.exact), default=0)
    if (up := bounce(ranks[0], first, passes)) is not None:
        return flagged(bounce_hit(evidence.script, up, len(first.steps) // passes if passes else 0))
    # A schedule may be stepped once per batch while gradients are accumulated over several.
    delivered = sum(
        s.num_batches for stream in evidence.ledger.training for s in stream.shards(ranks[0].rank)
    )
    if any(
        s.exhausted is False for stream in evidence.ledger.training for e in stream.epochs for s in e.shards
    ):
        return not_observable("Epochs were broken off: how many steps were meant, nothing says.")
    steps = max(len(first.steps), delivered)
    if (apart := steps_between_moves(ranks[0])) > 1 and (slow := _as_long_as(told, len(first.steps))):
        return flagged(slow_hit(evidence.script, *slow, len(first.steps), apart))
    moved = sum(1 for a, b in pairwise(first.rates) if a != b)
    if steps < _MIN_STEPS or moved < 0.8 * (len(first.steps) - 1):
        return not_observable(
            "The learning rate does not move with every step, so its length in steps is not known."
        )
    # The last batch of each epoch is rounded up on every rank, and once where nobody divides.
    rounded = len(ranks) * max((len(s.epochs) for s in evidence.ledger.training), default=0)
    for event, length in told:
        whole = steps * len(ranks)
        if abs(length - whole) < max(_TOLERANCE * whole, rounded):
            if early := ended_early(evidence.script, event, length, steps, passes):
                return not_observable(early)
            return flagged(whole_set_hit(evidence.script, event, length, steps, len(ranks)))
    whole = next((n for event, n in reversed(told) if n != event.fields.get("length")), told[0][1])
    made = f"The schedule was made for {count(whole, 'step')}, and {steps:,} were taken"
    if whole < (1 - _TOLERANCE) * steps:
        # Something else moves the rate in the others, such as a warm-up by hand.
        return verified(_moved_to_the_end(first))
    if told[0][1] > (1 + _TOLERANCE) * steps:
        return not_observable(f"{made}: nothing says how many were meant.")
    return verified(f"{made}.")


def _moved_to_the_end(found: LearningRateCurve) -> str:
    ended = f"ended at {found.rates[-1]:.3g} in the last of {len(found.rates):,}, and its peak was {found.peak:.3g}."
    return f"The learning rate moved with the steps and {ended}"


def _as_long_as(told: list[tuple[Event, int]], steps: int) -> tuple[Event, int] | None:
    """A schedule as long as the run has optimizer steps; None of a run with few."""
    of_run = (x for x in told if abs(x[1] - steps) <= _TOLERANCE * steps)
    return next(of_run, None) if steps >= _MIN_STEPS else None


def _idle_hit(script: Script, idle: IdleEnd, made: Event | None) -> Hit:
    causes = list(hurried(script))
    stands = f" {at(made.site)} makes the schedule." if made is not None and not causes else ""
    site = made.site if made is not None else None
    return Hit(
        message=f"The learning rate was 0 in the last {idle.left:,} of {idle.taken + idle.left:,} optimizer steps: "
        f"they changed no weight, and all that was learned is of the first {idle.taken:,}."
        + "".join(f" {c.says}" for c in causes)
        + stands,
        hint=causes[0].hint
        if causes
        else f"Let the schedule come to its end with the training: it is over after {count(idle.taken, 'step')}, and "
        f"{idle.taken + idle.left:,} are taken. Count its length in what it is stepped by, such as "
        "`epochs * len(loader)` where it is stepped once per batch.",
        where=tuple(
            dict.fromkeys(
                (*lines(script, [n for c in causes for n in c.nodes]), *place(site), *place(idle.step.site))
            )
        ),
        details={"taken": idle.taken, "left": idle.left},
    )
