"""Puts together the account of one run that a task's `examine()` gets, from the run's record and trace.

Bounded: what a script does a million times at one line is one entry, and a script of ten thousand lines is cut off and
said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from statistics import mode
from typing import TypeVar

from grader.checks.run.data.loader_passes import passes_of, shard_of
from grader.checks.run.endings.end_counts import end_count
from grader.evaluate.circumstances import circumstances
from grader.model.dataset import PreparedDataset
from grader.model.run import RunRecord
from grader.model.run_account import Exchange, PassAccount, RankAccount, RunAccount, UpdateAccount
from grader.model.trace import RankTrace, Step, Trace
from grader.model.traffic import Traffic
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace

MAX_EXCHANGES, MAX_UPDATES, MAX_PASSES = 4096, 1024, 4096
_MAX_GAPS = 64
_RUN_FOR = {
    "all_gather_object": 2,
    "broadcast_object_list": 2,
    "gather_object": 2,
    "recv_object_list": 2,
    "scatter_object_list": 3,
    "send_object_list": 2,
}
"""What gloo runs for one call of these; one for any other but those of `_RUN_MANY`."""
_RUN_MANY = ("all_to_all", "monitored_barrier", "reduce_scatter")

_T = TypeVar("_T")


def read_account(workspace: Workspace, dataset: PreparedDataset) -> RunAccount:
    """The account of the run that lies in a workspace; `dataset`: what was mounted for it."""
    record = read_record(workspace.record)
    return account_of(record, read_trace([workspace.trace(r) for r in range(record.world_size)]), dataset)


def account_of(record: RunRecord, trace: Trace, dataset: PreparedDataset) -> RunAccount:
    """The account of a run, from what was seen from outside and what its ranks told."""
    gaps = [gap for rank in trace.ranks for gap in _gaps(rank)]
    everybody = tuple(range(record.world_size))
    return RunAccount(
        numbers=circumstances(record, trace, dataset),
        ending=str(record.ending),
        ranks=tuple(_rank(rank) for rank in trace.ranks),
        exchanges=_first(
            MAX_EXCHANGES, (e for r in trace.ranks for e in _exchanges(r, everybody)), "exchanges", gaps
        ),
        updates=_first(MAX_UPDATES, (u for r in trace.ranks for u in _updates(r)), "optimizers", gaps),
        passes=_first(MAX_PASSES, (p for r in trace.ranks for p in _passes(r)), "passes over loaders", gaps),
        gaps=tuple(gaps[-_MAX_GAPS:]),
    )


def _first(number: int, records: Iterable[_T], what: str, gaps: list[str]) -> tuple[_T, ...]:
    records = iter(records)
    found = tuple(islice(records, number))
    if next(records, None) is not None:
        gaps.append(f"There are more than {number:,} {what}; the others are left out.")
    return found


def _gaps(rank: RankTrace) -> Iterator[str]:
    if rank.start is None:
        yield f"Rank {rank.rank} told nothing."
    elif not rank.ended:
        yield f"Rank {rank.rank} told nothing of its script's end: exchanges may be missing, and their bytes."
    elif rank.problems or rank.suspicions:
        yield f"What rank {rank.rank} told can't be relied on in all."
    elif (unseen := _unseen(rank)) > 0:
        yield f"Rank {rank.rank}'s process group ran more collectives than were seen to be called: {unseen}."
    for event in rank.events("captured"):
        yield f"Rank {rank.rank} replayed a {event.fields.get('what')} that was captured, which nobody can watch."
    if any(rank.events("unsupported")):
        yield f"Rank {rank.rank} could not be watched in all."


def _unseen(rank: RankTrace) -> int:
    """Collectives and messages of gloo's default group that no call was seen for: given to its backend directly.

    Where it can't be told what a call runs, or a wrapper exchanges on its own, all count as seen.
    """
    ran = end_count(rank, "sequence")
    calls = [one for one in rank.traffic if one.ranks is None and not one.name.startswith("store.")]
    gloo = any(group.backend == "gloo" for group in rank.groups)
    if ran is None or not gloo or rank.wraps or any(one.name in _RUN_MANY for one in calls):
        return 0
    return ran - sum(one.calls * _RUN_FOR.get(one.name, 1) for one in calls)


def _rank(rank: RankTrace) -> RankAccount:
    return RankAccount(
        rank=rank.rank,
        complete=not any(_gaps(rank)),
        backend=next((group.backend for group in rank.groups if group.op == "init"), ""),
        wrappers=tuple(wrap.kind for wrap in rank.wraps),
        num_collectives=end_count(rank, "sequence"),
    )


def _exchanges(rank: RankTrace, everybody: tuple[int, ...]) -> Iterator[Exchange]:
    for one in rank.traffic if rank.ended else _single_calls(rank):
        at = one.site
        yield Exchange(
            rank=rank.rank,
            name=one.name,
            calls=one.calls,
            bytes=one.bytes,
            largest=one.largest,
            among=one.ranks or everybody,
            peer=one.peer,
            path=at.path if at is not None else "",
            line=at.line if at is not None else 0,
            function=at.function if at is not None else "",
        )


def _single_calls(rank: RankTrace) -> Iterator[Traffic]:
    """What a rank told of single calls, where it never came to tell of all."""
    last = {(call.name, call.site, call.ranks): call for call in rank.collectives}
    return (Traffic(c.name, c.site, c.ranks, None, c.n, None) for c in last.values())


def _updates(rank: RankTrace) -> Iterator[UpdateAccount]:
    by_optimizer: dict[tuple[int, str], list[Step]] = {}
    for step in rank.steps:
        by_optimizer.setdefault((step.optimizer, step.kind), []).append(step)
    for (optimizer, kind), steps in by_optimizer.items():
        rates = _rates(steps)
        yield UpdateAccount(
            rank=rank.rank,
            optimizer=optimizer,
            kind=kind,
            count=len(steps),
            samples=sum(step.samples for step in steps),
            first_rate=rates[0] if rates else None,
            highest_rate=max(rates, default=None),
            last_rate=rates[-1] if rates else None,
        )


def _rates(steps: Sequence[Step]) -> list[float]:
    # A rate that is no number is nothing that JSON or a sentence could hold.
    return [step.lr[0] for step in steps if step.lr and abs(step.lr[0]) < float("inf")]


def _passes(rank: RankTrace) -> Iterator[PassAccount]:
    for one in passes_of(rank):
        shard = shard_of(one)
        site = one.loader.site if one.loader is not None else None
        yield PassAccount(
            rank=rank.rank,
            purpose=one.kind,
            dataset=one.root[0],
            split=one.root[1],
            epoch=shard.sampler_epoch,
            batches=shard.num_batches,
            samples=shard.num_samples,
            distinct=shard.num_distinct if shard.samples is not None else None,
            ended=shard.exhausted,
            path=site.path if site is not None else "",
            line=site.line if site is not None else 0,
            batch_samples=mode(shard.sizes),
        )
