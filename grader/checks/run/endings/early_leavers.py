"""Ranks that left while others went on, as a run shows it: ended early, out of the loop, or a step behind.

Uneven shards (a loader that ran dry), loops of unequal length and collectives under a rank test are other faults with
rules of their own; where they explain what was seen, nothing is reported here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, listed
from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.sample_ledger import Stream
from grader.checks.run.endings.left_loops import held_ranks, left_loops, uneven_loop
from grader.checks.run.endings.stuck_ranks import guarded_ranks, rank_test, stuck_ranks
from grader.checks.source.causes import stands_at
from grader.model.run import Ending, Frame, RankRecord
from grader.model.trace import RankTrace


@dataclass(frozen=True, slots=True)
class EarlyLeaver:
    """Who left, and how it showed.

    Attributes:
        kind: `ended` (the process was over), `loop` (it had left a loop), `skipped` (a batch without its step).
        ranks: who left. sentence: what they did, after their names. waiting: what the others did meanwhile.
        sites: where the others were. met: all collectives came about nevertheless, none of which the others miss.
    """

    kind: str
    ranks: tuple[int, ...]
    sentence: str
    waiting: str
    sites: tuple[Frame | None, ...]
    met: bool = False


def early_leavers(evidence: Evidence) -> EarlyLeaver | None:
    """The first departure that a run shows; None where ranks stayed together or something else explains it."""
    ending = evidence.record.ending
    if ending not in (Ending.DEADLOCKED, Ending.CRASHED, Ending.COMPLETED, Ending.TIMED_OUT):
        return None
    held = [] if ending is Ending.COMPLETED else held_ranks(evidence)
    left = skipped_step(evidence)
    if left is not None and not left.met:
        return left
    left = _overtook(evidence, held) or _left_the_last(evidence, held)
    if left is not None or ending is Ending.COMPLETED:
        return left
    if not held or _cut_by_test(evidence, held) or uneven_loop(evidence) is not None:
        return None
    return _broke(evidence, held) or _ended(evidence, held) or _outside(evidence, held)


def _cut_by_test(evidence: Evidence, held: list[RankRecord]) -> bool:
    """The others hang in a collective that a test of the rank keeps from some: DIST003 tells that."""
    if guarded_ranks(stuck_ranks(evidence)):
        return True
    failed = [f for r in held if r.failure for f in r.failure.frames if f.in_submission]
    return any(rank_test(evidence.script, f.path, f.line) is not None for f in failed)


def _site(rank: RankRecord) -> Frame | None:
    if rank.waiting is not None and rank.waiting.site is not None:
        return rank.waiting.site
    frames = rank.failure.frames if rank.failure is not None else ()
    return next((f for f in frames if f.in_submission), None)


def _meanwhile(held: Iterable[RankRecord]) -> str:
    parts = []
    for rank in list(held)[:8]:
        site = _site(rank)
        where = f" at {at(site)}" if site is not None else ""
        what = f"waits in `{rank.waiting.operation}`" if rank.waiting is not None and rank.waiting.operation else (
            "lost its partner"
        )  # fmt: skip
        parts.append(f"rank {rank.rank} {what}{where}")
    return listed(parts)


def _broke(evidence: Evidence, held: list[RankRecord]) -> EarlyLeaver | None:
    """Ranks that left a training loop before it ran dry, while others went on in the same epoch."""
    waiting = {r.rank for r in held}
    for stream in evidence.ledger.training:
        for epoch in stream.epochs:
            early = [s for s in epoch.shards if s.exhausted is False]
            going = [
                s for s in epoch.shards
                if s.rank in waiting
                and s not in early
                and any(s.num_batches > e.num_batches or s.exhausted is None for e in early)
            ]  # fmt: skip
            if early and going:
                batches = min(s.num_batches for s in early)
                return EarlyLeaver(
                    "loop",
                    tuple(sorted(s.rank for s in early)),
                    f"left the training loop in epoch {epoch.number} after {count(batches, 'batch', 'batches')}, "
                    "before it had run dry",
                    _meanwhile(r for r in held if r.rank in {s.rank for s in going}),
                    tuple(_site(r) for r in held),
                )
    return None


def _ended(evidence: Evidence, held: list[RankRecord]) -> EarlyLeaver | None:
    """Ranks whose process was over, without an error, in the midst of the others' training."""
    over = [
        r.rank for r in evidence.record.ranks if r.exit_code == 0 and not r.killed_by_judge and r not in held
    ]
    behind = [r for r in over if any(_further(evidence, r, h.rank) for h in held)]
    if not behind or _ran_dry(evidence, behind, [h.rank for h in held]):
        return None
    taken = listed(f"{len(evidence.rank(r).steps):,} on rank {r}" for r in (*behind, *(h.rank for h in held)))
    return EarlyLeaver(
        "ended",
        tuple(behind),
        f"had ended without an error while others were still in training (optimizer steps: {taken})",
        _meanwhile(held),
        tuple(_site(r) for r in held),
    )


def _further(evidence: Evidence, gone: int, held: int) -> bool:
    """Whether the rank that is held is in a step, or an epoch, that the one that has gone never took."""
    one, other = evidence.rank(gone), evidence.rank(held)
    if len(other.steps) > len(one.steps) or _num_batches(evidence, other) > _num_batches(evidence, one):
        return True
    record = next(r for r in evidence.record.ranks if r.rank == held)
    in_step = record.waiting is not None and record.waiting.operation.startswith("DDP ")
    return in_step and len(other.steps) >= len(one.steps)


def _num_batches(evidence: Evidence, rank: RankTrace) -> int:
    # Also of a pass that has led to no step yet, which the ledger may not know for training.
    shards = (s for stream in evidence.ledger.training for s in stream.shards(rank.rank))
    loaders = {s.loader.id for s in shards if s.loader is not None}
    return sum(1 for b in rank.batches if b.loader in loaders)


def _ran_dry(evidence: Evidence, gone: list[int], held: list[int]) -> bool:
    """Whether shards of unequal length explain it: the loader of those that left had nothing more to give."""

    def uneven(epoch: EpochShards) -> bool:
        dry = [s for s in epoch.shards if s.rank in gone and s.exhausted]
        more = [s for s in epoch.shards if s.rank in held and not s.exhausted]
        longer = [
            s for s in epoch.shards if s.rank in held and any(s.num_batches > d.num_batches for d in dry)
        ]
        return bool(dry and (more or longer))

    return any(uneven(e) for stream in evidence.ledger.training for e in stream.epochs)


def _outside(evidence: Evidence, held: list[RankRecord]) -> EarlyLeaver | None:
    """Ranks that wait behind a loop in which others still are, though no loader had run dry early."""
    for left in left_loops(evidence):
        if _ran_dry(evidence, [left.one.rank], [left.other.rank]):
            continue
        path = evidence.script.location(left.loop).path
        return EarlyLeaver(
            "loop",
            tuple(r.rank for r in left.gone),
            f"had left the loop that begins at `{path}:{left.loop.lineno}`",
            _meanwhile([*left.gone, *(r for r in held if r not in left.gone)]),
            tuple(_site(r) for r in held),
        )
    return None


def skipped_step(evidence: Evidence) -> EarlyLeaver | None:
    """The first batch that led to a step on one rank and to none on another."""
    found: list[tuple[tuple[int, int], int, int, bool]] = []
    for stream in evidence.ledger.training:
        tables = _drawn(evidence, stream)
        for rank, table in tables:
            for other, theirs in tables:
                key = _first_lag(table, theirs)
                if key is not None:
                    met = _met(evidence, (rank, table), (other, theirs), key)
                    found.append((key, rank, other, met))
    if not found:
        return None
    (epoch, batch), rank, other, met = min(found)
    held = held_ranks(evidence)
    return EarlyLeaver(
        "skipped",
        (rank,),
        f"drew batch {batch + 1:,} of epoch {epoch} and took no step on it, while rank {other} did",
        "; ".join(filter(None, ("from there on its steps are one behind", _meanwhile(held)))),
        tuple(_site(r) for r in held),
        met,
    )


def _met(
    evidence: Evidence,
    one: tuple[int, dict[tuple[int, int], int]],
    other: tuple[int, dict[tuple[int, int], int]],
    key: tuple[int, int],
) -> bool:
    """Whether a rank that skipped a step came to as many collectives as another, up to the next step of both."""
    later = [k for k in sorted(one[1]) if k > key and k in other[1]]
    for drawn, after in pairwise(later):
        if all(table[after] > table[drawn] for _, table in (one, other)):
            counts = [_exchanges(evidence.rank(rank), table[after]) for rank, table in (one, other)]
            return counts[0] is not None and counts[0] == counts[1]
    return False


def _exchanges(rank: RankTrace, num_steps: int) -> int | None:
    """Collectives of a rank up to so many steps; None where they are not known."""
    told = [step.exchanges for step in rank.steps[:num_steps]]
    return None if None in told or len(told) < num_steps else sum(n for n in told if n is not None)


def _left_the_last(evidence: Evidence, held: list[RankRecord]) -> EarlyLeaver | None:
    """A rank that was through with a pass and took no step on its last batch, in which another one went backward."""
    going = [r for r in held if _goes_backward(evidence, r)]
    for stream in evidence.ledger.training:
        last = {rank: max(table.items()) for rank, table in _drawn(evidence, stream)}
        for rank, (key, step) in last.items():
            shards = stream.shards(rank)
            waiting = [r for r in going if r.rank != rank and last.get(r.rank, (None,))[0] == key]
            over = bool(shards) and shards[-1].exhausted is True and rank not in {r.rank for r in going}
            if over and waiting and step and len(evidence.rank(rank).steps) == step:
                return EarlyLeaver(
                    "skipped",
                    (rank,),
                    f"drew batch {key[1] + 1:,} of epoch {key[0]}, the last one, and took no step on it",
                    _meanwhile(waiting),
                    tuple(_site(r) for r in waiting),
                )
    return None


def _goes_backward(evidence: Evidence, record: RankRecord) -> bool:
    """Whether a rank waits, or lost its partner, in a backward pass."""
    if record.waiting is not None and record.waiting.operation.startswith("DDP "):
        return True
    site = _site(record)
    return any(stands_at(evidence.script, b, site) for b in evidence.script.training.backwards)


def _overtook(evidence: Evidence, held: list[RankRecord]) -> EarlyLeaver | None:
    """A rank that drew another batch while the backward pass of the one before still waits for it elsewhere."""
    for stream in evidence.ledger.training:
        last = {r: max(t) for r, t in _drawn(evidence, stream)}
        for record in held:
            in_step = record.waiting is not None and record.waiting.operation.startswith("DDP ")
            mine = last.get(record.rank)
            ahead = [r for r, key in last.items() if mine is not None and key > mine]
            if not in_step or mine is None or not ahead or _ran_dry(evidence, [record.rank], ahead):
                continue
            if any(e.fields.get("op") == "enter" for r in ahead for e in evidence.rank(r).events("no_sync")):
                continue  # without averaging a rank may well be ahead
            return EarlyLeaver(
                "skipped",
                tuple(ahead),
                f"went on to batch {max(last[r] for r in ahead)[1] + 1:,} without the step in which rank "
                f"{record.rank} waits in batch {mine[1] + 1:,}",
                _meanwhile([record]),
                (_site(record),),
            )
    return None


def _drawn(evidence: Evidence, stream: Stream) -> list[tuple[int, dict[tuple[int, int], int]]]:
    """Per rank: (pass, batch) → steps taken before it, over the batches of one stream."""
    tables = []
    for rank in evidence.trace.ranks:
        loaders = {s.loader.id for s in stream.shards(rank.rank) if s.loader}
        tables.append((rank.rank, {(b.pass_, b.n): b.step for b in rank.batches if b.loader in loaders}))
    return [(rank, table) for rank, table in tables if table]


def _first_lag(
    table: dict[tuple[int, int], int], theirs: dict[tuple[int, int], int]
) -> tuple[int, int] | None:
    """The batch after which one rank's steps fall behind the other's, where both drew the same ones up to there."""
    before: tuple[int, int] | None = None
    for mine, other in zip(sorted(table), sorted(theirs), strict=False):
        if mine != other:
            return None
        if table[mine] < theirs[mine]:
            return before
        before = mine
    return None
