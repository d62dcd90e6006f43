"""How one validation pass was shared among ranks, and whether its parts were put together afterwards.

Told by which samples the ranks drew; by counts only where the samples are not known, or mean something else on each
rank. It speaks of passes only; what a metric should have been is the scorer's to say.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from grader.checks.phrases import at, ranks
from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.data.neighbouring_passes import samples_besides
from grader.checks.run.data.sample_ledger import Ledger, Stream
from grader.checks.run.metrics.validation_sets import expected_samples, overlapping, own_samples, same_numbers
from grader.checks.run.models.parallel_layout import Layout
from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.rank_messages import is_turn
from grader.checks.source.files.rank_files import read_by_one, read_when_there
from grader.checks.source.script import Script
from grader.model.call_site import Site
from grader.model.checkpoint_save import Save
from grader.model.file_write import FileWrite
from grader.model.trace import Collective, RankTrace, Trace

COMBINING = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "all_to_all",
    "send",
    "recv",
    "isend",
    "irecv",
    "batch_isend_irecv",
    "scatter",
    "store.add",
    "store.get",
    "store.multi_get",
)
"""Beginnings of the names of calls that bring ranks' values together; a barrier or one broadcast does not."""
_BROADCASTS = ("broadcast", "broadcast_object_list")


@dataclass(frozen=True, slots=True)
class Parts:
    """One validation pass in which each rank saw only a part.

    Attributes:
        epoch: the pass.
        num_expected: samples of the set that was divided, None unknown.
        num_padded: samples drawn beyond the first time; None where samples are not known.
        num_missing: samples never drawn; None where unknown or where a loop was left early.
        own: each rank went through a data set of its own, whose indices mean other samples than another rank's.
    """

    epoch: EpochShards
    num_expected: int | None
    num_padded: int | None
    num_missing: int | None
    own: bool = False


def divided_passes(ledger: Ledger, stream: Stream) -> tuple[Parts, ...]:
    """Passes of a validation stream that were divided among ranks; whole passes on each rank, or on one, are not."""
    found = []
    for epoch in stream.epochs:
        expected = expected_samples(ledger, stream, epoch)
        if len(epoch.shards) < 2 or expected is None:
            continue
        exact = epoch.known and same_numbers(ledger, stream, epoch)
        if not (_disjoint(epoch) if exact else _short(epoch, expected)) or not any(
            s.exhausted for s in epoch.shards
        ):
            continue
        padded = epoch.num_drawn - epoch.num_distinct if exact else None
        missing = None
        if exact and epoch.complete:
            missing = max(0, expected - len(epoch.union | samples_besides(ledger, stream, epoch)))
        own = own_samples(ledger, stream, epoch)
        if own is not None and epoch.complete and not overlapping(ledger, stream, epoch):
            drawn = sum(s.num_distinct for s in epoch.shards)
            if stream.split == "validation" or drawn >= own == ledger.num_validation:
                missing = max(0, own - drawn)
        found.append(Parts(epoch, expected, padded, missing, own=own is not None))
    return tuple(found)


def same_part(ledger: Ledger, stream: Stream) -> tuple[Parts, ...]:
    """Passes in which all ranks drew the very same part of the mounted set, and no loader of any rank the rest."""
    alike = [s for s in ledger.validation if s.root == stream.root]
    scored = frozenset().union(*(e.union for s in alike for e in s.epochs))
    found = []
    for epoch in stream.epochs if stream.split == "validation" else ():
        expected = expected_samples(ledger, stream, epoch)
        held = max((s.loader.size or 0 for s in epoch.shards if s.loader), default=0)
        # A loader over the whole set that is left early, or drops a batch, keeps its samples from no rank.
        part = expected is not None and 0 < held < expected and epoch.complete
        if part and expected is not None and _seen_by_all(ledger, stream, epoch) and len(scored) < expected:
            found.append(Parts(epoch, expected, None, expected - len(scored)))
    return tuple(found)


def whole_ranks(ledger: Ledger, stream: Stream) -> tuple[int, ...]:
    """Ranks that went through (nearly) all of the validation set in some pass, or through what every rank went."""
    found = set()
    for epoch in stream.epochs:
        expected = expected_samples(ledger, stream, epoch)
        found |= {s.rank for s in epoch.shards if expected and s.num_samples >= 0.9 * expected}
        if _seen_by_all(ledger, stream, epoch):
            found |= set(epoch.ranks)
    return tuple(sorted(found))


def _seen_by_all(ledger: Ledger, stream: Stream, epoch: EpochShards) -> bool:
    """Whether several ranks drew the very same samples: each knows what the others would tell it."""
    same = len(epoch.shards) > 1 and epoch.known and same_numbers(ledger, stream, epoch)
    return same and all(s.num_distinct == epoch.num_distinct > 0 for s in epoch.shards)


def _disjoint(epoch: EpochShards) -> bool:
    """Whether ranks drew samples of their own, but for those that fill up a share to the length of the others."""
    return epoch.num_shared <= 0.5 * min(s.num_distinct for s in epoch.shards)


def _short(epoch: EpochShards, expected: int) -> bool:
    """Whether no rank drew as many samples as there are, but for the last bit."""
    return all(s.num_samples < 0.9 * expected for s in epoch.shards)


def combining(trace: Trace, stream: Stream, script: Script) -> tuple[Collective, ...]:
    """Collectives that ran after a pass of this stream had begun and before the rank went on training."""
    return combined_after(trace, begins(trace, stream), script)


def begins(trace: Trace, stream: Stream) -> dict[int, tuple[float, ...]]:
    """Rank → when it began its passes of this stream.

    Of every rank: of a model in parts any may reduce, not only the one that stands for all in the stream.
    """
    layout = Layout.of(trace)
    return {
        r.rank: tuple(s.start_t for member in layout.partners(r.rank) for s in stream.shards(member))
        for r in trace.ranks
    }


def apart(trace: Trace, stream: Stream, calls: tuple[Collective, ...]) -> tuple[Collective, ...]:
    """These calls where all of them together leave ranks apart that drew different parts; else none."""
    # What comes once, when all is over, brings weights together to save them.
    earlier = {c.site for c in calls if any(c.t < e.shards[0].start_t for e in stream.epochs[-1:])}
    kept = [c for c in calls if c.site in earlier or not earlier]
    return () if Layout.of(trace).joins([c.ranks for c in kept], stream.ranks) else tuple(kept)


def in_vain(layout: Layout, call: Collective) -> str:
    """What a collective does that leaves parts of a metric apart."""
    told = f"`{call.name}` at {at(call.site)}"
    if call.ranks is None:
        return f"{told} loses what it brings together"
    along = layout.dimension(call.ranks)
    return f"{told} brings together {ranks(call.ranks).lower()} only{along}, and these do not have all parts"


def evaluated(trace: Trace) -> dict[int, tuple[tuple[float, int], ...]]:
    """Rank → (begin in seconds, samples) of each evaluation, told by the model: for batches that came from no loader.

    What is evaluated without training in between is one evaluation, however many loops or lines it takes.
    """
    found: dict[int, tuple[tuple[float, int], ...]] = {}
    for rank in trace.ranks:
        resumed = sorted(_training_times(rank))
        runs: dict[int, tuple[float, int]] = {}
        begun = math.nan
        for event in rank.events("evaluation"):
            samples = event.fields.get("num_samples")
            if event.fields.get("op") == "begin":
                begun = event.t
            elif isinstance(samples, int) and not math.isnan(begun):
                number = bisect.bisect(resumed, begun)
                start, before = runs.get(number, (begun, 0))
                runs[number] = (start, before + samples)
        if runs:
            found[rank.rank] = tuple(runs.values())
    return found


def combined_after(
    trace: Trace, begun: dict[int, tuple[float, ...]], script: Script
) -> tuple[Collective, ...]:
    """Collectives that ran after one of these times (by rank) and before the rank went on training."""
    found: list[Collective] = []
    divided = Layout.of(trace).divided
    for rank in trace.ranks:
        calls = [
            [c for c in rank.collectives if start <= c.t <= end]
            for start, end in _windows(rank, begun.get(rank.rank, ()))
        ]
        turns = [c for window in calls for c in _turns(script, window, trace.world_size)]
        found += [
            c
            for c in rank.collectives
            if any(c in window for window in calls)
            and (c.name.startswith(COMBINING) or c in turns)
            # What a model in parts exchanges to go forward at all is none of its metrics.
            and not (c.forward and divided)
        ]
    return tuple(found)


def _turns(script: Script, calls: list[Collective], world_size: int) -> list[Collective]:
    """Broadcasts of one line that came from each rank in its turn."""
    sent = [c for c in calls if c.name in _BROADCASTS]
    written = (
        [c for c in script.called(*_BROADCASTS) if is_turn(script.names, script.values, c)] if sent else []
    )
    in_turn = [c for c in sent if any(stands_at(script, call, c.site) for call in written)]
    return [c for c in in_turn if sum(o.site == c.site for o in in_turn) >= len(c.ranks or range(world_size))]


def through_files(trace: Trace, begun: dict[int, tuple[float, ...]], script: Script) -> Site | None:
    """Where each of these ranks wrote a file of its own after such a time, and one read them all.

    They met in between, or who reads waits for each file, and each has another name than the one of the pass before.
    """
    after_meeting, awaited = read_by_one(script), read_when_there(script)
    written: dict[int, tuple[str, Site | None]] = {}
    for rank in trace.ranks if after_meeting or awaited else ():
        kept: list[FileWrite | Save] = [*rank.files, *rank.saves]
        there: set[str] = set()
        for start, end in _windows(rank, begun.get(rank.rank, ())):
            for one in (one for one in kept if start <= one.t <= end):
                met = any(one.t <= c.t <= end for c in rank.collectives)
                sure = met and any(stands_at(script, w, one.site) for w in after_meeting)
                if not sure and any(stands_at(script, w, one.site) for w in awaited):
                    if one.path in there:
                        return None  # that of the pass before is there already
                    there.add(one.path)
                    sure = True
                if sure:
                    written[rank.rank] = (one.path, one.site)
    ranks_that_began = {rank for rank, times in begun.items() if times}
    paths = {path for path, _ in written.values()}
    apart = ranks_that_began <= set(written) and len(paths) == len(written) > 1
    return next(site for _, site in written.values()) if apart else None


def _windows(rank: RankTrace, begun: tuple[float, ...]) -> list[tuple[float, float]]:
    """From each of these times until the rank went on training.

    An update by hand is found by the next call of the model: by the first one of an evaluation, and it lies before it.
    """
    fed, resumed = _fed_times(rank), _training_times(rank)
    calls = [e.t for e in rank.events("evaluation") if e.fields.get("op") == "begin"]
    found = []
    for begin in begun:
        called = min((t for t in calls if t >= begin), default=begin)
        first = begin if any(begin < t < called for t in fed) else called
        found.append((begin, min((t for t in resumed if t > first), default=math.inf)))
    return found


def _training_times(rank: RankTrace) -> list[float]:
    """When the rank was fed for training or took steps: what is reduced after one of these is training's again."""
    return [*_fed_times(rank), *(s.t for s in rank.steps)]


def _fed_times(rank: RankTrace) -> list[float]:
    """When it drew training batches, or gave a model others.

    A pass is training's by what happened in it: the loader may serve an accuracy on the training set as well.
    """
    drawn = [b.t for p in passes_of(rank) if p.kind == "training" for b in p.batches]
    return [*drawn, *(f.t for f in rank.feeds)]
