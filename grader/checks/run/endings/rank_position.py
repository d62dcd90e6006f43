"""Every rank's last known place in a run that ended badly: where it waited, lost its partner, worked on, or had ended.

Joins stacks, exceptions and exit codes, and says which rank test of the source led there. Blames nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, place
from grader.checks.run.endings.rank_failure import RankFailure, lost_partner
from grader.checks.run.endings.stuck_ranks import rank_test
from grader.model.finding import Location
from grader.model.run import Frame, RankRecord

# How a collective is named in a sentence, where it is not simply the function's name.
_NAMES = {
    "DDP gradient all-reduce": "the gradient all-reduce",
    "DDP buffer broadcast": "the wrapper's buffer broadcast",
    "DDP synchronisation": "the wrapper's synchronisation",
    "DDP construction": "the construction of the wrapper",
    "rendezvous (init_process_group)": "`init_process_group`",
    "barrier on the store": "a barrier on the store",
    "store operation": "a store operation",
    "asynchronous collective": "`wait()` for an asynchronous collective",
    "functional collective": "a functional collective",
    "distributed checkpoint": "the distributed checkpoint",
    "SyncBatchNorm statistics": "`SyncBatchNorm`'s exchange",
    "SyncBatchNorm gradients": "`SyncBatchNorm`'s exchange",
    "child processes (mp.spawn)": "`mp.spawn`",
    "child processes (join)": "`join()` of its own processes",
    "Join": "`Join`",
}


class Fate(Enum):
    """What a rank's last known place means."""

    WAITED = "waited"
    WORKED = "worked"
    LOST = "lost the connection"
    FAILED = "failed"
    ENDED = "ended"
    ABSENT = "never joined"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RankPosition:
    """One rank at the end.

    Attributes:
        rank: global rank; node: where it ran, None where there is only one.
        fate: what became of it; failure: its own error, where it had one.
        operation: the collective it waited in, "" for none or unknown.
        frames: the submission's frames, innermost first.
        guard: the rank test it got there through, None where all ranks get there or the text does not tell.
    """

    rank: int
    fate: Fate
    operation: str
    frames: tuple[Frame, ...]
    guard: Location | None
    failure: RankFailure | None
    node: int | None = None

    @property
    def site(self) -> Frame | None:
        """The submission's innermost line."""
        return self.frames[0] if self.frames else None

    @property
    def where(self) -> tuple[Location, ...]:
        """The line as a place."""
        return place(self.site)

    @property
    def inside_wrapper(self) -> bool:
        """Whether it waited in what DDP does by itself: gradients, buffers, its construction."""
        return self.operation.startswith("DDP ")

    def sentence(self, *, name: bool = True, then: bool = False) -> str:
        """`rank 0 waited in … at …`; `then`: as something that followed."""
        on = f" on node {self.node}" if self.node is not None else ""
        who = f"rank {self.rank}{on} " if name else ""
        line = f" at {at(self.site)}" if self.where else ""
        later = "then " if then else ""
        if self.fate is Fate.WAITED:
            return f"{who}{later}waited in {operation_name(self.operation)}{line} until it was stopped"
        if self.fate is Fate.WORKED:
            return f"{who}was{' busy' if line else ' still running'}{line} when it was stopped"
        if self.fate is Fate.LOST:
            return f"{who}{later}lost the connection{line}"
        if self.fate is Fate.ENDED:
            return f"{who}had ended by itself (exit code 0)"
        if self.fate is Fate.ABSENT:
            return f"{who}never joined"
        if self.failure is not None:
            how = f"was ended by {self.failure.signal}" if self.failure.signal else _ended(self.failure)
            return f"{who}{'later ' if then else ''}{how}{line}"
        return f"{who}was stopped"


def operation_name(operation: str) -> str:
    """A collective as a sentence calls it: words, or the function in backquotes."""
    return _NAMES.get(operation, f"`{operation}`")


def rank_positions(evidence: Evidence, failures: tuple[RankFailure, ...]) -> tuple[RankPosition, ...]:
    """All ranks, sorted by number."""
    by_rank = {failure.rank: failure for failure in failures}
    return tuple(_stand(evidence, record, by_rank.get(record.rank)) for record in evidence.record.ranks)


def _stand(evidence: Evidence, record: RankRecord, failure: RankFailure | None) -> RankPosition:
    waiting = record.waiting
    if failure is not None:
        fate, operation, frames = Fate.LOST if failure.follows else Fate.FAILED, "", failure.frames
    elif record.failure is not None and record.killed_by_judge and lost_partner(record.failure.message):
        # It noticed the loss while it was being stopped, after its last stack was taken.
        fate, operation = Fate.LOST, ""
        frames = tuple(f for f in record.failure.frames if f.in_submission)
    elif waiting is not None:
        fate, operation = Fate.WAITED if waiting.operation else Fate.WORKED, waiting.operation
        frames = tuple(f for f in waiting.frames if f.in_submission)
        frames = frames or ((waiting.site,) if waiting.site is not None else ())
    elif evidence.record.launcher == "python" and evidence.trace.ranks[record.rank].start is None:
        # The script starts its ranks itself, and has not started this one, or not as far as its group.
        fate, operation, frames = Fate.ABSENT, "", ()
    else:
        ended = record.exit_code == 0 and not record.killed_by_judge
        fate, operation, frames = Fate.ENDED if ended else Fate.UNKNOWN, "", ()
    guards = (rank_test(evidence.script, f.path, f.line) for f in frames)
    guard = next((g for g in guards if g), None)
    node = record.node if evidence.record.num_nodes > 1 else None
    return RankPosition(record.rank, fate, operation, frames, guard, failure, node)


def _ended(failure: RankFailure) -> str:
    return f"raised {failure.type}" if failure.type else f"ended with exit code {failure.exit_code}"
