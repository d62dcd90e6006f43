"""Every rank writes the same file.

## What it finds
`torch.save`, safetensors or a file opened for writing, reached by all ranks, with one path for all of them. Adding to
one file counts, too: nothing orders the ranks' rows, and what one of them still holds back may end up inside another's.

## Why it matters
All replicas are equal, so one copy is enough. N ranks that write one path at the same time tear it: the file on
disk may hold the head of one copy and the tail of another, and shared storage pays N times. The fault shows rarely,
and then in the checkpoint that you need.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
torch.save(model.module.state_dict(), "model.pt")
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
dist.barrier()  # nobody reads it before it is whole
dist.destroy_process_group()
```

## How it is seen
In the source: a save that some path of calls reaches without a test of the rank (in the helper, around the call, or
by a decorator), or with one that all ranks but 0 pass, to a path without the rank in it. In the run: the ranks that
wrote each checkpoint, and each file that the task asks for. A file that is written when the process group is gone,
under a test that asks for it, is laid to the order of the two. Sharded and distributed checkpoints are meant to be
written by all ranks and don't count; nor do logs, and ranks that add to a file in turn or under a lock. Reference:
"Save and Load Checkpoints", https://pytorch.org/tutorials/intermediate/ddp_tutorial.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, listed, places, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.calls.calls_from_elsewhere import entry_on_every_rank, said_of_entry
from grader.checks.source.causes import lines, stands_at
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.files.file_writes import appends, checkpoints, files
from grader.checks.source.files.rank_paths import same_for_all
from grader.checks.source.files.shared_appends import added_by_all, in_turn, together
from grader.checks.source.files.writes_after_group import written_after_group
from grader.checks.source.ranks.constant_rank_tests import constant_rank_tests
from grader.checks.source.ranks.main_rank_blocks import put_under_main_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of, start
from grader.model.call_site import Site
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.written_files import Write
    from grader.model.checkpoint_save import Save

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DIST004",)
_RENAMES = ("replace", "rename", "renames", "move")
_ONE_COPY = "if dist.get_rank() == 0:"


def check_source(script: Script) -> Iterable[Hit]:
    """Flag writes to one path that several ranks reach; files other than checkpoints are a warning."""
    if not script.joins_group or not (script.training.trains or script.calls(INIT)):
        return
    saves = _reached(script, checkpoints(script))
    if saves:
        first = saves[0]
        yield Hit(
            message=f"{script.at(first)} has {script.quote(first)} and no test of the rank around it: every "
            "rank writes the same file at the same time, and whoever reads it may find pieces of two copies."
            + said_of_entry(script, first),
            hint=f"Save once: `{_one_copy(script, first)}` around the call (and `dist.barrier()` before anyone reads "
            "the file).",
            where=tuple(script.location(c) for c in saves),
            fix=_fix(script, saves),
            severity=Severity.WARNING if said_of_entry(script, first) else None,
        )
    opened = _reached(script, files(script))
    if opened:
        first = opened[0]
        yield Hit(
            message=f"{script.at(first)} opens one file for writing on every rank: {script.quote(first)}. The "
            "ranks overwrite each other, and the last or the slowest of them decides what is in it."
            + said_of_entry(script, first),
            hint=f"Write it once (`{_one_copy(script, first)}`), or give each rank a file of its own with the rank in "
            "its name.",
            where=tuple(script.location(c) for c in opened),
            fix=_fix(script, opened),
            severity=Severity.HINT if said_of_entry(script, first) else Severity.WARNING,
        )
    yield from _by_others(script)
    adding = added_by_all(script)
    if adding:
        first = adding[0]
        yield Hit(
            message=f"{script.at(first)} adds to one file on every rank: {script.quote(first)}. Nothing orders the "
            "ranks: their rows come in another order each time, and one can end up inside another.",
            hint=together(script, first),
            where=tuple(script.location(c) for c in adding),
            severity=Severity.WARNING,
        )


def _by_others(script: Script) -> Iterable[Hit]:
    """A test the wrong way round; with two ranks there is one writer all the same."""
    writes = [c for c, path in (*checkpoints(script), *files(script)) if same_for_all(script, path)]
    found = {c: guard for c in writes if (guard := script.guards.by_others(c))}
    for call, guard in list(found.items())[:1]:
        yield Hit(
            message=f"{script.at(call)} has {script.quote(call)} under {script.quote(guard.test)} "
            f"({script.at(guard.test)}), which every rank but 0 passes: of three ranks or more, several write the same "
            "file at the same time.",
            hint=f"Turn the test round, so that one rank writes: `{_one_copy(script, call)}`.",
            where=tuple(script.location(c) for c in found),
            severity=Severity.WARNING,
        )


def _one_copy(script: Script, call: ast.Call) -> str:
    """The test that lets rank 0 alone through, as it is asked at a call."""
    test = script.owners.main_test(call)
    return f"if {test}:" if test else _ONE_COPY


def _fix(script: Script, writes: list[ast.Call]) -> Fix | None:
    edits = Edits(script)
    put_under_main_rank(script, edits, writes)
    return edits.fix("Writes on rank 0 alone.")


def _reached(script: Script, writes: Iterable[tuple[ast.Call, ast.expr | None]]) -> list[ast.Call]:
    same = [c for c, path in writes if same_for_all(script, path)]
    found = {c for c in same if script.guards.on_every_rank(c) or entry_on_every_rank(script, c)}
    return sorted(found, key=lambda c: (script.location(c).path, start(c)))


def check_run(evidence: Evidence) -> Observation:
    """Flag checkpoints that two or more ranks wrote, to the same path (error) or each to one of its own (warning)."""
    from grader.checks.run.models.replica_comparison import in_parts_by_hand, sharded
    from grader.checks.run.written_files import copies, writers

    wrote = writers(evidence)
    clashing = {path: found for path, found in wrote.items() if len(found) > 1}
    if clashing:
        return flagged(_misguarded(_clash(evidence.script, clashing), evidence.script))
    shared = _shared_results(evidence)
    if shared:
        return flagged(*(_added(evidence.script, path, found) for path, found in shared.items()))
    in_parts = sharded(evidence.trace) or evidence.ledger.layout.divided or in_parts_by_hand(evidence.trace)
    same = [] if in_parts else copies(evidence)
    if same:
        return flagged(_misguarded(_copied(evidence.script, same), evidence.script))
    if not wrote and evidence.finished and not evidence.record.outputs:
        return idle("No rank wrote anything, so none wrote over another's files.")
    if not wrote:
        return not_observable("No checkpoint was seen to be written.")
    who = sorted({rank for found in wrote.values() for rank in found})
    paths = listed([f"`{p}`" for p in sorted(wrote)], 3)
    return verified(f"{ranks(who)} alone wrote {paths}.")


def _misguarded(hit: Hit, script: Script) -> Hit:
    """The same where a guard stands that lets every rank through: the guard is what is to be mended."""
    guard = next((t for t in constant_rank_tests(script) if t.on_all), None)
    if guard is None:
        return hit
    return replace(
        hit,
        message=f"{hit.message} The test {script.quote(guard.node)} ({script.at(guard.node)}) is true on every rank.",
        hint=guard.hint,
        where=(script.location(guard.node), *hit.where),
        fix=guard.fix,
    )


def _shared_results(evidence: Evidence) -> dict[str, dict[int, Site | None]]:
    """Path → rank → line, for files that the task asks for and that two or more ranks opened at once."""
    if evidence.evaluation is None:
        return {}
    asked = {a.file for a in evidence.evaluation.answers.values()} | set(evidence.evaluation.unread)
    script = evidence.script
    apart = [c for c, _ in appends(script) if in_turn(script, c)]
    found: dict[str, dict[int, Site | None]] = {}
    for rank in evidence.trace.ranks:
        for file in rank.files:
            written = file.out and file.op in ("open", "rename") and file.path in asked - {""}
            if written and not any(stands_at(script, c, file.site) for c in apart):
                found.setdefault(file.path, {})[rank.rank] = file.site
    return {path: ranks_of for path, ranks_of in found.items() if len(ranks_of) > 1}


def _added(script: Script, path: str, found: dict[int, Site | None]) -> Hit:
    # Who begins a file may be another line than the one that all ranks come by.
    sites = sorted(found.values(), key=lambda s: -sum(s == other for other in found.values()))
    call = next((c for c, _ in appends(script) if stands_at(script, c, sites[0])), None)
    helper = script.names.tree(call).function(call) if call is not None else None
    callers = [script.location(s.call) for s in script.graph.sites(helper)] if helper is not None else []
    doing = "adds to it" if call is not None else "opens it for writing"
    return Hit(
        message=(
            f"{ranks(found)} all wrote `{path}`. {at(sites[0])} {doing} on each of them: nothing orders the ranks, and "
            "rows can be lost, out of order or torn where two write at once."
        ),
        hint=together(script, call) if call is not None else f"Write it once: `{_ONE_COPY}` around the call.",
        where=tuple(dict.fromkeys((*places(sites[:1]), *callers, *places(sites)))),
        ranks=tuple(sorted(found)),
        details={"paths": {path: sorted(found)}},
        severity=Severity.WARNING,
    )


def _clash(script: Script, clashing: dict[str, dict[int, Write]]) -> Hit:
    from grader.checks.run.written_files import METRICS, clash

    weights = {p: found for p, found in clashing.items() if p != METRICS}
    told = weights or clashing
    path, found = next(iter(told.items()))
    first = next((w for w in found.values() if w.site is not None), next(iter(found.values())))
    call = _call_at(script, first.site)
    late = written_after_group(script, call, first.destroyed) if call is not None else None
    also = f" (and {count(len(clashing) - 1, 'other file')})" if len(clashing) > 1 else ""
    return Hit(
        message=f"{ranks(found)} all wrote `{path}`{also}. {at(first.site)} {clash(found)}"
        + (f" {late.says}" if late is not None else ""),
        hint=late.hint if late is not None else _saved_once(script, call),
        where=told_once(
            (
                *places(w.site for f in told.values() for w in f.values()),
                *(lines(script, late.nodes) if late is not None else ()),
            )
        ),
        ranks=tuple(sorted(found)),
        details={"paths": {p: sorted(f) for p, f in list(clashing.items())[:8]}},
        severity=Severity.ERROR if weights else Severity.WARNING,
    )


def _call_at(script: Script, site: Site | None) -> ast.Call | None:
    """The call that writes at a place, or renames what was written."""
    written = [*(c for c, _ in (*checkpoints(script), *files(script))), *script.called(*_RENAMES)]
    return next((c for c in written if stands_at(script, c, site)), None)


def _saved_once(script: Script, call: ast.Call | None) -> str:
    """Advice in the names that stand where a file is written; a test that stands there already is what is to change."""
    guard = script.guards.partial(call) if call is not None else None
    if call is None:
        return "Save on rank 0 alone: `if dist.get_rank() == 0:` around the call."
    if guard is not None:
        return (
            f"The test {script.quote(guard.test)} at {script.at(guard.test)} lets all ranks through: ask the process "
            "group itself there, below its start, `dist.get_rank() == 0`."
        )
    made = " and what writes that file" if name_of(call) in _RENAMES else ""
    return f"Save on rank 0 alone: `{_one_copy(script, call)}` around {script.quote(call)}{made}."


def _copied(script: Script, copies: list[tuple[int, Save]]) -> Hit:
    names = listed([f"`{s.path}`" for _, s in copies], 4)
    return Hit(
        message=(
            f"{ranks(r for r, _ in copies)} each wrote a copy of the same model: {names}. "
            f"{at(copies[0][1].site)} saves on every rank. Replicas are equal, so this costs disk and time for "
            "nothing, and nobody knows which file counts."
        ),
        hint=_saved_once(script, _call_at(script, copies[0][1].site)),
        where=places(s.site for _, s in copies),
        ranks=tuple(r for r, _ in copies),
        details={"paths": {str(r): s.path for r, s in copies}},
        severity=Severity.WARNING,
    )
