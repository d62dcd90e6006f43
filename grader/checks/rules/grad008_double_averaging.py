"""Gradients are averaged twice, by the wrong number, or at the wrong time.

## What it finds
A hand-written `all_reduce` of gradients on top of DDP, which has averaged them already; one that adds up without
dividing, as may a communication hook in the place of DDP's own mean; one that adds up in each micro-batch what earlier
ones have left; a loss that is added up over the ranks on its way to `backward`; one that comes after the optimizer's
step or before `backward`; one under a test that never holds; and one of the parts that ranks have of a sharded
gradient, which belong to different weights; and a mean of gathered gradients over all elements, which leaves one
number.

## Why it matters
A sum instead of a mean makes every step as many times too large as there are ranks. An average after the step
is cleared unused. Under DDP, a second exchange is at best time spent on nothing.

## Example
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
```

## Use instead
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for images, labels in train_loader:
    optimizer.zero_grad()
    loss_of(model(images), labels).backward()  # DDP averages in here
    optimizer.step()
```

## How it is seen
In the source, by collectives whose tensor is a gradient: what wraps the model they go over, where they stand between
`backward` and the step, whether anything divides (a quotient that nothing reads does not), and whether all ranks add up
what `to_local()` gives of a gradient after `fully_shard`; and by functions given to `register_comm_hook` that add up a
bucket with all they call known and nothing that divides. In the run, by these collectives being called while steps were
taken; by what the loss was multiplied with, and over how many ranks added up, on its way from the mean over a batch to
`backward`; and in a second look, by how large an average made by hand is against the mean of what ranks had computed,
before which no text counts. Communication hooks that divide or are torch's, `no_sync` with an exchange of one's own,
copies of a shard in a group of their own, and weights for unequal shards are not flagged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.gradients.average_fixes import divided
from grader.checks.source.gradients.averages_by_hand import misplaced
from grader.checks.source.gradients.averaging import Average
from grader.checks.source.gradients.causes import never_true, scaled_hooks, surely_wrapped
from grader.checks.source.gradients.scalar_means import scalar_means
from grader.checks.source.gradients.sharded_gradients import adds_parts
from grader.checks.source.gradients.summed_again import summed_again
from grader.checks.source.gradients.summing_hooks import summing_hooks
from grader.checks.source.models.double_wraps import COSTS, ONCE, wrapped_again
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.models.line_changes import Scale

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("GRAD001",)
_OFF = 0.02


def check_source(script: Script) -> Iterable[Hit]:
    """Flag hand-written averages that are needless, undivided, or badly placed."""
    if script.training.framework:
        return
    for average in script.averaging.all:
        problem = (
            _of_shards(script, average) or _never_runs(script, average) or _misplaced(script, average)
            or _on_top(script, average) or _undivided(script, average) or _again(script, average)
        )  # fmt: skip
        if problem is not None:
            yield problem
    for scaled in scaled_hooks(script) if script.training.wraps else ():
        yield Hit(
            message=f"{script.at(scaled)} multiplies or divides gradients by the number of ranks in a hook "
            f"({script.quote(scaled)}), and DDP takes their mean: steps are as many times larger or smaller than "
            "those of one process with the whole batch.",
            hint="Leave the hook out: after `backward` the gradients of a wrapped model are the mean over all ranks.",
            where=(script.location(scaled),),
            # Whoever scales gradients may have chosen the learning rate to fit.
            severity=Severity.HINT,
        )
    for again, first in wrapped_again(script):
        yield Hit(
            message=f"{script.at(again)} wraps a model in DDP that {script.at(first)} has wrapped already: {COSTS}.",
            hint=ONCE.format(again=script.quote(again)),
            where=lines(script, [again, first]),
        )
    for adding in summing_hooks(script):
        yield Hit(
            message=f"{script.at(adding.registered)} puts {script.quote(adding.hook)} in the place of DDP's own mean. "
            f"{script.quote(adding.reduction)} at {script.at(adding.reduction)} adds up the gradients of all ranks, "
            "and nothing divides by their number: every step is as many times larger as there are ranks.",
            hint=adding.hint,
            where=lines(script, [adding.reduction, adding.registered]),
            fix=adding.fix,
        )
    for scalar in scalar_means(script):
        yield Hit(
            message=f"{script.at(scalar.made)} makes one number of what {script.at(scalar.gathered)} has gathered, "
            f"{script.quote(scalar.made)}, and fills a gradient with it: numbers of different weights are mixed.",
            hint=scalar.hint,
            where=lines(script, [scalar.made, scalar.gathered]),
            severity=Severity.ERROR,
            fix=scalar.fix,
        )


def _of_shards(script: Script, average: Average) -> Hit | None:
    sharded = adds_parts(script, average)
    if sharded is None:
        return None
    hit = _hit(
        script,
        average,
        f"adds up what each rank has of a sharded gradient. {script.quote(sharded)} at {script.at(sharded)} gives "
        "every rank other rows of each parameter, and averages their gradients over the ranks in `backward`: here "
        "numbers of different weights are mixed.",
        "Leave it out: after `backward` each rank has its part of the mean over all ranks.",
    )
    return replace(hit, severity=Severity.ERROR)


def _never_runs(script: Script, average: Average) -> Hit | None:
    test = never_true(script, average.call)
    if test is None:
        return None
    return _hit(
        script,
        average,
        f"stands under {script.quote(test)}, which never holds: a parameter's type is `torch.nn.Parameter`. Nothing is "
        "averaged, and each rank trains a model of its own.",
        "Test `p.grad is not None`, or wrap the model in `DistributedDataParallel` instead.",
    )


def _misplaced(script: Script, average: Average) -> Hit | None:
    found = misplaced(script, average)
    if found is None:
        return None
    # Without a wrapper nothing else averages: each rank trains a model of its own.
    severity = None if script.training.wraps else Severity.ERROR
    return Hit(found.says, found.hint, lines(script, found.nodes), severity=severity, fix=found.fix)


def _on_top(script: Script, average: Average) -> Hit | None:
    owners = script.averaging.owners(average)
    if not owners or not all(surely_wrapped(script, o) for o in owners):
        return None
    if script.mentioned("no_sync") or any("require_backward_grad_sync" in t.attributes for t in script.trees):
        return None
    if average.mean or script.averaging.scaled:
        return _hit(
            script,
            average,
            "averages gradients that DDP has averaged already in `backward`: the numbers stay as they are, and every "
            "step exchanges them twice.",
            "Leave it out: after `backward` the gradients of a wrapped model are equal on all ranks.",
        )
    return _hit(
        script,
        average,
        "adds up gradients over the ranks that DDP has averaged already in `backward`: every step becomes as many "
        "times larger as there are ranks.",
        "Leave it out: after `backward` the gradients of a wrapped model are the mean over all ranks.",
    )


def _again(script: Script, average: Average) -> Hit | None:
    found = summed_again(script, average)
    return None if found is None else Hit(found.says, found.hint, lines(script, found.nodes), fix=found.fix)


def _undivided(script: Script, average: Average) -> Hit | None:
    last = getattr(average.call.func, "attr", "") or getattr(average.call.func, "id", "")
    if last not in ("all_reduce", "all_reduce_coalesced") or average.mean or script.averaging.scaled:
        return None
    if script.training.wraps or script.averaging.order(average) is None:
        return None
    op = script.argument(average.call, "op")
    if op is not None and not any("SUM" in str(getattr(o, "attr", "")) for o in script.values.origins(op)):
        return None
    return _hit(
        script,
        average,
        "adds up the gradients of all ranks, and nothing divides by their number: every step is as many times larger "
        "as there are ranks.",
        *divided(script, average),
    )


def _hit(script: Script, average: Average, what: str, hint: str, fix: Fix | None = None) -> Hit:
    return Hit(
        message=f"{script.quote(average.call)} in {script.at(average.call)} {what}",
        hint=hint,
        where=(script.location(average.call),),
        fix=fix,
    )


def check_run(evidence: Evidence) -> Observation:
    """Confirm that the collectives which the text is flagged for were called while steps were taken."""
    from grader.checks.run.gradients.scaled_losses import scaled_loss
    from grader.checks.run.models.double_wraps import double_wrap
    from grader.checks.run.models.line_changes import scale

    if not (active := evidence.trace.trainers):
        return not_observable("No optimizer steps were seen.")
    if (twice := double_wrap(evidence.script, active)) is not None:
        return flagged(twice)
    if (scaled := scaled_loss(evidence)) is not None:
        return flagged(scaled)
    if (seen := scale(evidence)) is not None and abs(seen.factor - 1) < _OFF:
        return verified("A second run showed: the first step used the mean of all ranks' gradients.")
    if not (hits := list(check_source(evidence.script))):
        if seen is not None:
            return flagged(_off_the_mean(seen, evidence.world_size))
        hooks = [str(e.fields.get("hook", "")) for r in active for e in r.events("comm_hook")]
        if any(hook and not hook.startswith("torch.") for hook in hooks):
            return not_observable(
                "A communication hook of the script's own takes the place of DDP's mean; what it makes of the "
                "gradients can't be told from the collectives alone."
            )
        if not evidence.script.averaging.all and any(w.kind == "ddp" for r in active for w in r.wraps):
            return verified("Nothing but DDP averages the gradients.")
        return not_observable(
            "Whether the gradients were averaged once can't be told from the collectives alone."
        )
    places = {(p.path, p.line) for h in hits for p in h.where}
    calls = [
        (r.rank, c) for r in active for c in r.collectives if c.site and (c.site.path, c.site.line) in places
    ]
    if not calls:
        return not_observable("The collective that the source is flagged for was never called.")
    called = max(c.n for _, c in calls)
    steps = len(active[0].steps)
    return flagged(
        Hit(
            message=f"{hits[0].message} {ranks(r for r, _ in calls)} called it at least {count(called, 'time')} "
            f"in {count(steps, 'step')}.",
            hint=hits[0].hint,
            fix=hits[0].fix,
            where=hits[0].where,
            ranks=tuple(r for r, _ in calls),
            details={"calls_at_least": called, "steps": steps},
            severity=hits[0].severity,
        )
    )


def _off_the_mean(seen: Scale, world_size: int) -> Hit:
    """An average by hand that is no mean, as a second look saw it."""
    from grader.checks.run.models.first_difference import SEEN_AGAIN

    return Hit(
        message=f"{SEEN_AGAIN} the gradients that the first step used were {seen.factor:.3g} times the mean of what "
        f"the {world_size} ranks had computed" + (f", from {at(seen.site)} on." if seen.site else "."),
        hint="Add up the ranks' gradients, and divide by the number of ranks once.",
        where=place(seen.site),
        details={"times_the_mean": seen.factor},
        severity=Severity.HINT,
    )
