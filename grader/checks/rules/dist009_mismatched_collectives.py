"""Ranks meet in different collectives.

## What it finds
Ranks that call different collectives at the same time, or the same one in another order: branches on the rank, a
loop over names that only some ranks have, a `src` that is each rank's own number.

## Why it matters
Collectives are matched by their order alone, not by name or tensor. When one rank stands in `all_reduce` while
another waits in `broadcast`, the run hangs at best; at worst both go on with each other's numbers.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
weights = torch.zeros(10)
if dist.get_rank() == 0:
    dist.broadcast(weights, src=0)
else:
    dist.all_reduce(weights)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
weights = torch.zeros(10)
dist.broadcast(weights, src=0)
dist.destroy_process_group()
```

## How it is seen
In the source: the collectives of both branches of a rank test, loops over tables that are filled on one rank only or
over sets, tests of this rank's own data or of its own random draw around a collective, and `src`/`dst` taken from the
rank itself. In the run: a
deadlock in which the stacks show ranks in different https://pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, listed, places, ranks
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.data.rank_dependent_shares import in_order, is_unordered
from grader.checks.source.ranks.guard_fixes import value_of_some
from grader.checks.source.ranks.own_decisions import own_decisions
from grader.checks.source.ranks.rank_expressions import Strength
from grader.checks.source.script import Script
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.values.uneven_dicts import UnevenDicts
from grader.model.call_site import Site
from grader.model.finding import EvidenceKind, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.endings.stuck_ranks import StuckRank
    from grader.model.run import Frame, RankRecord

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = (
    "DATA005", "DATA011", "DIST001", "DIST004", "DIST005", "DIST006", "DIST008", "EVAL005", "GRAD009",
)  # fmt: skip
_ROOTED = dict.fromkeys(("broadcast", "broadcast_object_list", "scatter"), "src")
_ROOTED |= dict.fromkeys(("reduce", "gather"), "dst")
_HINT = "Let all ranks make the same calls in the same order; what differs by rank is the data, not the collective."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag branches that meet in different collectives, tables of one rank, and roots that differ by rank."""
    if not script.collectives.direct:
        return
    yield from _branches(script)
    yield from _own_roots(script)
    yield from _uneven_tables(script)
    yield from _unordered(script)
    yield from _own_decisions(script)


def _branches(script: Script) -> Iterable[Hit]:
    for tree in script.trees:
        for branch in tree.ifs:
            condition = script.conditions.of(branch.test) if branch.orelse else None
            if condition is None or not condition.partial or not condition.sure:
                continue
            sides = (branch.body, branch.orelse)
            # What runs only where there are no other ranks meets nobody.
            one, other = (
                [c for s in side for c in script.collectives.inside(s) if not script.guards.alone(c.via)]
                for side in sides
            )
            if not one or not other or [c.name for c in one] == [c.name for c in other]:
                continue
            pairs = [(a, b) for a, b in zip(one, other, strict=False) if a.name != b.name]
            if not pairs:
                continue  # one side only goes on longer: a loop or an early end, which names cannot tell
            direct = all(c.via is c.call for c in (*one, *other))
            first, second = pairs[0]
            yield Hit(
                message=f"Under {script.quote(branch.test)} {script.at(first.via)} runs `{first.name}` while "
                f"the other ranks run `{second.name}` at {script.at(second.via)}. Collectives are matched by "
                "their order alone, so these two wait for each other or mix their data.",
                hint=_HINT,
                where=(script.location(first.via), script.location(second.via)),
                severity=None if direct else Severity.HINT,
            )


def _own_roots(script: Script) -> Iterable[Hit]:
    for call, name in script.collectives.direct.items():
        parameter = _ROOTED.get(name)
        root = script.argument(call, parameter) if parameter else None
        if root is None or script.ranks.rank(root) is not Strength.SURE or isinstance(root, ast.BinOp):
            continue
        if script.guards.partial(call) is None:
            yield Hit(
                message=f"{script.at(call)} has {script.quote(call)}: `{parameter}` is each rank's own number, "
                f"so every rank takes itself for the root of the same `{name}`, and none gets what it waits "
                "for.",
                hint=f"Name one root for all ranks, such as `{parameter}=0`.",
                where=(script.location(call),),
            )


def _uneven_tables(script: Script) -> Iterable[Hit]:
    """A loop with a collective over a table into which only some ranks put an entry."""
    tables = UnevenDicts(script)
    for tree in script.trees:
        for loop in tree.loops:
            if isinstance(loop, ast.While) or not script.collectives.inside(loop):
                continue
            inside = [c for s in loop.body for c in script.collectives.inside(s)]
            filled = tables.filled_by_some(loop) if inside else None
            if filled is not None:
                yield Hit(
                    message=f"{script.at(inside[0].via)} runs `{inside[0].name}` once per entry of "
                    f"{script.quote(loop.iter)}, and {script.at(filled)} adds an entry on some ranks only. "
                    "Those ranks call it more often than the others, and every later collective meets the "
                    "wrong partner.",
                    hint="Give all ranks the same entries in the same order, or reduce a fixed list of names.",
                    where=(script.location(inside[0].via),),
                )


def _unordered(script: Script) -> Iterable[Hit]:
    """A loop with a collective over a set: each process has an order of its own for texts."""
    for tree in script.trees:
        for loop in tree.loops:
            inside = [c for s in loop.body for c in script.collectives.inside(s)]
            if isinstance(loop, ast.While) or not inside or not is_unordered(script, loop.iter):
                continue
            yield Hit(
                message=f"{script.at(loop)} goes through {script.quote(loop.iter)}, whose order differs from process "
                f"to process, and runs `{inside[0].name}` for each entry ({script.at(inside[0].via)}). Collectives are "
                "matched by their order alone, so ranks mix up each other's values or wait for ever.",
                hint=f"Go through it in an order that all ranks share: `{in_order(loop)}` at {script.at(loop)}.",
                where=(script.location(loop.iter), script.location(inside[0].via)),
            )


def _own_decisions(script: Script) -> Iterable[Hit]:
    """A collective under a test of this rank's own share of the data, or of a draw of its own."""
    for one in own_decisions(script):
        yield Hit(
            message=one.says(script),
            hint=one.hint(script),
            where=tuple(dict.fromkeys(script.location(node) for node in one.nodes())),
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag a deadlock or a crash in which ranks met in different collectives."""
    from grader.checks.run.call_counts import num_calls
    from grader.checks.run.endings.stuck_ranks import guarded_ranks, mismatch, parted_by_test, stuck_ranks

    stuck = stuck_ranks(evidence)
    if guarded_ranks(stuck) or parted_by_test(evidence):
        return not_observable("Ranks parted at a collective under a test of the rank (DIST003).")
    if stuck:
        return flagged(_caused(_deadlock_hit(stuck), evidence.script))
    crashed = [(r, mismatch(r)) for r in evidence.record.ranks if mismatch(r)]
    if crashed:
        return flagged(_caused(_crash_hit(evidence, crashed), evidence.script))
    if evidence.finished:
        called = num_calls(evidence.trace)
        if not called:
            return idle("No rank was left waiting for another, and nothing that they exchanged was refused.")
        return verified(
            f"Every collective found its partners ({count(called, 'call')} by name).", EvidenceKind.OUTSIDE
        )
    return not_observable("The run did not reach its end, so later collectives were not seen.")


def _caused(hit: Hit, script: Script) -> Hit:
    """With what the text shows to have led to it, where it shows one thing."""
    causes = [cause for cause in check_source(script) if cause.severity is None]
    if not causes:
        hint, fix = value_of_some(script)
        return replace(hit, hint=hint or hit.hint, fix=fix)
    if len(causes) != 1:
        return hit
    (cause,) = causes
    return replace(
        hit,
        message=f"{hit.message} {cause.message}",
        hint=cause.hint,
        where=tuple(dict.fromkeys((*cause.where, *hit.where))),
    )


def _deadlock_hit(stuck: tuple[StuckRank, ...]) -> Hit:
    # Who waited for whom, and why, is the diagnosis's to tell; here stands which calls do not belong together.
    calls = listed(s.call() for s in stuck[:8])
    return Hit(
        message=f"Ranks did not meet in one collective, which stopped the run: {calls}.",
        hint=(
            "Let all ranks call the same collectives in the same order and equally often: the same number of "
            "batches, the same branches, and decisions such as an early stop on a value that all ranks share."
        ),
        where=places((*(s.site for s in stuck), *(s.caller for s in stuck))),
        ranks=tuple(s.rank for s in stuck if not s.ended),
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


def _crash_hit(evidence: Evidence, crashed: list[tuple[RankRecord, str]]) -> Hit:
    words = crashed[0][1]
    sites: list[Frame | Site | None] = [
        next((f for f in r.failure.frames if f.in_submission), None) for r, _ in crashed if r.failure
    ]
    who = [r.rank for r, _ in crashed]
    if not any(sites):
        # The backend's own thread failed: the newest call that each rank had made.
        sites = [r.collectives[-1].site for r in evidence.trace.ranks if r.collectives]
    return Hit(
        message=(
            f"{ranks(who)} crashed{f' at {at(sites[0])}' if any(sites) else ''} because the ranks' "
            f"collectives did not fit together: “{words.strip().splitlines()[0][:160]}”. "
            "What one rank sends another must expect, in kind, order and size."
        ),
        hint=_gathered(evidence.script, sites)
        or "Let all ranks call the same collectives in the same order, with tensors of the same shape and type.",
        where=places(sites),
        ranks=tuple(who),
        details={"messages": {str(r.rank): w[:400] for r, w in crashed}},
        evidence=EvidenceKind.OUTSIDE,
    )


def _gathered(script: Script, sites: Sequence[Frame | Site | None]) -> str:
    """For tensors of unequal length that are gathered: how objects are, which may differ."""
    for site in sites:
        calls = (c for t in script.trees if site and t.path == site.path for c in t.called("all_gather"))
        for call in calls:
            if site is not None and call.lineno == site.line and len(call.args) > 1:
                parts, own = (node_text(script, part) for part in call.args[:2])
                return (
                    f"`{own}` is longer on some ranks, and `all_gather` takes tensors of one shape alone. Gather "
                    f"objects, which may differ: `{parts} = [None] * dist.get_world_size()`, "
                    f"`dist.all_gather_object({parts}, {own})`."
                )
    return ""
