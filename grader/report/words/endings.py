"""How each rank ended or where it waits: the tables that explain crashes and deadlocks, line by line."""

from __future__ import annotations

from dataclasses import dataclass

from grader.judging.attempt import Attempt
from grader.model.notebook_lines import told_place
from grader.model.run import Failure, Frame, RankRecord, RunRecord, Waiting
from grader.report.words.wording import bytes_text, exit_text, rank_text, seconds_text

_MAX_FRAMES = 40
_TAIL_LINES, _TAIL_WIDTH = 8, 400


@dataclass(frozen=True, slots=True)
class WaitRow:
    """One rank that stood still: who it is, operation it waited in, place, quoted line, stack in text form."""

    rank: int
    who: str
    operation: str
    place: str
    function: str
    source: str
    stack: str


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One rank that failed; `first`: before the others; `tail`: its last error output where no exception was found."""

    rank: int
    who: str
    ending: str
    first: bool
    type: str
    message: str
    place: str
    source: str
    stack: str
    tail: str


@dataclass(frozen=True, slots=True)
class RankRow:
    """One rank of the run, numbers in words; "–" where nothing is known."""

    rank: int
    who: str
    ending: str
    cpu: str
    wall: str
    memory: str
    lines: str
    steps: str
    samples: str


def wait_rows(attempt: Attempt) -> tuple[WaitRow, ...]:
    """Where each rank stood when the run was stopped; empty where no stacks were taken."""
    record = attempt.record
    if record is None:
        return ()
    return tuple(_wait_row(attempt, record, r, r.waiting) for r in record.ranks if r.waiting is not None)


def wait_sentence(rows: tuple[WaitRow, ...]) -> str:
    """One sentence over the rows: whether the ranks stand in the same place."""
    if len(rows) < 2:
        return ""
    if len({(row.operation, row.place) for row in rows}) == 1:
        return "All ranks stand in the same call, and it never finished."
    return (
        "The ranks stand in different calls. A collective ends only when every rank has called it, in the same order, "
        "so each of them waits for a call that the others never make."
    )


def failure_rows(attempt: Attempt) -> tuple[FailureRow, ...]:
    """The ranks that failed by themselves, the first to fail first."""
    record = attempt.record
    if record is None:
        return ()
    failed = [
        r
        for r in record.ranks
        if not r.killed_by_judge and (r.failure is not None or r.exit_code not in (0, None))
    ]
    failed.sort(key=lambda rank: (rank.ended_s, rank.rank))
    return tuple(_failure_row(attempt, record, rank, first=index == 0) for index, rank in enumerate(failed))


def rank_rows(attempt: Attempt) -> tuple[RankRow, ...]:
    """One row for each rank that was started."""
    record = attempt.record
    return tuple(_rank_row(attempt, record, rank) for rank in record.ranks) if record is not None else ()


def _wait_row(attempt: Attempt, record: RunRecord, rank: RankRecord, waiting: Waiting) -> WaitRow:
    site = waiting.site
    return WaitRow(
        rank=rank.rank,
        who=rank_text(record, rank),
        operation=waiting.operation or "no collective",
        place=told_place(attempt.submission, site.path, site.line) if site else "outside your files",
        function=_function(site),
        source=attempt.submission.line(site.path, site.line).strip() if site else "",
        stack=_stack(attempt, waiting.frames),
    )


def _failure_row(attempt: Attempt, record: RunRecord, rank: RankRecord, *, first: bool) -> FailureRow:
    failure = rank.failure or Failure("", "", ())
    site = next((frame for frame in failure.frames if frame.in_submission), None)
    return FailureRow(
        rank=rank.rank,
        who=rank_text(record, rank),
        ending=exit_text(rank),
        first=first,
        type=failure.type,
        message=failure.message,
        place=told_place(attempt.submission, site.path, site.line) if site else "",
        source=attempt.submission.line(site.path, site.line).strip() if site else "",
        stack=_stack(attempt, failure.frames),
        tail="" if failure.type else _tail(attempt, rank.rank),
    )


def _tail(attempt: Attempt, rank: int) -> str:
    if not 0 <= rank < len(attempt.logs):
        return ""
    lines = [line for line in attempt.logs[rank][1].split("\n") if line.strip()]
    return "\n".join(line[:_TAIL_WIDTH] for line in lines[-_TAIL_LINES:])


def _rank_row(attempt: Attempt, record: RunRecord, rank: RankRecord) -> RankRow:
    told = None
    if attempt.trace is not None:
        told = next((t for t in attempt.trace.ranks if t.rank == rank.rank and t.start is not None), None)
    return RankRow(
        rank=rank.rank,
        who=rank_text(record, rank),
        ending=exit_text(rank),
        cpu=seconds_text(rank.cpu_s),
        wall=seconds_text(rank.ended_s - rank.started_s),
        memory=bytes_text(rank.peak_rss_bytes),
        lines=f"{rank.stdout_lines:,}" + (" (cut)" if rank.output_cut else ""),
        steps=f"{len(told.steps):,}" if told else "–",
        samples=f"{sum(step.samples for step in told.steps):,}" if told else "–",
    )


def _function(frame: Frame | None) -> str:
    return "" if frame is None or frame.function == "<module>" else frame.function


def _stack(attempt: Attempt, frames: tuple[Frame, ...]) -> str:
    lines = [
        f"{told_place(attempt.submission, f.path, f.line)} in {f.function}" for f in frames[:_MAX_FRAMES]
    ]
    if len(frames) > _MAX_FRAMES:
        lines.append(f"… {len(frames) - _MAX_FRAMES} more")
    return "\n".join(lines)
