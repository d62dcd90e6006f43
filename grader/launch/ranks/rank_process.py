"""One rank as the supervisor watches it: its streams, its process, what was seen of it so far.

State only; who starts, stops and judges ranks is decided elsewhere.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from grader.launch.endings.flight_records import FlightRecord
from grader.launch.endings.question_channel import QuestionChannel
from grader.launch.endings.stacks import Stack, StackFile
from grader.launch.ranks.rank import RankEnds
from grader.launch.ranks.streams import Capture, TraceSink, open_pipe
from grader.launch.spec import LaunchSpec

_DUMP_S = 0.6
_DUMP_LOOK_S = 0.03


class RankProcess:
    """A rank from before its start until its record is written; times in seconds after the ranks' start."""

    def __init__(self, spec: LaunchSpec, rank: int) -> None:
        self.rank = rank
        out_reader, out_writer = open_pipe()
        err_reader, err_writer = open_pipe()
        trace_reader, trace_writer = open_pipe()
        self.out = Capture(out_reader, spec.log_bytes)
        self.err = Capture(err_reader, spec.log_bytes)
        trace_path = Path(spec.record_dir, "trace", f"rank{rank}.trace")
        self.trace = TraceSink(trace_reader, trace_path, spec.rank_trace_bytes)
        self.stacks = StackFile(rank)
        self._trouble, trouble_writer = open_pipe()
        self.questions = QuestionChannel()
        self._answers = spec.probe
        self.ends = RankEnds(
            out_writer, err_writer, trace_writer, trouble_writer, self.stacks.file, self.questions.theirs
        )
        self.pid = 0
        """Process id while it runs; 0 before its start, kept after its end."""
        self.exit_code: int | None = None
        """As `os.waitstatus_to_exitcode` says; None while it runs."""
        self.started_s = 0.0
        self.ended_s: float | None = None
        self.last_moved_s = 0.0
        self.killed_by_judge = False
        self.cpu_user_s = 0.0
        self.cpu_system_s = 0.0
        self.peak_rss_bytes = 0
        self.num_dumps = 0
        self.stack: Stack | None = None
        self.record: FlightRecord | None = None
        """Its collectives as of its last stack; None: it did not say."""
        self.leftovers = 0

    @property
    def alive(self) -> bool:
        """Whether it was started and has not been seen to end."""
        return self.ended_s is None

    def hand_over(self) -> None:
        """Close our copies of the rank's ends, once the rank has its own."""
        for end in (self.ends.out, self.ends.err, self.ends.trace, self.ends.trouble):
            os.close(end)
        self.questions.hand_over()

    def ask(self) -> None:
        """Ask for its collectives, where there is a probe in it that can tell."""
        self.record = None
        if self._answers:
            self.questions.ask()

    def told(self) -> bool:
        """Whether it has told them since, or has nothing to tell with."""
        if self._answers and self.record is None:
            self.record = self.questions.answer()
        return not self._answers or self.record is not None

    def trouble(self) -> str:
        """What went wrong between the fork and the script; "" where the script had its chance."""
        try:
            return os.read(self._trouble, 1 << 14).decode(errors="replace")
        except BlockingIOError:
            return ""

    def drain(self, now_s: float) -> bool:
        """Take all that came; True when something did."""
        self.trace.now_s = now_s
        moved = [self.out.drain(), self.err.drain(), self.trace.drain()]
        if any(moved):
            self.last_moved_s = now_s
        return any(moved)

    def ended(self, exit_code: int, now_s: float) -> None:
        """The kernel says that it is gone."""
        self.exit_code = exit_code
        self.ended_s = now_s

    def close(self, now_s: float) -> None:
        """Take what is left in the pipes and let go of them, whoever else may hold them."""
        # Every writer is dead by now, so this ends; the bound is for one that the kernel is still burying.
        for _ in range(64):
            if not self.drain(now_s):
                break
        self.out.close()
        self.err.close()
        self.trace.finish()
        self.questions.close()


def take_stacks(ranks: list[RankProcess], folder: Path) -> bool:
    """Ask live ranks for stacks and collectives and keep them; whether a usable stack came from every rank."""
    for rank in ranks:
        rank.ask()
    asked = [rank for rank in ranks if rank.pid > 0 and rank.stacks.request(rank.pid)]
    sizes: list[int] = []
    deadline = time.monotonic() + _DUMP_S
    while time.monotonic() < deadline:
        time.sleep(_DUMP_LOOK_S)
        before, sizes = sizes, [rank.stacks.size_bytes for rank in asked]
        told = [rank.told() for rank in ranks]
        # A dump is written piece by piece; it is whole when it has stopped growing.
        if all(sizes) and sizes == before and all(told):
            break
    num_usable = 0
    for rank in asked:
        stack = rank.stacks.read()
        if stack is not None:
            num_usable += 1
            rank.stack = stack
            (folder / f"rank{rank.rank}.{rank.num_dumps}.txt").write_text(stack.text, encoding="utf-8")
            rank.num_dumps += 1
    return num_usable == len(ranks)
