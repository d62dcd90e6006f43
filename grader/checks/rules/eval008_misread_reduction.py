"""The result of a reduction is lost, read where it is not, or not what it is taken for.

## What it finds
`reduce` or `gather` whose result is used on a rank that doesn't get it; a list of all ranks' counts of which one part
alone is read, or whose slots are all one tensor; the best weights chosen by counts that are not those of all ranks
yet; a batch's mean that a meter is told without its size; a collective's return value, which is None, taken for its
result; an in-place collective on a temporary tensor, or one in the background that nobody waits for; a ratio of two
sums of which one alone was reduced; a mean that is summed over the ranks and reported undivided, or averaged by the
collective and divided once more; a running sum that is reduced in place in every round of its loop, and a tensor that
is reduced in place twice, the second time perhaps a view of it.

## Why it matters
None stops the script. All others run without a word and report wrong numbers: a part of the sum, the value of one
rank, N times the loss or an N-th of it, or a figure that grows N-fold with each batch until it is infinite.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
for images, labels in train_loader:
    loss = cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)  # the sum of N means
    if dist.get_rank() == 0:
        print(f"loss {shown.item():.3f}")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
for images, labels in train_loader:
    loss = cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    shown /= dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"loss {shown.item():.3f}")
dist.destroy_process_group()
```

## How it is seen
In the source, by following what goes into a reduction and what becomes of its result, through assignments and the
submission's own functions. What a helper from elsewhere does with a result nobody knows, and nothing is said. Sums of
counts need no division and are left alone, and so are dummies (`all_reduce(torch.zeros(1))` is a barrier). Reference:
https://pytorch.org/docs/stable/distributed.html#collective-functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.phrases import told_once
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.collectives import gathered_lists
from grader.checks.source.collectives.aliased_slots import aliased_slots
from grader.checks.source.collectives.dropped_results import unwaited
from grader.checks.source.collectives.empty_results import empty_results
from grader.checks.source.collectives.reduction_fixes import (
    added_up,
    divided,
    for_all_ranks,
    in_the_foreground,
    on_what_is_kept,
)
from grader.checks.source.collectives.reduction_results import (
    divided_again,
    grows,
    read_elsewhere,
    reductions,
    undivided,
)
from grader.checks.source.collectives.repeated_sums import repeated_sums
from grader.checks.source.files.chosen_weights import chosen_by_own_share
from grader.checks.source.metrics.extreme_counts import extreme_of_counts
from grader.checks.source.metrics.half_reduced import half_reduced
from grader.checks.source.metrics.unweighted_meters import unweighted_meters
from grader.checks.source.models.summed_state import summed_state
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import VARIABLES, name_of
from grader.checks.source.values.temporary_tensors import lost
from grader.model.finding import Severity

SEVERITY = Severity.WARNING
_FILLS_NOTHING = ("barrier", "monitored_barrier")
_FILLS_SECOND = ("gather", "gather_object")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag reductions whose results are lost, misplaced, or wrong by a factor of the number of ranks."""
    for returning, used in empty_results(script):
        yield _none(script, returning, used)
    for call, name, tensor in reductions(script):
        hit = (
            _lost(script, call, name, tensor)
            or _unwaited(script, call, name, tensor)
            or _grows(script, call, name, tensor)
            or _elsewhere(script, call, name, tensor)
            or _extreme(script, call, name, tensor)
            or _factor(script, call, name, tensor)
        )
        if hit is not None:
            yield hit
    yield from _lists(script)
    for own in chosen_by_own_share(script):
        where = (own.test, own.kept, own.later)
        yield Hit(f"{script.at(own.test)} {own.says}", own.hint, told_once(map(script.location, where)))
    for one in unweighted_meters(script):
        lines_of = told_once(map(script.location, (one.call, one.beside)))
        yield Hit(f"{script.at(one.call)} {one.says}", one.hint, lines_of, severity=Severity.HINT)
    for again in repeated_sums(script):
        yield Hit(again.says, again.hint, lines(script, again.nodes), fix=again.fix)
    for half in half_reduced(script):
        other, sums = script.quote(half.own), script.quote(half.reduced)
        yield Hit(
            message=f"{script.at(half.call)} brings {sums} together over the ranks, and {script.at(half.ratio)} holds "
            f"it against {other}, which only this rank counted: {script.quote(half.ratio)}. One side is that of all "
            "ranks and the other that of one: the ratio is wrong by a factor of the number of ranks.",
            hint=half.hint,
            where=tuple(script.location(n) for n in (half.ratio, half.call)),
        )


def _lists(script: Script) -> Iterable[Hit]:
    for slots in aliased_slots(script):
        yield Hit(slots.says, slots.hint, lines(script, [slots.made, slots.call]), fix=slots.fix)
    for one in gathered_lists.read_unfilled(script):
        in_choice = isinstance(script.names.tree(one.filled).parent.get(one.filled), ast.IfExp)
        yield Hit(
            message=f"{script.at(one.use)} uses {script.quote(one.filled)} on ranks that do not have it: "
            f"`{one.name}` ({script.at(one.call)}) fills the list of its `dst` alone.",
            hint=gathered_lists.filled_everywhere(script, one),
            where=told_once((script.location(one.use), script.location(one.call))),
            # None stops the script; a list that was made on all ranks goes on with what was in it.
            severity=None if in_choice else Severity.ERROR,
        )
    for one in gathered_lists.one_part_read(script):
        yield Hit(
            message=f"{script.at(one.call)} brings together what each rank counted over its own share, and "
            f"{script.quote(one.use)} at {script.at(one.use)} is all that is read of it: the part of one rank. The "
            "figure is that of one share, not of the whole.",
            hint=gathered_lists.all_parts(script, one),
            where=told_once((script.location(one.use), script.location(one.call))),
        )


def _lost(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    if not lost(script, call, tensor):
        return None
    hint, fix = on_what_is_kept(script, call, name, tensor)
    return Hit(
        message=f"{script.at(call)} hands {script.quote(tensor)} to `{name}`, a tensor made on the spot. It "
        "writes its result into that tensor, which nobody holds: what the script goes on with is still this "
        "rank's own value.",
        hint=hint,
        where=(script.location(call),),
        fix=fix,
    )


def _none(script: Script, call: ast.Call, used: ast.expr) -> Hit:
    name, made = name_of(call), "" if used is call else f" ({script.at(call)})"
    return Hit(
        message=f"{script.at(used)} goes on with what {script.quote(call)}{made} returns. Without `async_op=True` that "
        f"is None: what `{name}` brings is in the tensors that it was given. The script stops here, or says None.",
        hint=_instead_of_none(script, call),
        where=tuple(dict.fromkeys((script.location(used), script.location(call)))),
        severity=Severity.ERROR,
    )


def _instead_of_none(script: Script, call: ast.Call) -> str:
    name = name_of(call)
    if name in _FILLS_NOTHING:
        return f"`{name}` has no value to hand back: leave what it returns alone."
    filled = call.args[name in _FILLS_SECOND :][:1]
    if not filled or not isinstance(filled[0], VARIABLES):
        return (
            f"Give what `{name}` fills a name, make the call on a line of its own, and go on with that name."
        )
    returned = isinstance(script.names.tree(call).parent.get(call), ast.Return)
    after = (
        f"`return {node_text(script, filled[0])}` below it"
        if returned
        else f"go on with {script.quote(filled[0])}"
    )
    return f"Write {script.quote(call)} on a line of its own, and {after}: that is what it fills."


def _unwaited(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    if not unwaited(script, call):
        return None
    return Hit(
        message=f"{script.at(call)} starts `{name}` on {script.quote(tensor)} with `async_op=True`, and nothing waits "
        "for it: what the script reads afterwards may be this rank's own value, a part of the sum, or the sum.",
        hint="Leave `async_op=True` out, or keep the handle that the call returns and call its `wait()` before the "
        "value is read.",
        where=(script.location(call),),
        fix=in_the_foreground(script, call),
    )


def _grows(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    if name == "broadcast" or grows(script, call, tensor) is None:
        return None
    return Hit(
        message=f"{script.at(call)} reduces {script.quote(tensor)} in place in every round of a loop that goes on "
        "adding to it. What was summed over the ranks in one round is summed again in the next: the value grows by "
        "a factor of the number of ranks per round.",
        hint="Reduce once, after the loop, or reduce this round's own value and add the result to the total.",
        where=(script.location(call),),
    )


def _elsewhere(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    use = read_elsewhere(script, call, name, tensor)
    if use is None:
        return None
    who = "other ranks" if script.guards.partial(use) else "every rank"
    written, fix = for_all_ranks(script, call, tensor)
    return Hit(
        message=f"{script.at(use)} uses on {who} what {script.quote(call)} ({script.at(call)}) leaves on one rank "
        "only: `reduce` fills the tensor of its `dst`, and the others keep their own value, or a part of the sum.",
        hint=f"Write `{written}` at {script.at(call)}: all ranks then have the result. Or read it under a test of the "
        "rank that has it.",
        where=(script.location(call), script.location(use)),
        fix=fix,
    )


def _extreme(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    found = extreme_of_counts(script, call, tensor)
    if name == "broadcast" or found is None:
        return None
    op, site = found
    here = site is call
    hint = f"Leave `op=dist.ReduceOp.{op}` out: `{name}` adds up by default."
    if not here:
        hint = f"Let {script.quote(site)} add up: `op=dist.ReduceOp.SUM` at {script.at(call)}."
    return Hit(
        message=f"{script.at(site)} takes the `{op}` over ranks of what counts right predictions, "
        f"{script.quote(site)}: each rank counted its own samples, and the count of all of them is the sum.",
        hint=f"{hint} The largest of something (a time, a memory peak) goes into a tensor of its own.",
        where=tuple(script.location(c) for c in dict.fromkeys((site, call))),
        fix=added_up(script, call, tensor) if here else None,
    )


def _factor(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> Hit | None:
    if name == "broadcast":
        return None
    found = undivided(script, call, tensor)
    if found is not None:
        mean, use = found
        line, fix = divided(script, call, tensor)
        return Hit(
            message=f"{script.at(call)} adds {script.quote(tensor)} up over the ranks, which holds a mean "
            f"({script.quote(mean)}), and {script.at(use)} takes the sum as it is: with N ranks it is N times "
            "the mean.",
            hint=f"Divide by the number of ranks after the reduction: `{line}`.",
            where=(script.location(call),),
            fix=fix,
        )
    state = summed_state(script, call, name, tensor)
    if state is not None:
        line, fix = divided(script, call, tensor, in_place=True)
        return Hit(
            message=f"{script.at(call)} adds up over the ranks what a network holds ({script.quote(state)}); nothing "
            "divides by their number: with N ranks each of these tensors is N times what it was.",
            hint=f"Divide by the number of ranks after the reduction: `{line}`.",
            where=(script.location(call),),
            fix=fix,
        )
    again = divided_again(script, call, tensor)
    if again is None:
        return None
    return Hit(
        message=f"{script.at(call)} averages over the ranks (`ReduceOp.AVG`), and {script.at(again)} divides by their "
        f"number once more: {script.quote(again)}. With N ranks the result is an N-th of the mean.",
        hint="Leave out one of the two: `AVG` without a division, or `SUM` with it.",
        where=(script.location(call), script.location(again)),
    )
