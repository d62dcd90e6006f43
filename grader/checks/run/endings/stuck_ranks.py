"""Where ranks stood when a run was stuck: operation and line of each, and whether that line runs on some ranks only.

Joins the stacks that the supervisor took with the rank tests of the source. Which code a deadlock gets is decided here
once, so that exactly one of DIST003 and DIST009 speaks of it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at
from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.unmet_collectives import UnmetCollective, unmet_collectives
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.model.finding import Location
from grader.model.run import Ending, Frame, RankRecord

_MISMATCH = re.compile(
    r"op\.preamble|preamble\.length|[Mm]ismatch(ed)? (between )?collective|[Cc]ollective.{0,40}mismatch"
    r"|Detected mismatch|different (shapes|sizes) (across|on) ranks|Received data size doesn't match expected size"
)


@dataclass(frozen=True, slots=True)
class StuckRank:
    """One rank of a run that was stuck.

    Attributes:
        rank: global rank.
        operation: what it waited in, "" where in none.
        site: innermost line of the submission; guard: the rank test it runs under, None where on all ranks.
        ended: True when the rank's process was over.
        caller: line of the submission that called the function with `site`, where there is one.
    """

    rank: int
    operation: str
    site: Frame | None
    guard: Location | None
    ended: bool
    caller: Frame | None = None

    def call(self) -> str:
        """The call it waited in, as one of a list."""
        if self.ended:
            return f"nothing more on rank {self.rank}"
        where = f" at {at(self.site)}" if self.site is not None else ""
        return f"{f'`{self.operation}`' if self.operation else 'no collective'}{where} on rank {self.rank}"


def stuck_ranks(evidence: Evidence) -> tuple[StuckRank, ...]:
    """All ranks of a run that stood still; empty for any other run.

    One that ran out of time stood still, too, where a rank waited in what the text keeps from the others: those were
    at work on something that has no end, such as a loop until a file is there.
    """
    ending = evidence.record.ending
    if ending not in (Ending.DEADLOCKED, Ending.TIMED_OUT):
        return ()
    stuck = tuple(_stuck(evidence.script, r) for r in evidence.record.ranks)
    if ending is Ending.DEADLOCKED:
        return stuck
    unmet = unmet_collectives(evidence.script)
    waiting = {s.rank for s in guarded_ranks(stuck)}
    frames = [f for r in evidence.record.ranks if r.rank in waiting and r.waiting for f in r.waiting.frames]
    met = any(stands_at(evidence.script, one.call, f) for f in frames for one in unmet)
    return stuck if met else ()


def guarded_ranks(stuck: tuple[StuckRank, ...]) -> tuple[StuckRank, ...]:
    """Ranks that wait in a collective which a rank test keeps from the others: empty where no test is to blame.

    Where every rank that is left waits under a test of its own (`if rank == 0: … else: …`), the ranks do call
    collectives, only different ones: that is a mismatch, not a collective that the others never reach.
    """
    guarded = tuple(s for s in stuck if s.guard is not None and s.operation and not s.ended)
    return guarded if len(guarded) < len(stuck) else ()


def parted_by_test(evidence: Evidence) -> tuple[UnmetCollective, ...]:
    """Collectives under a rank test that ranks made alone before they stood still elsewhere, or crashed."""
    stuck = stuck_ranks(evidence)
    return _one_call_ahead(evidence.script, stuck) if stuck else _crashed_apart(evidence)


def _one_call_ahead(script: Script, stuck: tuple[StuckRank, ...]) -> tuple[UnmetCollective, ...]:
    """Collectives under a rank test that the ranks which pass it wait in, called elsewhere: they were partners before.

    `if rank == 0: evaluate()` and `evaluate()` on all ranks afterwards: rank 0's first meets the others' only one, and
    it waits in its second.
    """
    if guarded_ranks(stuck):
        return ()
    return tuple(one for one in unmet_collectives(script) if _waits_again(script, one, stuck))


def _waits_again(script: Script, unmet: UnmetCollective, stuck: tuple[StuckRank, ...]) -> bool:
    main = unmet.guard.condition.which is RankSet.MAIN
    if not main and unmet.guard.condition.which is not RankSet.OTHERS:
        return False
    inside = {s.rank for s in stuck if any(stands_at(script, c.call, s.site) for c in unmet.collectives)}
    return bool(inside) and inside == {s.rank for s in stuck if not s.ended and (s.rank == 0) is main}


def _crashed_apart(evidence: Evidence) -> tuple[UnmetCollective, ...]:
    """Collectives under a rank test that some ranks were in when what they got did not fit, and others were not.

    A rank that made such a call alone meets the others' next one, of another kind or size.
    """
    records = evidence.record.ranks
    if not any(mismatch(r) for r in records):
        return ()
    found = []
    for unmet in unmet_collectives(evidence.script):
        failed = [(r, f) for r in records if r.failure for f in r.failure.frames]
        inside = {r.rank for r, frame in failed if stands_at(evidence.script, unmet.call, frame)}
        if 0 < len(inside) < len(records):
            found.append(unmet)
    return tuple(found)


def mismatch(record: RankRecord) -> str:
    """The backend's words about collectives that don't fit together, "" where the rank failed otherwise or not."""
    failure = record.failure
    return failure.message if failure is not None and _MISMATCH.search(failure.message) else ""


def rank_test(script: Script, path: str, line: int) -> Location | None:
    """The test that keeps a line from some ranks, None where all ranks run it or the text does not tell."""
    tree = next((t for t in script.trees if t.path == path), None)
    if tree is None:
        return None
    around = [
        n for n in ast.walk(tree.root) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    if not around:
        return None
    # The statement that ends first among those that begin last is the innermost one.
    innermost = max(around, key=lambda n: (n.lineno, -(n.end_lineno or 0)))
    guard = script.guards.partial(innermost)
    # A test may also stand within the line: `rank == 0 and evaluate(…)`.
    calls = [
        c
        for c in script.collectives.running
        if c.lineno <= line <= (c.end_lineno or 0) and tree.inside(c, innermost)
    ]
    if guard is None and calls:
        within = [script.guards.partial(c) for c in calls]
        guard = within[0] if all(within) else None
    return script.location(guard.test) if guard is not None else None


def _stuck(script: Script, record: RankRecord) -> StuckRank:
    waiting = record.waiting
    ended = waiting is None and record.exit_code is not None and not record.killed_by_judge
    if waiting is None:
        return StuckRank(record.rank, "", None, None, ended)
    # Also a helper that a rank test leads to runs on some ranks only: every frame of the submission counts.
    frames = [f for f in waiting.frames if f.in_submission] or ([waiting.site] if waiting.site else [])
    guards = (rank_test(script, f.path, f.line) for f in frames)
    return StuckRank(
        record.rank,
        waiting.operation,
        waiting.site,
        next((g for g in guards if g), None),
        ended,
        frames[1] if len(frames) > 1 else None,
    )
