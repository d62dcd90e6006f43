"""The process group is never taken down, or too early.

## What it finds
A script that starts a process group and never calls `destroy_process_group`; and one that goes on with `barrier`,
`get_rank`, a wrapper or another line that needs the group when it has been taken down.

## Why it matters
NCCL then ends with its communicators still open: PyTorch (2.4 and later) warns about it, and now and then a run
that has done all its work hangs or fails in the last second, with a torn checkpoint or a wasted allocation. When the
group is gone, ranks know nothing of each other any more, and what asks for it raises an error.

## Example
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
model = DistributedDataParallel(build_model())
train(model)
```

## Use instead
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
try:
    model = DistributedDataParallel(build_model())
    train(model)
finally:
    dist.destroy_process_group()
```

## How it is seen
In the source: no `destroy_process_group` in any file, or only in a function that nobody calls, hands on or gives to a
decorator that may call it; or what needs the group behind the line that takes it down, in the same way through the
text. In the run: ranks that ended well without taking their group down, or that had taken it down when they stopped at
a line that needs it, or before steps whose gradients DDP averages. Accelerate, Fabric and Lightning do it themselves.
Reference: `torch.distributed`, "Shutdown" (https://pytorch.org/docs/stable/distributed.html#shutdown).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, not_reached, verified
from grader.checks.source.calls.missing_modules import may_set_up
from grader.checks.source.causes import guarded_ends, lines
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.collectives.ended_groups import advice_for, late_uses, trained_behind
from grader.checks.source.collectives.joined_groups import in_group, runs_alone
from grader.checks.source.ranks.guard_fixes import out_of_test
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import Function, start
from grader.checks.source.values.reaching_assignments import is_main_block, leaves
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.late_stops import LateStop
    from grader.model.trace import Group, RankTrace

SEVERITY = Severity.HINT
_MAX_DEPTH = 4


def check_source(script: Script) -> Iterable[Hit]:
    """Flag the start of a group that nothing reachable ends, and what needs it behind its end."""
    for late in late_uses(script):
        yield Hit(
            message=f"{script.at(late.use)} has {script.quote(late.use)}, which needs the process group, but "
            f"{script.quote(late.end)} at {script.at(late.end)} has taken it down before.",
            hint=late.advice(script),
            where=lines(script, late.places(script)),
            severity=Severity.ERROR,
        )
    starts = [c for c in script.calls(INIT) if script.may_run(c)]
    if not starts or script.training.framework or may_set_up(script):
        return
    ends = script.mentioned("destroy_process_group")
    if any(script.may_run(node) for node in ends):
        return
    uncalled = (
        f" `destroy_process_group` stands in {script.at(ends[0])}, but nothing calls that function."
        if ends
        else ""
    )
    asked = "if dist.is_initialized(): " if runs_alone(script) else ""
    end = f"{asked}dist.destroy_process_group()"
    yield Hit(
        message=f"{script.at(starts[0])} starts the process group and nothing takes it down.{uncalled} "
        "PyTorch warns about it at exit, and with NCCL a run that has done its work may still hang there.",
        hint=f"End with `{end}` on every rank, best in a `finally:`.",
        where=tuple(script.location(s) for s in starts),
        fix=_fix(script, starts),
    )


def _fix(script: Script, starts: list[ast.Call]) -> Fix | None:
    """The group's end as the last line of the function that trains in it, or of the module."""
    edits = Edits(script)
    last = _last_line(script, starts[0], 0) if len({_function(script, s) for s in starts}) == 1 else None
    if last is None:
        return None
    end = f"{edits.name('torch.distributed.destroy_process_group', starts[0])}()"
    if in_group(script, last):
        edits.after(last, end)
    else:
        edits.after(last, f"if {edits.name('torch.distributed.is_initialized', last)}():", f"    {end}")
    return edits.fix("Takes the process group down when its work is done.")


def _last_line(script: Script, call: ast.Call, depth: int) -> ast.stmt | None:
    """The last statement of the block in which a group's work is done; None where it may be left before."""
    tree, function = script.names.tree(call), _function(script, call)
    if function is None:
        above = next((i for i in tree.root.body if is_main_block(i) and tree.inside(call, i)), None)
        body = above.body if isinstance(above, ast.If) else tree.root.body
    elif script.training.trains and not script.training.runs_backward(function):
        sites = script.graph.sites(function)
        single = len(sites) == 1 and not sites[0].spawned and depth < _MAX_DEPTH
        return _last_line(script, sites[0].call, depth + 1) if single else None
    elif tree.returns.get(function) or function in tree.yields or _used_after(script, function):
        return None
    else:
        body = function.body
    plain = not leaves(script.names, body) and not isinstance(body[-1], ast.FunctionDef | ast.ClassDef)
    return body[-1] if plain else None


def _used_after(script: Script, function: Function) -> bool:
    """Whether a group is still asked after the function that would end it."""
    ends = [(_function(script, site.call), start(site.call)) for site in script.graph.sites(function)]
    uses = [(_function(script, c), start(c)) for _, c in script.calls_under("torch.distributed.")]
    return any(inside is around and begins > end for inside, begins in uses for around, end in ends)


def _function(script: Script, node: ast.AST) -> Function | None:
    return script.names.tree(node).function(node)


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks of a completed run that left their group to the interpreter's end."""
    from grader.checks.run.endings.late_stops import stopped_without_group
    from grader.checks.run.endings.script_ends import has_destroyed, trained_without_group

    begun = [r for r in evidence.trace.ranks if any(g.op == "init" for g in r.groups)]
    if not begun:
        return not_reached("No process group was created.")
    if late := stopped_without_group(evidence):
        return flagged(_late_hit(evidence.script, late))
    early = [(r, found) for r in begun if (found := trained_without_group(r)) is not None]
    if early:
        return flagged(_early_hit(evidence.script, early))
    if not evidence.finished:
        return not_observable("The run did not reach its end, where groups are destroyed.")
    told = [r for r in begun if r.ended]
    if not told:
        return not_observable(
            "The ranks' last words are missing, so whether they destroyed their group is not known."
        )
    leaking = [r for r in told if not has_destroyed(r)]
    if not leaking:
        return verified(f"{ranks(r.rank for r in told)} destroyed the process group at the end.")
    group = next(g for g in leaking[0].groups if g.op == "init")
    script = evidence.script
    guarded = list(guarded_ends(script))
    kept = [c for c in script.called("destroy_process_group") if c in guarded]
    hint = "Call `torch.distributed.destroy_process_group()` as the last line that every rank runs."
    fix: Fix | None = None
    if len(kept) == 1:
        hint = (
            f"Take {script.quote(kept[0])} at {script.at(kept[0])} out of the test: every rank must call it."
        )
        fix = out_of_test(script, kept[0], "Lets all ranks take the group down.")
    return flagged(
        Hit(
            message=(
                f"{ranks(r.rank for r in leaking)} ended without destroying the process group that "
                f"{at(group.site, 'the script')} creates. Threads and sockets are then torn down in an order "
                "that nobody chose: mostly a warning, now and then a hang at the end."
            ),
            hint=hint,
            fix=fix,
            where=(*lines(script, guarded), *place(group.site)),
            ranks=tuple(r.rank for r in leaking),
            details={"backend": group.backend},
        )
    )


def _early_hit(script: Script, early: list[tuple[RankTrace, tuple[Group, int]]]) -> Hit:
    rank, (group, after) = early[0]
    ended = at(group.site, "the script")
    behind = trained_behind(script, group.site)
    hint = f"Take the group down behind the last step, and not at {ended} before it."
    if behind is not None:
        above, training = behind
        into = f"into the `with` block of {script.at(above)}"
        before = f"above {script.quote(above)} ({script.at(above)})"
        move = into if isinstance(above, ast.With) else before
        hint = f"Move {script.quote(training)} from {script.at(training)} {move}: the group outlives the last step."
    return Hit(
        message=f"{ranks(r.rank for r, _ in early)} took the process group down at {ended}, and {after:,} of "
        f"{count(len(rank.steps), 'step')} came after that. With gloo DDP still holds "
        "on to it and goes on averaging; with NCCL its communicators are gone.",
        hint=hint,
        where=told_once((*lines(script, behind or ()), *place(group.site))),
        ranks=tuple(r.rank for r, _ in early),
        severity=Severity.WARNING,
    )


def _late_hit(script: Script, late: tuple[LateStop, ...]) -> Hit:
    first = late[0]
    return Hit(
        message=f"{ranks(one.rank for one in late)} stopped at {at(first.place, 'an unknown line')}: what stands there "
        f"needs the process group, and {at(first.ended, 'the script')} had taken it down before.",
        hint=advice_for(script, first.reached, first.ended),
        where=(*place(first.place), *place(first.ended)),
        ranks=tuple(one.rank for one in late),
        severity=Severity.ERROR,
        evidence=EvidenceKind.OUTSIDE,
    )
