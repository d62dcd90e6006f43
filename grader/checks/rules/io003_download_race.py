"""Every rank downloads into the same folder.

## What it finds
`download=True` of a torchvision or torchaudio data set, and download functions, that all ranks run at the same
time.

## Why it matters
On a fresh machine N ranks fetch and unpack the same archive over each other: at best N times the traffic, at worst
a broken archive or a crash in a rank that read a file which another was still writing. Afterwards, with the files
in place, all is well, which is why the fault is met on the cluster and not at home.

## Example
```python
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torchvision import datasets

dist.init_process_group("gloo")
train_set = datasets.FashionMNIST("data", train=True, download=True)
model = DistributedDataParallel(build_model())
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torchvision import datasets

dist.init_process_group("gloo")
if int(os.environ["LOCAL_RANK"]) == 0:  # one rank per machine
    datasets.FashionMNIST("data", train=True, download=True)
dist.barrier()
train_set = datasets.FashionMNIST("data", train=True, download=False)
model = DistributedDataParallel(build_model())
dist.destroy_process_group()
```

## How it is seen
In the source: downloads that every rank reaches, with neither a test of the rank, nor a pair of barriers that lets
one rank go first, nor a lock around them, or before which rank 0 alone waits; and data sets that one rank downloads
while the others open them. In the run: ranks of one machine that really began a download. Hugging Face's caches take a
lock of their own and don't count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, idle, not_observable, verified
from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.calls.uncalled_methods import meeting, uncalled_between
from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.collectives.joined_groups import in_group
from grader.checks.source.data.early_opens import EarlyOpen, opened_early
from grader.checks.source.ranks.rank_order import in_turn, main_waits, under_lock
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.ranks.written_ranks import local_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event, RankTrace

SEVERITY = Severity.WARNING
NEEDS = Precondition.RANKS
_MEETINGS = (
    "barrier",
    "monitored_barrier",
    "all_reduce",
    "all_gather",
    "broadcast",
    "gather",
    "reduce",
    "scatter",
)
"""Beginnings of the names of collectives that all ranks take part in."""
_FETCHERS = {
    "torchvision.datasets.utils.download_url", "torchvision.datasets.utils.download_and_extract_archive",
    "torch.hub.download_url_to_file", "urllib.request.urlretrieve", "wget.download", "gdown.download",
}  # fmt: skip
_WORDS = ("download", "prepare", "fetch")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag downloads that all ranks run at the same time, as one finding with all its lines."""
    if not script.joins_group:
        return
    fetching = list(_downloads(script))
    found = [
        c for c in fetching if script.guards.on_every_rank(c) and not in_turn(script, c, fetching, _WORDS)
    ]
    found.sort(key=lambda c: (script.location(c).path, start(c)))
    yield from _read_while_downloading(script, fetching)
    together = {c: wait for c in found if (wait := main_waits(script, c)) is not None}
    for call, wait in together.items():
        yield Hit(
            message=f"{script.at(call)} downloads on all ranks but rank 0 at the same time, {script.quote(call)}: "
            f"rank 0 alone waits before it, at {script.at(wait)}. Where the files are not there yet, the others fetch "
            "and unpack them over each other.",
            hint="Turn the two tests around: the other ranks wait before the download, and rank 0 behind it.",
            where=(script.location(call), script.location(wait)),
        )
    found = [c for c in found if c not in together]
    if not found:
        return
    first = found[0]
    yield Hit(
        message=f"{script.at(first)} downloads on every rank: {script.quote(first)}. Where the files are not "
        "there yet, the ranks fetch and unpack them over each other, and one may read what another is still "
        "writing.",
        hint="Let one rank per machine go first: `if local_rank == 0:` download, then `dist.barrier()`, then "
        "build the data set on all ranks with `download=False`.",
        where=tuple(script.location(c) for c in found),
        fix=_fix(script, found),
    )


def _read_while_downloading(script: Script, fetching: list[ast.Call]) -> Iterable[Hit]:
    yield from _read_too_early(script, fetching)
    yield from _read_before_meeting(script, fetching)


def _read_too_early(script: Script, fetching: list[ast.Call]) -> Iterable[Hit]:
    """`download=rank == 0` on every rank: the others open the files in the same call, before rank 0 has fetched any."""
    for call in script.calls_given("download"):
        wanted = next(k.value for k in call.keywords if k.arg == "download")
        condition = script.conditions.of(wanted)
        if condition.which is not RankSet.MAIN or not condition.sure or script.graph.targets(call):
            continue
        if not script.guards.on_every_rank(call) or in_turn(script, call, [*fetching, call], _WORDS):
            continue
        yield Hit(
            message=f"{script.at(call)} downloads on one rank, {script.quote(call)}, and all the others open the same "
            "files in that very call: on a fresh machine nothing is there yet, and a wait behind it comes too late.",
            hint="Let one rank per machine go first: `if local_rank == 0:` download, then `dist.barrier()`, then "
            "build the data set on all ranks with `download=False`.",
            where=(script.location(call),),
        )


def _read_before_meeting(script: Script, fetching: list[ast.Call]) -> Iterable[Hit]:
    """Rank 0 downloads, and the others open the files with no barrier in between; what opens all of them is one."""
    meet = bool(script.calls(INIT) or script.training.framework)  # ranks without a group can't
    early = opened_early(script, fetching, _WORDS) if meet else ()
    together: dict[ast.AST | None, list[EarlyOpen]] = {}
    for one in early:
        function = script.names.tree(one.call).function(one.call)
        together.setdefault(function if one.everywhere else one.call, []).append(one)
    for found in together.values():
        found.sort(key=lambda one: start(one.call))
        call, fetch = found[0].call, found[-1].fetch
        who = "all ranks" if found[0].everywhere else "the other ranks"
        named = uncalled_between(script, fetch, call)
        yield Hit(
            message=f"{script.at(call)} opens on {who} what {script.at(fetch)} is still downloading "
            "on rank 0: nothing makes the others wait, and a barrier further down comes too late.",
            hint=meeting(script, named[0])
            if named
            else f"Put `dist.barrier()` between {script.at(fetch)} and {script.at(call)}, on every rank.",
            where=tuple(script.location(one.call) for one in found),
        )


def _fix(script: Script, found: list[ast.Call]) -> Fix | None:
    """Each download made by one rank per machine while the others wait; what is built from it is built after that."""
    edits = Edits(script)
    for call in found:
        statement = script.names.tree(call).statement(call)
        wanted = keyword_value(call, "download")
        test = f"if {local_rank(script, edits, call)} == 0:"
        meet = f"{edits.name('torch.distributed.barrier', call)}()"
        if wanted is not None and isinstance(statement, ast.Assign) and statement.value is call:
            edits.before(statement, test, *edits.lines(call, "    "), meet)
            edits.replace(wanted, "False")
        elif wanted is None and isinstance(statement, ast.Expr) and statement.value is call:
            edits.wrap([statement], test)
            edits.after(statement, meet)
        else:
            return None
        if not in_group(script, call):
            return None
    return edits.fix("Downloads on one rank per machine, while the others wait.")


def _downloads(script: Script) -> Iterable[ast.Call]:
    fetchers = script.calls(*_FETCHERS)
    yield from fetchers
    for call in script.calls_given("download"):
        if call in fetchers or script.graph.targets(call):
            continue
        wanted = next(k.value for k in call.keywords if k.arg == "download")
        origins = script.values.origins(wanted)
        if origins and all(isinstance(o, ast.Constant) and o.value is True for o in origins):
            yield call


def check_run(evidence: Evidence) -> Observation:
    """Flag downloads that two or more ranks ask for with nothing that puts one before the others."""
    from grader.checks.run.nodes import ranks_by_node

    asked = {r.rank: r.events("download") for r in evidence.trace.ranks}
    # Ranks of different machines write to different disks.
    machine = {rank: number for number, found in enumerate(ranks_by_node(evidence.trace)) for rank in found}
    roots: dict[tuple[str, str, int], dict[int, Event]] = {}
    for rank, events in asked.items():
        for event in events:
            if event.fields.get("guarded") is not True:
                roots.setdefault((*_what(event), machine.get(rank, 0)), {}).setdefault(rank, event)
    shared = {what: found for what, found in roots.items() if len(found) > 1}
    racing = {
        what: found
        for what, found in shared.items()
        if _unordered(evidence, found) and not _locked(evidence.script, found)
    }
    if racing:
        whats = {what[:2] for what in racing}
        sites = [e.site for found in racing.values() for r in found for e in asked[r] if _what(e) in whats]
        return flagged(replace(_run_hit(racing), where=places(sites)))
    if shared:
        return verified(
            "Ranks asked for the data one after the other: a collective or a lock stands between their downloads."
        )
    if any(asked.values()):
        if any(_read_while_downloading(evidence.script, list(_downloads(evidence.script)))):
            # The files may have been there before, and then nobody came too early.
            return not_observable("When the other ranks opened what one rank downloads is not recorded.")
        return verified(f"{ranks(r for r, e in asked.items() if e)} alone asked for a download.")
    return (
        idle("No rank asked for a download.")
        if any(r.start for r in evidence.trace.ranks)
        else not_observable("No trace.")
    )


def _what(event: Event) -> tuple[str, str]:
    return str(event.fields.get("dataset", "")), str(event.fields.get("root", ""))


def _unordered(evidence: Evidence, found: dict[int, Event]) -> bool:
    """True when no rank asked ahead of all others.

    Collectives of the default group are the same series on all ranks, so a rank that has met the others more often
    asked later; ranks that have met equally often were kept apart by nothing.
    """
    met = [_meetings(evidence.trace.ranks[rank], event.t) for rank, event in found.items()]
    return met.count(min(met)) > 1 and not _locked(evidence.script, found)


def _locked(script: Script, found: dict[int, Event]) -> bool:
    """Whether the text keeps these downloads apart by a lock, of which a run shows nothing."""
    locked = [c for c in script.calls_given("download") if under_lock(script, c)]
    return all(any(stands_at(script, c, event.site) for c in locked) for event in found.values())


def _meetings(rank: RankTrace, t: float) -> int:
    joined = sum(1 for g in rank.groups if g.op == "init" and g.t < t)
    return joined + sum(1 for c in rank.collectives if c.t < t and c.name.startswith(_MEETINGS))


def _run_hit(racing: dict[tuple[str, str, int], dict[int, Event]]) -> Hit:
    (dataset, _, _), found = next(iter(racing.items()))
    event = next(iter(found.values()))
    began = any(e.fields.get("started") is True for e in found.values())
    happened = "" if began else " The data was in place this time; on a fresh machine the ranks would clash."
    return Hit(
        message=(
            f"{ranks(found)} asked to download {f'`{dataset}`' if dataset else 'the same data'} at the same time. "
            f"{at(event.site)} does so on every rank: they write the same files at once, which ends in a crash or a "
            f"broken archive.{happened}"
        ),
        hint=(
            "Let one rank of each machine download first: `if local_rank == 0: FashionMNIST(root, download=True)`, "
            "`dist.barrier()`, then read with `download=False` on all ranks."
        ),
        ranks=tuple(sorted(found)),
        details={
            "datasets": list(dict.fromkeys(d for d, _, _ in racing)),
            "times_s": {str(r): round(e.t, 3) for r, e in found.items()},
        },
    )
