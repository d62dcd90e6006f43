"""A collective that only some ranks call.

## What it finds
`barrier`, `all_reduce`, `broadcast`, `gather` and their relatives (wrapping a model is one of them, and so are the
forward pass and the checkpoint of a sharded model, `fabric.save`, `accelerator.save_state`, and `evaluate` or
`save_checkpoint` of a `Trainer`) under a test of the rank, while the other ranks pass by.

## Why it matters
A collective is a meeting of all ranks of the group. Those who come wait for those who don't: the run stands still
until the group's time limit (10 minutes with NCCL, 30 with gloo) and then dies far away from the line that caused
it.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    total = torch.tensor([local_sum])
    dist.all_reduce(total)
    print(f"sum over all ranks: {total.item()}")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([local_sum])
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"sum over all ranks: {total.item()}")
dist.destroy_process_group()
```

## How it is seen
In the source: the conditions around each collective, early `return`s, helpers, properties and methods such as `__str__`
included; two branches that meet in the same collective (rank 0 first, then the others) are right and not flagged. In
the run: a deadlock in which the ranks' own stacks show who waits where (a rank that made one call more waits in its
next one), a time limit at which a rank waited in what the source flags, or a crash by what did not fit while some ranks
were in it alone. A group that some ranks form alone stays advice where the run came to its end: the next group is what
fails. Reference:
https://pytorch.org/docs/stable/distributed.html#collective-functions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, places, ranks
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.calls.decorators import is_property
from grader.checks.source.collectives.collective_calls import CollectiveCall
from grader.checks.source.collectives.unmet_collectives import UnmetCollective, unmet_collectives
from grader.checks.source.ranks.guard_fixes import (
    after_the_yield,
    asks,
    before_leaving,
    out_of_test,
    read_of_all,
    value_of_all,
    without_decorator,
)
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.model.finding import EvidenceKind, Location, Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.stuck_ranks import StuckRank

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("EVAL005",)
_WHO = {
    RankSet.MAIN: "rank 0 gets",
    RankSet.OTHERS: "the ranks other than 0 get",
    RankSet.SOME: "some ranks get",
}


_MEETS_WHERE_SHARDED = {
    "save_state": "With plain DDP that leaves out the other ranks' random states",
    "save_model": "With plain DDP it is right, as rank 0 alone writes anyway",
}


def check_source(script: Script) -> Iterable[Hit]:
    """Flag collectives, direct or inside a helper, under a rank test whose other branch has none."""
    yield from _backward_of_some(script)
    for suspect in unmet_collectives(script):
        yield _hit(script, suspect)


def _backward_of_some(script: Script) -> Iterable[Hit]:
    """A backward pass through the wrapper under a test of the rank: DDP's exchange is a collective, too."""
    if any(script.argument(wrap, "process_group") is not None for wrap in script.training.wraps):
        return  # the group may be of just those ranks
    for backward in script.training.backwards:
        guard = script.guards.partial(backward)
        if guard is None or not guard.condition.sure or script.guards.alone(backward):
            continue
        tree = script.names.tree(backward)
        branch = tree.parent.get(guard.test)
        sides = (branch.body, branch.orelse) if isinstance(branch, ast.If) else ()
        if sides and all(_goes_backward(script, side) for side in sides):
            continue
        forwards = [f for f in script.updates.forwards(backward) if script.training.wrapped(f.func)]
        if forwards:
            yield Hit(
                message=f"{script.at(backward)} goes backward through the model that DDP has wrapped, under "
                f"{script.quote(guard.test)}: only {_WHO[guard.condition.which]} there. DDP averages gradients in "
                "every backward pass, which needs all ranks: this one waits for them, or meets their next pass.",
                hint=f"Let all ranks do the pass, or call the plain network in it, without the wrapper: write "
                f"`{ast.unparse(forwards[0].func)}.module(…)` at {script.at(forwards[0])}.",
                where=(script.location(backward), script.location(guard.test)),
            )


def _goes_backward(script: Script, block: list[ast.stmt]) -> bool:
    return any(script.names.tree(b).inside(b, s) for b in script.training.backwards for s in block)


def _hit(script: Script, suspect: UnmetCollective) -> Hit:
    first = suspect.collectives[0]
    who = _WHO[suspect.guard.condition.which]
    where: list[Location] = [script.location(suspect.call)]
    through = ""
    if first.call is not suspect.call:
        where.append(script.location(first.call))
        through = f", which runs `{first.name}` at {script.at(first.call)}{_unasked(script, first.call)}"
    test = script.quote(suspect.guard.test)
    branch = script.names.tree(suspect.call).parent.get(suspect.guard.test)
    leaves = branch is not None and not script.names.tree(suspect.call).inside(suspect.call, branch)
    side = "past the early exit under" if leaves else "under the test"
    writer = script.frameworks.spoken.name if script.frameworks.spoken is not None else "Accelerate"
    if all(_meets_where_sharded(script, c) for c in suspect.collectives):
        return Hit(
            message=f"{script.at(suspect.call)} {asks(script, suspect.call)}{through}, {side} {test}: only {who} "
            f"there. {_MEETS_WHERE_SHARDED[first.name]}; with FSDP or DeepSpeed, chosen at the start or by an argument "
            "without a change of this line, it waits for ranks that never come.",
            hint=f"Let all ranks call it: {writer} writes what is common to all of them once.",
            where=tuple(where),
            severity=Severity.HINT,
        )
    hint, fix = (
        after_the_yield(script, suspect.call) if suspect.call in script.collectives.direct else ("", None)
    )
    if not hint:
        hint, fix = value_of_all(script, suspect.call, suspect.guard.test)
    hint = hint or read_of_all(script, suspect.call, suspect.guard.test)
    if leaves and not hint:
        hint, fix = before_leaving(script, [*suspect.under_test], suspect.guard.test)
    return Hit(
        message=f"{script.at(suspect.call)} {asks(script, suspect.call)}{through}, {side} "
        f"{test}: only {who} there. A collective waits for every rank of the group, so the run stands still, or takes "
        "the others' next one for it.",
        hint=hint
        or "Let all ranks make the call and keep only what needs one rank (printing, saving) under the test.",
        where=tuple(where),
        fix=fix if hint else _fix(script, suspect),
    )


def _unasked(script: Script, call: ast.Call) -> str:
    """The method that a call stands in, where nobody calls that by its name."""
    function = script.names.tree(call).function(call)
    if function is None or function not in script.graph.class_of:
        return ""
    if is_property(function):
        return f" whenever `{function.name}` is read"
    return f", in `{function.name}`" if function.name.startswith("__") else ""


def _fix(script: Script, suspect: UnmetCollective) -> Fix | None:
    """The first or last call of a block that waits for the group, taken out of the block."""
    tree = script.names.tree(suspect.call)
    branch = tree.parent.get(tree.statement(suspect.call))
    direct = suspect.call in script.collectives.direct
    if not direct or not isinstance(branch, ast.If) or branch.test is not suspect.guard.test:
        return None
    return out_of_test(script, suspect.call, "Lets all ranks make the call.")


def _meets_where_sharded(script: Script, collective: CollectiveCall) -> bool:
    """Whether a call meets only under FSDP and DeepSpeed: `trainer.save_model()`, `accelerator.save_state(path)`."""
    # A state is also agreed on where Accelerate names its folder itself.
    named = any(k.arg == "automatic_checkpoint_naming" for c in script.all_calls() for k in c.keywords)
    told = bool(collective.call.args or collective.call.keywords) and not named
    return collective.name in _MEETS_WHERE_SHARDED and (collective.name != "save_state" or told)


def check_run(evidence: Evidence) -> Observation:
    """Flag a run that stood still or broke off while some ranks were in a collective that a test keeps from others."""
    from grader.checks.run.call_counts import num_calls
    from grader.checks.run.endings.stuck_ranks import guarded_ranks, parted_by_test, stuck_ranks
    from grader.model.run import Ending

    stuck = stuck_ranks(evidence)
    guarded = guarded_ranks(stuck)
    if guarded:
        late = evidence.record.ending is Ending.TIMED_OUT
        return flagged(_deadlock_hit(evidence.script, stuck, guarded, late=late))
    apart = [_hit(evidence.script, one) for one in parted_by_test(evidence)]
    if apart:
        return flagged(*(replace(hit, evidence=EvidenceKind.OUTSIDE) for hit in apart))
    passes = list(_backward_of_some(evidence.script)) if stuck else []
    if passes:
        return flagged(*(replace(hit, evidence=EvidenceKind.OUTSIDE) for hit in passes))
    if evidence.finished:
        unmet = unmet_collectives(evidence.script)
        if unmet and all(_forms_group(one) for one in unmet):
            return flagged(_group_hit(evidence.script, unmet[0]))
        called = num_calls(evidence.trace)
        if not called:
            return idle("All ranks ran to their end.")
        told = count(called, "collective call")
        return verified(f"All ranks ran to their end, {told} included.", EvidenceKind.OUTSIDE)
    if stuck:
        return not_observable("The run was stuck, but not in a collective under a test of the rank.")
    return not_observable("The run did not reach its end, so later collectives were not seen.")


def _forms_group(suspect: UnmetCollective) -> bool:
    return all(collective.name == "new_group" for collective in suspect.collectives)


def _group_hit(script: Script, suspect: UnmetCollective) -> Hit:
    """A group that some ranks form alone: a run gets through with it until there is another one."""
    told, first = _hit(script, suspect), suspect.collectives[0]
    return replace(
        told,
        message=f"{script.at(first.call)} calls {script.quote(first.call)}, under the test "
        f"{script.quote(suspect.guard.test)}: only {_WHO[suspect.guard.condition.which]} there. This run came to its "
        "end all the same. PyTorch asks every rank for this call, also those outside of the new group: ranks number "
        "their groups by how many they have formed, and the next one does not come together.",
        severity=Severity.HINT,
        evidence=EvidenceKind.OUTSIDE,
    )


def _deadlock_hit(
    script: Script, stuck: tuple[StuckRank, ...], guarded: tuple[StuckRank, ...], *, late: bool
) -> Hit:
    who = tuple(s.rank for s in guarded)
    first = guarded[0]
    test = first.guard
    hint, fix = without_decorator(script, test) if test is not None else ("", None)
    sites = [*(s.site for s in guarded), *(s.site for s in stuck if s not in guarded)]
    return Hit(
        message=(
            f"{at(first.site)} calls `{first.operation}`, which needs all ranks, but "
            f"{f'the test at `{test}`' if test else 'a test of the rank'} lets only {ranks(who).lower()} reach "
            f"it. {'The run waited there until its limit' if late else 'This stopped the run'}."
        ),
        hint=hint
        or "Move the collective out of the rank test, so that all ranks call it; keep printing and saving inside.",
        fix=fix,
        where=tuple(dict.fromkeys((*places(sites), *((test,) if test else ())))),
        ranks=who,
        details={
            "waiting": {
                str(s.rank): "ended"
                if s.ended
                else f"{s.operation or 'no collective'} at {at(s.site, 'unknown')}"
                for s in stuck
            }
        },
        evidence=EvidenceKind.OUTSIDE,
    )
